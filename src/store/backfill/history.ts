/** The past of tracked series that belongs to no backfill. The audit of gaps queues backfills for it. */
import type { Instant } from '../../clock.ts';
import type { Interval, SeriesSpan } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { leaseIsAlive } from '../work/lease.ts';

/** The coins are in the order of their ranks, best first. */
export type HistoryGroup = SeriesSpan;

type HistoryQuery = {
  /** For each interval, the part of the past that counts; on the grid. */
  readonly reach: ReadonlyMap<Interval, Span>;
  readonly now: Instant;
  /** A backfill that ended after this instant, and could not fetch everything, still counts. */
  readonly endedSince: Instant;
  /** Limits the result to these coins, and to groups that overlap this span; null means no limit. */
  readonly of: HistoryGroup | null;
};

/** Takes the lock for this work until the end of the transaction, after the process that holds it at the moment. */
export async function lockHistory(tx: SqlOrTransaction): Promise<void> {
  await takeLock(tx, 'backfills of the past');
}

/**
 * The past that the rules want and that does not belong to a backfill yet, in groups, because each group becomes one backfill. The most
 * urgent group is first.
 */
export async function readHistoryGroups(sql: SqlOrTransaction, query: HistoryQuery): Promise<HistoryGroup[]> {
  const { reach, of } = query;
  const isRequested =
    of === null
      ? sql`true`
      : sql`t.interval = ${of.interval} and t.quote = ${of.quote} and t.coin_id = any(${of.coinIds as string[]}::text[])`;
  // One aggregation instead of a join of wanted and owned spans, because Postgres cannot estimate how many coins an array has.
  return sql<HistoryGroup[]>`
    with reach as (
      select r.interval::market.candle_interval, r.span, market.width_of(r.interval::market.candle_interval) as width
      from unnest(${[...reach.keys()]}::text[], ${[...reach.values()]}::tstzrange[]) as r(interval, span)
    ), part as (
      select t.interval, t.quote, t.coin_id, t.priority, nullif(c.rank, 0) as rank, null::tstzrange as owned,
        r.span * tstzrange(date_bin(r.width, t.since + r.width - interval '1 microsecond', 'epoch'), null) as wanted
      from ops.track_target t join reach r on r.interval = t.interval join market.coin c on c.id = t.coin_id
      where ${isRequested}
      union all
      -- The past grows while a backfill of it waits or runs. The refresh schedule fetches new slots, so one backfill is enough.
      -- A cancelled one counts only for its own span: nobody has declined later gaps.
      select b.interval, b.quote, c.coin_id, null, null,
        case when b.spec ? 'history' and b.state <> 'cancelled' then tstzrange(lower(b.span), null) else b.span end, null
      from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
      where ${isOwner(sql, query)}
    ), of_series as (
      select interval, quote, coin_id, max(priority) as priority, min(rank) as rank,
        range_agg(wanted) filter (where wanted is not null) - coalesce(range_agg(owned) filter (where owned is not null), '{}') as spans
      from part group by interval, quote, coin_id having count(wanted) > 0
    )
    select s.interval, s.quote, r as span, array_agg(s.coin_id order by s.rank nulls last, s.coin_id) as coin_ids
    from of_series s cross join lateral unnest(s.spans) r
    where ${of === null ? sql`true` : sql`r && ${of.span}::tstzrange`}
    group by s.interval, s.quote, r order by max(s.priority) desc, s.interval desc, s.quote, r`;
}

/**
 * An SQL condition: an open backfill, a running command, or a recent backfill that could not fetch everything. Also a cancelled backfill of the
 * past (`history` in its `spec`): it counts until it is resumed, or a rule is made or changed. A cancelled backfill that a person requested does
 * not count, because the rules still want the past.
 */
function isOwner(sql: SqlOrTransaction, { now, endedSince }: HistoryQuery) {
  return sql`(
    (is_detached and state in ('queued', 'running', 'paused'))
    or (not is_detached and state = 'running' and ${leaseIsAlive(sql, now)})
    or (is_detached and spec ? 'history' and state = 'cancelled' and not exists (
      select from ops.track t where t.interval = b.interval and t.quote = b.quote and t.created_at > b.finished_at))
    or (is_detached and finished_at > ${endedSince} and state <> 'cancelled' and (state <> 'done' or message is not null)))`;
}
