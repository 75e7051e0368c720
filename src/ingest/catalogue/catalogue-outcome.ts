/** How the request of one item of the catalogue can end, and how long it waits after a failure. */
import type { Clock, Instant } from '../../clock.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import { RULES } from '../../core/second-opinion.ts';
import {
  CATALOGUE_KINDS,
  type CatalogueItem,
  type CatalogueKind,
  isItemRefusal,
  outcomesLike,
} from '../../store/catalogue/catalogue-item.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { type Claim, type ClaimId, readClaims } from '../../store/work/second-opinion.ts';
import type { OriginCheck } from '../request/origin.ts';
import type { SentRequest } from '../request/send-request.ts';
import type { RunContext } from '../schedule-run.ts';
import type { Session } from '../session.ts';
import type { ToolRegistry } from './tool-registry.ts';

/** Shared by the runs of all kinds. */
export type CatalogueContext = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Pick<Session, 'sendRequest' | 'tools' | 'accountId' | 'plan'>;
  /** Null: only REST is used. */
  readonly registry: ToolRegistry | null;
  readonly checkOrigin: OriginCheck;
};

export type ItemRequest = {
  readonly kind: CatalogueKind;
  readonly item: CatalogueItem;
  readonly context: RunContext;
  readonly sent: SentRequest;
};

/** How the request of one item ended. */
export type ItemOutcome =
  | { readonly kind: 'stored' }
  /** The answer cannot be used, and that is recorded. The run requests the next item. */
  | { readonly kind: 'skipped' }
  /** The whole upstream may have failed, not only this item. */
  | { readonly kind: 'failed'; readonly message: string }
  /** No more requests can be sent now. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string };

const unknownBackoff = createBackoff({ firstMs: DAY, mostMs: 30 * DAY, factor: 4 });
const failureBackoff = createBackoff({ firstMs: 60_000, mostMs: DAY, factor: 4 });
/** The first refusals may be chance, and soon over. */
const refusalBackoff = createBackoff({ firstMs: 60_000, mostMs: 30 * DAY, factor: 4 });

/** How long an item waits after this outcome, in milliseconds: longer each time the outcome repeats. The wait is stored, so it has no jitter. */
export function waitAfter(outcome: string, item: CatalogueItem): number {
  const isFailure = outcome === 'malformed' || outcome === 'unavailable';
  const times = item.outcome !== null && outcomesLike(outcome).includes(item.outcome) ? item.times : 0;
  const backoff = isFailure ? failureBackoff : isItemRefusal(outcome) ? refusalBackoff : unknownBackoff;
  return backoff(times, WHOLE_BOUND);
}

/** The claim that the plan of the account does not include a kind. */
export function refusalOf(kind: CatalogueKind, { accountId, plan }: Pick<Session, 'accountId' | 'plan'>): ClaimId {
  return { claim: 'catalogue refusal', key: `${refusalsOf(accountId, plan.name)}${kind}` };
}

/** The common prefix of the keys of these claims. */
function refusalsOf(accountId: string, plan: PlanName): string {
  return `${accountId} ${plan} `;
}

/** A refused kind is requested once in this time. */
export const REFUSED_EVERY_MS = RULES['catalogue refusal'].believedMs;

/**
 * The kinds that the upstream refuses to this account on this plan, and until when Chandler does not request each. A kind stays refused until an
 * item is answered, also while no service requests it.
 */
export async function readRefusedKinds(
  sql: SqlOrTransaction,
  { accountId, plan, now }: { readonly accountId: string; readonly plan: PlanName; readonly now: Instant },
): Promise<Partial<Record<CatalogueKind, Instant>>> {
  const prefix = refusalsOf(accountId, plan);
  const claims = await readClaims(sql, { claims: ['catalogue refusal'], prefix, since: 0 });
  return Object.fromEntries(
    CATALOGUE_KINDS.flatMap((kind) => {
      const claim = claims.find((one) => one.key === `${prefix}${kind}` && isBelieved(one));
      return claim === undefined ? [] : [[kind, refusedUntil(claim, now)?.until ?? claim.retryAt]];
    }),
  );
}

/** The claim that a list lost many of its rows. */
export function shortListOf(kind: CatalogueKind, id: string): ClaimId {
  return { claim: 'short list', key: `${kind} ${id}` };
}

/** Did so many items agree that the upstream refuses the kind? */
export function isBelieved({ answers }: Pick<Claim, 'answers'>): boolean {
  return answers >= RULES['catalogue refusal'].agreeing;
}

/** Until when the kind waits, and why; null: it may be requested. */
export function refusedUntil({ answers, requestedAt, retryAt, evidence }: Claim, now: Instant) {
  // A clock that was set back must not make the wait longer.
  const until = retryAt - Math.max(0, requestedAt - now);
  if (until <= now) return null;
  const message = String(evidence?.message);
  const why = evidence?.reason === 'unknown route' ? 'upstream has no such data' : 'the plan does not include this';
  return {
    kind: 'held',
    until,
    reason: isBelieved({ answers }) ? `${why}, until it changes: ${message}` : message,
  } as const;
}
