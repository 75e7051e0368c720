/** Computes what is missing, by set arithmetic in Postgres: requested − covered − what need not or cannot be requested now. */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import type { SeriesName, SeriesSpan } from '../../core/interval.ts';
import { REQUEST_AGAIN_MS, WITHIN_RUN_MS } from '../../core/second-opinion.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { toRange } from '../values/multirange.ts';

/** `span` is what the caller wants, on the grid. The query clips it for each coin to the beginning of the coin's data. */
type GapsQuery = SeriesSpan & {
  readonly now: Instant;
  /** Pending spans requested at or after this are not requested again: a run requests each slot once, except claims that are due within seconds. */
  readonly requestedSince: Instant;
  /** Only the refusals made to this plan count. */
  readonly plan: string;
};

export type CoinGaps = {
  readonly coinId: string;
  /** Null if the series does not exist, because nobody has wanted it yet. */
  readonly seriesId: number | null;
  /** Worth a request now. */
  readonly gaps: Spans;
  /** Missing, answered but not finally, and not worth another request yet. */
  readonly waiting: Spans;
  /** Missing, and upstream will not give it to this plan (history limits of the plan not included). */
  readonly refused: Spans;
};

/** The coins of one page in the given order, without those that miss nothing. Reads `market.series` and small tables, never candles. */
export async function readGaps(sql: SqlOrTransaction, query: GapsQuery): Promise<CoinGaps[]> {
  // A lateral join with a limit makes Postgres look once into each unique index per coin, whatever it estimates for tables that it has
  // not analysed yet. (With plain joins, the first plan of 50,000 series read all of them for each coin.)
  return sql<CoinGaps[]>`
    with missing as (
      select asked.coin_id, asked.position, s.id as series_id,
        tstzmultirange(${query.span}::tstzrange
          * tstzrange(coalesce(date_bin(market.width_of(${query.interval}::market.candle_interval), c.first_data_at, 'epoch'), '-infinity'), null))
          - coalesce(s.covered, '{}') as missing
      from unnest(${query.coinIds as string[]}::text[]) with ordinality as asked(coin_id, position)
      left join lateral (select first_data_at from market.coin where id = asked.coin_id limit 1) c on true
      left join lateral (select id, covered from market.series
        where coin_id = asked.coin_id and quote = ${query.quote} and interval = ${query.interval}::market.candle_interval
        limit 1) s on true
    ), split as materialized (
      select m.*,
        coalesce((select range_agg(p.span) from ops.second_opinion p where p.series_id = m.series_id
          and (p.retry_at > ${query.now} or ${wasRequestedSince(sql, sql`${query.requestedSince}::timestamptz`, query.now)})), '{}') as waiting,
        coalesce((select range_agg(r.span) from market.refusal r where r.series_id = m.series_id
          and r.account_plan = ${query.plan} and ${stillRefused(sql, query.now)}), '{}') as refused
      from missing m where not isempty(m.missing)
    )
    select coin_id, series_id, missing - waiting - refused as gaps, missing * waiting - refused as waiting,
      missing * refused as refused
    from split order by position`;
}

/**
 * A stretch of one series that a worker is about to request. Coin, quote and interval are what the worker expects of the series: candles of
 * another coin, quote or interval must never be stored in it.
 */
export type OpenGapsQuery = SeriesName & {
  /** Null if the request is for the freshness of a tracked series, or for holes. */
  readonly backfillId: number | null;
  /** True for a request about holes: worth a request are then only covered slots in the stretch that are empty according to one answer. */
  readonly isOfHoles?: boolean;
  readonly seriesId: number;
  readonly span: Span;
  readonly requestedSince: Instant;
};

/**
 * A query that returns `position` (from 1) and `gaps`: the part of each stretch that is still worth a request. A worker must know it
 * before it spends a request. Nothing is worth one if the backfill has ended, if the series is no longer tracked, or if the series
 * is not the one that the worker expects.
 *
 * A backfill requests only what is due. The newest end of a tracked series is requested before it can be final, so that it is fresh.
 * Once no rule wants the series any more, it too is requested only where a request is due, to get its final answers.
 */
export function openGaps(
  sql: SqlOrTransaction,
  queries: readonly OpenGapsQuery[],
  { now, plan }: { readonly now: Instant; readonly plan: string },
) {
  const list = queries.map((query) => [
    query.backfillId,
    query.seriesId,
    query.coinId,
    query.quote,
    query.interval,
    toRange(query.span),
    query.requestedSince / 1000,
    query.isOfHoles ?? false,
  ]);
  return sql`
    select a.position, case when s.id is null then '{}' else
      case when a.is_of_holes then tstzmultirange(a.span) * s.empty_once else tstzmultirange(a.span) - s.covered
        - coalesce((select range_agg(p.span) from ops.second_opinion p where p.series_id = s.id
          and ((p.retry_at > ${now} and not s.is_fresh) or ${wasRequestedSince(sql, sql`a.asked_since`, now)})), '{}') end
      - coalesce((select range_agg(r.span) from market.refusal r where r.series_id = s.id
          and r.account_plan = ${plan} and ${stillRefused(sql, now)}), '{}')
      end as gaps
    from (
      -- JSON instead of arrays: Postgres estimates the length of a known array and of an unknown one differently. So it would plan this
      -- statement, which every request needs, anew each time (four times as long as running it).
      select position, (q->>0)::int as backfill_id, (q->>1)::int as series_id, q->>2 as coin_id, q->>3 as quote, q->>4 as interval,
        (q->>5)::tstzrange as span, to_timestamp((q->>6)::float8) as asked_since, (q->>7)::boolean as is_of_holes
      from jsonb_array_elements(${JSON.stringify(list)}::text::jsonb) with ordinality as u(q, position)
    ) a
    left join lateral (
      select id, covered, empty_once, a.backfill_id is null and tr.ends_at is null as is_fresh
      from market.series left join ops.tracked tr on tr.series_id = id and a.backfill_id is null
      where id = a.series_id and coin_id = a.coin_id and quote = a.quote and interval = a.interval::market.candle_interval
        and case when a.is_of_holes then true when a.backfill_id is null then tr.series_id is not null
          else exists (select from ops.backfill b where b.id = a.backfill_id and b.state = 'running') end
      limit 1
    ) s on true`;
}

/**
 * The earliest instant at which the same run must repeat a request for a slot that it has requested since `requestedSince`. Null if there is none.
 * Slots that were due by `now` do not count.
 */
export async function readDueWithinRun(
  sql: SqlOrTransaction,
  { coinIds, quote, interval, span, now, requestedSince: since }: Omit<GapsQuery, 'plan'>,
): Promise<Instant | null> {
  const [row] = await sql<{ dueAt: Instant | null }[]>`
    select min(p.retry_at) as due_at from ops.second_opinion p join market.series s on s.id = p.series_id
    where s.coin_id = any(${coinIds as string[]}::text[]) and s.quote = ${quote}
      and s.interval = ${interval}::market.candle_interval and p.span && ${span}::tstzrange
      and p.requested_at >= ${since} and p.retry_at > ${now} and ${isDueWithinRun(sql)}`;
  return row!.dueAt;
}

/** A `requested_at` in the future was written before the clock was set back, so it proves nothing. */
function wasRequestedSince(sql: SqlOrTransaction, since: ReturnType<SqlOrTransaction>, now: Instant) {
  return sql`(p.requested_at >= ${since} and p.requested_at <= ${now + MOST_SKEW_MS} and not ${isDueWithinRun(sql)})`;
}

/** True for a claim that the same run repeats. A slot that is only too young waits for a later run, or every series would cost one more request. */
function isDueWithinRun(sql: SqlOrTransaction) {
  return sql`(p.claim = 'implausible' and p.retry_at <= p.requested_at + make_interval(secs => ${(2 * REQUEST_AGAIN_MS) / 1000})
    or p.claim <> 'provisional' and p.retry_at > p.requested_at
    and p.retry_at <= p.requested_at + make_interval(secs => ${WITHIN_RUN_MS / 1000}))`;
}

/** A refusal of one series may have been temporary, or sent by a gateway. So it counts for a day, and then one request tests it again. */
export function stillRefused(sql: SqlOrTransaction, now: Instant) {
  return sql`r.refused_at > ${now}::timestamptz - interval '1 day'`;
}
