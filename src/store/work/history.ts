/** The past of tracked series that no backfill has: what the audit of gaps makes backfills of. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { leaseIsAlive } from './lease.ts';

export type HistoryGroup = {
  readonly interval: Interval;
  readonly quote: Quote;
  readonly span: Span;
  /** Best-ranked first. */
  readonly coinIds: readonly string[];
};

export type HistoryQuery = {
  /** By interval the part of the past that counts, on the grid. */
  readonly reach: ReadonlyMap<Interval, Span>;
  readonly now: Instant;
  /** A backfill that has ended since then, and could not fetch everything, still counts. */
  readonly endedSince: Instant;
};

/** Any fixed number: who holds this advisory lock makes backfills of the past, so that no slot gets two. */
const LOCK = 4_242_031;

/** Waits for whoever does it at the moment; until the end of the transaction nobody else does. */
export async function lockHistory(tx: SqlOrTransaction): Promise<void> {
  await tx`select pg_advisory_xact_lock(${LOCK})`;
}

/**
 * What the rules want of the past, without what belongs to a backfill already; grouped, because each group makes one backfill. The most
 * urgent first.
 */
export async function readHistoryGroups(sql: SqlOrTransaction, query: HistoryQuery): Promise<HistoryGroup[]> {
  const { reach } = query;
  return sql<HistoryGroup[]>`
    with reach as (
      select * from unnest(${[...reach.keys()]}::text[], ${[...reach.values()]}::tstzrange[]) as r(interval, span)
    ), wanted as materialized (
      select s.coin_id, s.interval, s.quote, s.priority, nullif(c.rank, 0) as rank,
        r.span * tstzrange(date_bin(w.width, t.since + w.width - interval '1 microsecond', 'epoch'), null) as span
      from ops.track_target t
      join market.series s on s.coin_id = t.coin_id and s.interval = t.interval and s.quote = t.quote
      join ops.tracked tr on tr.series_id = s.id and tr.ends_at is null
      join market.coin c on c.id = s.coin_id
      join reach r on r.interval::market.candle_interval = s.interval
      cross join lateral (select market.width_of(s.interval) as width) w
    ), owned as materialized (
      select b.interval, b.quote, c.coin_id,
        -- The past grows while a backfill of it waits or runs: freshness keeps what comes, and one backfill is enough.
        range_agg(case when b.spec ? 'history' then tstzrange(lower(b.span), null) else b.span end) as spans
      from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
      where ${isOwner(sql, query)}
      group by b.interval, b.quote, c.coin_id
    )
    select w.interval, w.quote, r as span, array_agg(w.coin_id order by w.rank nulls last, w.coin_id) as coin_ids
    from wanted w left join owned o on o.interval = w.interval and o.quote = w.quote and o.coin_id = w.coin_id
    cross join lateral unnest(tstzmultirange(w.span) - coalesce(o.spans, '{}')) r
    group by w.interval, w.quote, r order by max(w.priority) desc, w.interval desc, w.quote, r`;
}

/**
 * An open backfill, or a running command. Also one of the past that was cancelled: it counts until it is resumed, or a rule is made or changed.
 * What a person cancelled does not count: the rules want it all the same.
 */
function isOwner(sql: SqlOrTransaction, { now, endedSince }: HistoryQuery) {
  return sql`(
    (is_detached and state in ('queued', 'running', 'paused'))
    or (not is_detached and state = 'running' and ${leaseIsAlive(sql, now)})
    or (is_detached and spec ? 'history' and state = 'cancelled' and not exists (
      select from ops.track t where t.interval = b.interval and t.quote = b.quote and t.created_at > b.finished_at))
    or (is_detached and finished_at > ${endedSince} and state <> 'cancelled' and (state <> 'done' or message is not null)))`;
}
