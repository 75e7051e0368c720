/** Claims that need a second opinion before they are believed (`core/second-opinion.ts`), in one table that all processes share. */
import { and, getTableColumns, lt } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import {
  type ClaimAnswer,
  type ClaimName,
  judgeAnswer,
  RULES,
  type Rule,
  type Standing,
} from '../../core/second-opinion.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { type Evidence, secondOpinion } from '../schema/requests.ts';
import { storableJson } from '../values/storable-text.ts';

export type { Evidence };
export type Claim = Standing & { readonly evidence: Evidence | null };

/** Identifies a claim; `key` names its subject. Claims about slots have a span of a series instead of a key. */
export type ClaimId = { readonly claim: ClaimName; readonly key: string };

const { evidence, answers, requestedAt, retryAt } = getTableColumns(secondOpinion);
const STANDING = { evidence, answers, requestedAt, retryAt };

/** How one more answer relates to a claim. `rule` replaces the rule of the claim. */
export type Statement = Pick<ClaimAnswer, 'says'> & { readonly evidence?: Evidence | null; readonly rule?: Rule };

/** The state of a claim after an answer. `claim` is null when the claim is dropped. */
export type Opinion =
  | { readonly kind: 'waiting' | 'believed'; readonly claim: Claim }
  | { readonly kind: 'dropped'; readonly claim: null };

export async function findClaim(sql: SqlOrTransaction, id: ClaimId): Promise<Claim | null> {
  const [row] = await tables(sql).select(STANDING).from(secondOpinion).where(matches(secondOpinion, id));
  return row ?? null;
}

/** All claims of these names whose key begins with `prefix` and that were requested after `since`. */
export async function readClaims(
  sql: SqlOrTransaction,
  {
    claims,
    prefix,
    since,
  }: { readonly claims: readonly ClaimName[]; readonly prefix: string; readonly since: Instant },
): Promise<(ClaimId & Claim)[]> {
  return sql<(ClaimId & Claim)[]>`
    select claim, key, evidence, answers, requested_at, retry_at from ops.second_opinion
    where key is not null and claim = any(${claims as string[]}::text[]) and starts_with(key, ${prefix}) and requested_at > ${since}`;
}

/**
 * Weighs one more answer about a claim, and stores the new state of the claim. `state` is called with the claim before the answer (null when
 * there is none) under its lock, which lasts until the end of the transaction `tx`. A believed claim stays until it is dropped or forgotten.
 */
export async function recordAnswer(
  tx: SqlOrTransaction,
  id: ClaimId,
  answer: Omit<ClaimAnswer, 'says'>,
  state: (before: Claim | null) => Statement,
): Promise<Opinion> {
  const ofId = matches(secondOpinion, id);
  const before = await lockClaim(tx, id, answer.receivedAt);
  const { says, evidence = null, rule = RULES[id.claim] } = state(before);
  const weighed = judgeAnswer(before, { ...answer, says }, rule);
  if (weighed.kind === 'dropped') {
    await dropClaim(tx, id);
    return { kind: 'dropped', claim: null };
  }
  const claim = { ...weighed.standing, evidence: weighed.isCounted ? storable(evidence) : before!.evidence };
  await tables(tx).update(secondOpinion).set(claim).where(ofId);
  return { kind: weighed.kind, claim };
}

/** Locks the claim and returns it; null when there is none. First deletes the claims of this name that are forgotten by now. */
async function lockClaim(tx: SqlOrTransaction, { claim, key }: ClaimId, now: Instant): Promise<Claim | null> {
  const { forgetMs } = RULES[claim];
  if (Number.isFinite(forgetMs)) {
    const forgotten = and(matches(secondOpinion, { claim }), lt(secondOpinion.requestedAt, now - forgetMs));
    await tables(tx).delete(secondOpinion).where(forgotten);
  }
  // A row without answers is not a claim yet: it exists to be locked.
  const [row] = await tx<Claim[]>`
    insert into ops.second_opinion as o (claim, key, answers, requested_at, retry_at) values (${claim}, ${key}, 0, ${now}, ${now})
    on conflict (claim, key) where key is not null do update set answers = o.answers
    returning evidence, answers, requested_at, retry_at`;
  return row!.answers === 0 ? null : row!;
}

function storable(evidence: Evidence | null): Evidence | null {
  return evidence && JSON.parse(storableJson(evidence));
}

/** Deletes a claim that was wrong, or that is now stored elsewhere as a fact. */
export async function dropClaim(sql: SqlOrTransaction, id: ClaimId): Promise<void> {
  await tables(sql).delete(secondOpinion).where(matches(secondOpinion, id));
}

/**
 * Slots that have an answer, but not a final one. `provisional`: too young to be final; needs no second opinion, only a later answer.
 * `unconfirmed`: without a candle; `answers` is 0 when the only answer does not count as evidence. `malformed`: the row cannot be true.
 * `implausible`: nothing of the answer was stored.
 */
export type Pending = Standing & {
  readonly span: Span;
  readonly claim: 'provisional' | 'unconfirmed' | 'malformed' | 'implausible';
  /** For `implausible`: what is implausible, and a digest of the candles. */
  readonly evidence?: Evidence | null | undefined;
};

export function clipPending(list: readonly Pending[], to: Spans): Pending[] {
  return list.flatMap((p) => intersect([p.span], to).map((part) => ({ ...p, span: part })));
}

/** Replaces the claims `before` about slots of a series by those in `after`. The caller must hold the lock of the series. */
export async function replacePending(
  tx: SqlOrTransaction,
  seriesId: number,
  before: readonly Pending[],
  after: readonly Pending[],
): Promise<void> {
  if (before.length > 0) {
    await tx`delete from ops.second_opinion where series_id = ${seriesId} and span = any(${before.map((p) => p.span)}::tstzrange[])`;
  }
  if (after.length === 0) return;
  await tx`insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at, evidence)
    select ${seriesId}, span, claim, answers, requested_at, retry_at, evidence::jsonb
    from unnest(${after.map((p) => p.span)}::tstzrange[], ${after.map((p) => p.claim)}::text[],
      ${after.map((p) => p.answers)}::int[], ${after.map((p) => p.requestedAt)}::timestamptz[],
      ${after.map((p) => p.retryAt)}::timestamptz[],
      ${after.map((p) => (p.evidence ? storableJson(p.evidence) : null))}::text[]) as u(span, claim, answers, requested_at, retry_at, evidence)`;
}

/**
 * Is a second answer due somewhere that could prove nothing, because the latest list of coins is older than the first answer? All
 * three are compared by their as-of instants.
 */
export async function absencesAwaitList(sql: SqlOrTransaction, now: Instant): Promise<boolean> {
  const [row] = await sql<{ awaits: boolean }[]>`
    select exists (
      select from ops.second_opinion p
      where p.claim = 'unconfirmed' and p.answers > 0 and p.retry_at <= ${now} and not exists (
        select from ops.fetch f cross join unnest(f.unconfirmed_slots) as d (span)
        where f.series_id = p.series_id and f.unconfirmed_slots && p.span and d.span && p.span
          and f.as_of <= (select max(last_seen_at) from market.coin)
          and not exists (select from ops.fetch g where g.series_id = f.series_id and g.outcome = 'stored' and g.as_of > f.as_of
            and coalesce(g.answered_slots, tstzmultirange(g.span)) && d.span)
      )
    ) as awaits`;
  return row!.awaits;
}
