/** Refusals: what upstream does not give, and why. A refusal counts only for one plan. After a change of plan, Chandler requests the span again. */
import { isNotNull } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { type RefusalReason, refusal } from '../schema/candles.ts';

export type { RefusalReason };

/** How much of an interval a plan may read, as learned from upstream. */
export type KnownLimit = {
  readonly interval: Interval;
  /** True if upstream has answered beyond the documented limit. */
  readonly open: boolean;
  /** How far back from now the plan may read, in milliseconds. Null when it may not read the interval at all, and when `open`. */
  readonly depthMs: number | null;
  /** The message of upstream; empty when `open`. */
  readonly message: string;
  /** When a request met the limit, or found it open. */
  readonly learnedAt: Instant;
};

/** Records that this plan may read this interval only `depthMs` back from now, or not at all (null). Replaces what was known before. */
export async function recordHistoryLimit(
  sql: SqlOrTransaction,
  limit: {
    readonly plan: string;
    readonly interval: Interval;
    readonly depthMs: number | null;
    readonly message: string;
    readonly refusedAt: Instant;
    /** The request that met the limit. */
    readonly fetchId?: number | null;
  },
): Promise<void> {
  await sql`
    with closed as (
      delete from ops.lifted_history_limit where account_plan = ${limit.plan} and interval = ${limit.interval}::market.candle_interval
    )
    insert into market.refusal as r (account_plan, interval, depth, reason, message, refused_at, fetch_id)
    values (${limit.plan}, ${limit.interval}::market.candle_interval,
      ${limit.depthMs === null ? null : `${limit.depthMs / 1000} seconds`}::interval,
      ${limit.depthMs === null ? 'interval' : 'history limit'}, ${limit.message}, ${limit.refusedAt},
      ${limit.fetchId ?? null})
    on conflict (account_plan, interval) where series_id is null do update
    set depth = excluded.depth, reason = excluded.reason, message = excluded.message, refused_at = excluded.refused_at,
      fetch_id = excluded.fetch_id`;
}

/** Records that upstream answered beyond the documented limit, so the limit does not hold for this plan. */
export async function recordLiftedLimit(
  sql: SqlOrTransaction,
  limit: { readonly plan: string; readonly interval: Interval; readonly liftedAt: Instant },
): Promise<void> {
  await sql`
    with fallen as (
      delete from market.refusal
      where account_plan = ${limit.plan} and interval = ${limit.interval}::market.candle_interval and series_id is null
    )
    insert into ops.lifted_history_limit (account_plan, interval, lifted_at)
    values (${limit.plan}, ${limit.interval}::market.candle_interval, ${limit.liftedAt})
    on conflict (account_plan, interval) do update set lifted_at = excluded.lifted_at`;
}

/** The known history limits of this plan, at most one per interval. */
export async function readHistoryLimits(sql: SqlOrTransaction, plan: string): Promise<KnownLimit[]> {
  return sql<KnownLimit[]>`
    select interval, false as open, (extract(epoch from depth) * 1000)::float8 as depth_ms, message, refused_at as learned_at
    from market.refusal where account_plan = ${plan} and series_id is null
    union all
    select interval, true, null, '', lifted_at from ops.lifted_history_limit where account_plan = ${plan}
    order by interval`;
}

/** An interval that the plan does not include, although series of it are tracked. `priority` is the highest of their tiers. */
export type RefusedInterval = {
  readonly interval: Interval;
  readonly refusedAt: Instant;
  readonly priority: number;
};

export async function readRefusedIntervals(sql: SqlOrTransaction, plan: string): Promise<RefusedInterval[]> {
  return sql<RefusedInterval[]>`
    select r.interval, r.refused_at, max(k.priority) as priority from market.refusal r join ops.tier k on k.interval = r.interval
    where r.account_plan = ${plan} and r.series_id is null and r.depth is null
      and exists (select from ops.tracked tr where tr.tier_id = k.id and tr.ends_at is null)
    group by r.interval, r.refused_at order by r.interval`;
}

/**
 * Deletes refusals of single series that a run got and that may have another cause than the series. If the run ended because upstream refused
 * everything (`everything`), these are all of them; else each 403 that no stored answer followed. History limits stay. Unknown ids stay too if
 * upstream has ever given us candles or prices: otherwise they would end the next run as well.
 */
export async function withdrawRefusals(sql: SqlOrTransaction, backfillId: number, everything: boolean): Promise<void> {
  await sql`
    delete from market.refusal r using ops.fetch f
    where r.series_id is not null and f.id = r.fetch_id and f.backfill_id = ${backfillId}
      and (${everything}::boolean and not (r.reason = 'unknown coin' and exists (
        select from ops.fetch s
        where s.account_id = f.account_id and s.endpoint in ('ohlcv', 'prices') and s.outcome = 'stored' and s.rows > 0))
      or (r.reason = 'forbidden' and not coalesce(f.sent_at < ${lastStored(sql, backfillId)}, false)))`;
}

/** When the backfill sent its last request whose answer was stored. Reads only requests since an hour before the backfill was requested. */
function lastStored(sql: SqlOrTransaction, backfillId: number) {
  return sql`(
    select max(sent_at) from ops.fetch where backfill_id = ${backfillId} and outcome = 'stored'
      and sent_at >= (select least(requested_at, started_at) - interval '1 hour' from ops.backfill where id = ${backfillId}))`;
}

type Refused = Readonly<Pick<typeof refusal.$inferInsert, 'reason' | 'message' | 'refusedAt' | 'fetchId'>> & {
  readonly plan: string;
  readonly seriesId: number;
  readonly span: Span;
};

/** Records that upstream refused this span of this series to this plan. A repetition only renews the refusal. */
export async function recordRefusal(
  sql: SqlOrTransaction,
  { plan, seriesId, span, reason, message, refusedAt, fetchId = null }: Refused,
): Promise<void> {
  const said = { reason, message, refusedAt, fetchId };
  await tables(sql)
    .insert(refusal)
    .values({ accountPlan: plan, seriesId, span, ...said })
    .onConflictDoUpdate({
      target: [refusal.seriesId, refusal.accountPlan, refusal.span],
      targetWhere: isNotNull(refusal.seriesId),
      set: said,
    });
}
