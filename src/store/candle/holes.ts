/** Finds holes (covered slots that only one answer showed to be empty, `market.series.empty_once`) that are worth a second request. */
import type { Instant } from '../../clock.ts';
import { DAY, INTERVAL_MS } from '../../core/interval.ts';
import { LONGEST_CACHED_MS, RULES } from '../../core/second-opinion.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import type { series } from '../schema/candles.ts';
import { stillRefused } from './gaps.ts';
import { storedRows } from './stored.ts';

export type SeriesHoles = Readonly<Pick<typeof series.$inferSelect, 'coinId' | 'quote' | 'interval'>> & {
  readonly seriesId: number;
  /** Wanted slots that are empty according to one answer only. */
  readonly holes: Spans;
};

/** An answer that comes this long after the first one counts as a second one, whatever cache it comes from. */
const INDEPENDENT_MS = RULES.unconfirmed.waitMs + LONGEST_CACHED_MS;
/** `ops.fetch.subject` of the requests about holes. */
export const HOLES = 'holes';
/** If an answer did not settle a hole, the next one may be the same. So the next request about the hole waits this long. */
const ASKED_IN_VAIN_MS = 7 * DAY;
/** If the last request about a series failed, its other holes wait this long, too: a coin that always fails must not use up the requests of others. */
const FAILED_MS = DAY;

/** All series with holes: highest priority first, then those with the most holes. */
export async function readHoles(sql: SqlOrTransaction): Promise<SeriesHoles[]> {
  return sql<SeriesHoles[]>`
    select s.id as series_id, s.coin_id, s.quote, s.interval, h.holes
    from market.series s cross join lateral (select s.empty_once * s.wanted as holes) h
    where not isempty(s.empty_once) and not isempty(h.holes)
    order by s.priority desc,
      (select sum(extract(epoch from upper(r) - lower(r))) from unnest(h.holes) r) / ops.seconds_of(s.interval) desc, s.id`;
}

/**
 * The due holes of a series as spans to request, in order of time. Each span includes the stored candles on both sides of its hole: only an answer
 * with these candles proves that the slots between them are empty. A hole without a candle within `limit` slots on either side is left out,
 * because no request can prove it. Four kinds of holes are not due: those whose answer is so recent that another one is not independent, those
 * requested within the last week without a result, those that upstream refuses to this plan, and all holes of a series whose last request about
 * holes failed within the last day.
 */
export async function readDueHoles(
  sql: SqlOrTransaction,
  { seriesId, interval }: Pick<SeriesHoles, 'seriesId' | 'interval'>,
  {
    holes,
    limit,
    now,
    plan,
  }: { readonly holes: Spans; readonly limit: number; readonly now: Instant; readonly plan: string },
): Promise<Span[]> {
  const width = INTERVAL_MS[interval];
  const reach = sql`${(limit * width) / 1000} * interval '1 second'`;
  const stored = storedRows(sql, sql`${seriesId}::int`, interval);
  // Small evidence steps share a row, whose `as_of` is that of its newest step. So holes in such a row become due when it no longer grows.
  const rows = await sql<{ before: Instant; after: Instant }[]>`
    with due as materialized (
      select ${holes}::tstzmultirange
        - coalesce((select range_agg(e.slots) from market.evidence e
          where e.series_id = ${seriesId} and e.as_of > ${now - INDEPENDENT_MS} and e.slots && ${holes}::tstzmultirange), '{}')
        - coalesce((select range_agg(f.span) from ops.fetch f
          where f.series_id = ${seriesId} and f.subject = ${HOLES} and f.sent_at > ${now - ASKED_IN_VAIN_MS}
            -- Implied by the other conditions, but lets Postgres use the index: no answer lags further behind.
            and f.as_of > ${now - ASKED_IN_VAIN_MS - 2 * DAY}
            and f.outcome not in ('limited', 'unavailable', 'moved')), '{}')
        - coalesce((select range_agg(r.span) from market.refusal r where r.series_id = ${seriesId}
          and r.account_plan = ${plan} and ${stillRefused(sql, now)}), '{}') as holes
    )
    select b.open_time as before, a.open_time as after
    from (select holes from due where not coalesce((
      select f.outcome in ('unavailable', 'malformed', 'moved', 'unknown route') from ops.fetch f
      where f.series_id = ${seriesId} and f.subject = ${HOLES} and f.sent_at between ${now - FAILED_MS} and ${now}
        and f.as_of > ${now - FAILED_MS - 2 * DAY}
      order by f.sent_at desc, f.id desc limit 1), false)) due
    cross join lateral unnest(due.holes) h
    cross join lateral (select c.open_time from ${stored} c
      where c.open_time < lower(h) and c.open_time >= lower(h) - ${reach} order by c.open_time desc limit 1) b
    cross join lateral (select c.open_time from ${stored} c
      where c.open_time >= upper(h) and c.open_time < upper(h) + ${reach} order by c.open_time limit 1) a
    order by lower(h)`;
  return rows.map(({ before, after }) => ({ from: before, to: after + width }));
}
