/**
 * Counts that read each series, or each request of a day. If there are many, a service counts from time to time, and everybody else gets its last
 * count, with the time of that count.
 */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { DAY, type Interval } from '../../core/interval.ts';
import { type CatalogueAge, readCatalogueAges } from '../../store/catalogue/catalogue-item.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { readCounted } from '../../store/work/counted.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { hasManySeries } from './series-filter.ts';
import { readTierStatus, type TierStatus } from './tiers.ts';

export type SeriesStatus = {
  readonly interval: Interval;
  readonly quote: Quote;
  readonly series: number;
  readonly slotsWanted: number;
  readonly slotsCovered: number;
  /** Wanted up to now and not covered, including slots too recent for a final answer; the sum of all gaps. */
  readonly slotsMissing: number;
  /** Of the missing slots, those too recent for a final answer. */
  readonly slotsUnsettled: number;
  /** Candles inside coverage, as recorded when it was granted. */
  readonly candles: number;
  /** The end of coverage, of the most advanced series and of the least advanced one. */
  readonly finalUntil: Instant | null;
  readonly finalUntilOldest: Instant | null;
};

type FetchStatus = {
  readonly outcome: string;
  readonly requests: number;
  readonly rows: number;
  readonly lastAt: Instant;
};

export type SeriesCounts = {
  readonly series: readonly SeriesStatus[];
  /** The tiers of tracked series, highest priority first. */
  readonly tiers: readonly TierStatus[];
  readonly catalogue: readonly CatalogueAge[];
  /** The requests of the last 24 hours, by outcome, most requests first. */
  readonly fetches: readonly FetchStatus[];
};

/** `series`, `tiers`: null when no service has counted them, and they are too many to count while somebody waits. */
export type DatedCounts = Omit<SeriesCounts, 'series' | 'tiers'> & {
  readonly series: SeriesCounts['series'] | null;
  readonly tiers: SeriesCounts['tiers'] | null;
  /** When a service counted them; null: the caller counted them just now. */
  readonly countedAt: Instant | null;
};

/** Requests of this last period are counted. */
const RECENT_MS = DAY;

/**
 * The name under which a service saves its last count. Services and commands of several versions share it, so another form of `SeriesCounts` needs
 * another name.
 */
export const SERIES_COUNTS = 'series';

const COUNT_AT_LEAST_EVERY_MS = 60_000;
/** Counting keeps the database busy for at most this part of the time. */
const COUNTING_SHARE = 0.02;
/** A count that is older than this many turns of the service is not shown: the service cannot count. */
const LATE_TURNS = 3;

/** How often a service counts if the last count took this long. */
export function countedEveryMs(tookMs: number): number {
  return Math.max(COUNT_AT_LEAST_EVERY_MS, tookMs / COUNTING_SHARE);
}

/** Whether a service with these roles counts. One that only answers callers does not. */
export function countsSeries(roles: readonly string[]): boolean {
  return roles.some((role) => role !== 'http');
}

/** Whether a service that counts is running. */
export async function isAnyCounting(sql: SqlOrTransaction, now: Instant): Promise<boolean> {
  return (await liveInstances(sql, now)).some(({ roles }) => countsSeries(roles));
}

export async function countSeriesNow(sql: SqlOrTransaction, now: Instant): Promise<SeriesCounts> {
  const [series, tiers, others] = await Promise.all([readSeries(sql), readTierStatus(sql, now), readOthers(sql, now)]);
  return { series, tiers, ...others };
}

/** The counts that do not read each series. */
async function readOthers(sql: SqlOrTransaction, now: Instant): Promise<Omit<SeriesCounts, 'series' | 'tiers'>> {
  const [catalogue, fetches] = await Promise.all([readCatalogueAges(sql), readFetches(sql, now)]);
  return { catalogue, fetches };
}

/**
 * Few series are counted now. Many are counted now only when `countsMany` (a minute for millions); otherwise this returns the last count of a
 * service. When no service counts, an old count is not shown, because nothing would correct it.
 */
export async function readSeriesCounts(sql: Sql, now: Instant, countsMany: boolean): Promise<DatedCounts> {
  if (countsMany || !(await hasManySeries(sql))) return { ...(await countSeriesNow(sql, now)), countedAt: null };
  const last = await readServiceCounts(sql, now);
  return last ?? { series: null, tiers: null, ...(await readOthers(sql, now)), countedAt: null };
}

/** Null: no service keeps the counts up to date. */
async function readServiceCounts(sql: Sql, now: Instant): Promise<DatedCounts | null> {
  return (await isAnyCounting(sql, now)) ? readLastCounts(sql, now) : null;
}

/** What a service counted last; null when it is too old to be shown. */
export async function readLastCounts(
  sql: Sql,
  now: Instant,
): Promise<(SeriesCounts & { readonly countedAt: Instant }) | null> {
  const last = await readCounted<SeriesCounts>(sql, SERIES_COUNTS);
  if (last === null) return null;
  const age = now - last.countedAt;
  // A count in the future was made before a clock was set back, so its age is unknown.
  if (age < -MOST_SKEW_MS || age > LATE_TURNS * countedEveryMs(last.tookMs)) return null;
  return { ...last.answer, countedAt: last.countedAt };
}

/** Looks at each series: half a second for `MANY_SERIES`. */
export function readSeries(sql: SqlOrTransaction): Promise<SeriesStatus[]> {
  return sql<SeriesStatus[]>`
    select c.interval, c.quote, count(*) as series, sum(c.slots_wanted)::bigint as slots_wanted,
      sum(c.slots_covered)::bigint as slots_covered, sum(c.slots_missing)::bigint as slots_missing,
      sum(c.slots_unsettled)::bigint as slots_unsettled, sum(s.covered_candles)::bigint as candles,
      max(upper(s.covered)) as final_until,
      nullif(min(coalesce(upper(s.covered), '-infinity')), '-infinity') as final_until_oldest
    from market.coverage c
    join market.series s on s.coin_id = c.coin_id and s.quote = c.quote and s.interval = c.interval
    group by c.interval, c.quote order by c.interval desc, c.quote desc`;
}

function readFetches(sql: SqlOrTransaction, now: Instant): Promise<FetchStatus[]> {
  return sql<FetchStatus[]>`
    select outcome, count(*) as requests, sum(rows)::bigint as rows, max(sent_at) as last_at
    from ops.fetch where sent_at > ${now - RECENT_MS}
    group by outcome order by requests desc, outcome`;
}
