/** How a question about one thing of the catalogue can end, and how long what went wrong waits. */
import type { Clock, Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import type { CatalogueItem, CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import type { CatalogueRefusal } from '../../store/catalogue/catalogue-refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { OriginCheck } from '../request/origin.ts';
import type { SentRequest } from '../request/send-request.ts';
import type { RunContext } from '../schedule-run.ts';
import type { Session } from '../session.ts';
import type { ToolRegistry } from './tool-registry.ts';

/** What is asked and stored with, shared by all kinds. */
export type Parts = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Pick<Session, 'sendRequest' | 'tools' | 'accountId' | 'plan'>;
  /** Null: only REST is used. */
  readonly book: ToolRegistry | null;
  readonly checkOrigin: OriginCheck;
};

export type Asking = {
  readonly kind: CatalogueKind;
  readonly item: CatalogueItem;
  readonly context: RunContext;
  readonly asked: SentRequest;
};

/** How one question ended. */
export type ItemOutcome =
  | { readonly kind: 'stored' }
  /** Of no use, and remembered: the next one is asked. */
  | { readonly kind: 'passed' }
  /** It may be upstream, and not this one thing. */
  | { readonly kind: 'trouble'; readonly message: string }
  /** Nothing more can be asked now. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string };

/** How long an unknown or a failing item waits; the waits are stored, so they are used with `WHOLE_BOUND`. */
export const unknownBackoff = createBackoff({ firstMs: DAY, mostMs: 30 * DAY, factor: 4 });
export const failureBackoff = createBackoff({ firstMs: 60_000, mostMs: DAY, factor: 4 });

/** A refusal that is believed. */
const BELIEVED = 3;
const DOUBTED_AFTER_MS = 30 * DAY;

/** Null: it may be asked. The first refusals may be chance; one that is believed is asked again once a month. */
export function offUntil({ times, reason, message, refusedAt }: CatalogueRefusal, now: Instant) {
  const isBelieved = times >= BELIEVED;
  const until = Math.min(refusedAt, now) + (isBelieved ? DOUBTED_AFTER_MS : failureBackoff(times - 1, WHOLE_BOUND));
  if (until <= now) return null;
  const why = reason === 'unknown route' ? 'upstream has no such data' : 'upstream does not give this to the plan';
  return { kind: 'held', until, reason: isBelieved ? `${why}, until it changes: ${message}` : message } as const;
}
