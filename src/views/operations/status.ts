/** The warehouse at a glance: what is wanted, what is stored, what is running, and what the upstream answered in the last day. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { DAY, type Interval } from '../../core/interval.ts';
import { type CatalogueAge, readCatalogueAges } from '../../store/catalogue/catalogue-item.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { readCounted } from '../../store/work/counted.ts';
import { leaseIsAlive } from '../../store/work/lease.ts';
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

export type BackfillStatus = {
  readonly id: number;
  readonly requestedAt: Instant;
  readonly interval: Interval;
  readonly quote: Quote;
  readonly from: Instant | null;
  readonly to: Instant | null;
  readonly plannedRequests: number;
  readonly requests: number;
  /** The service runs it: another process can take it over. */
  readonly isDetached: boolean;
  readonly owner: string;
  readonly heartbeatAt: Instant;
  /** Its lease has expired: its process was killed, or cannot reach the database. */
  readonly isSilent: boolean;
};

export type FetchStatus = {
  readonly outcome: string;
  readonly requests: number;
  readonly rows: number;
  readonly lastAt: Instant;
};

export type Status = {
  /** Coins in the list of coins. */
  readonly coins: number;
  readonly series: readonly SeriesStatus[];
  /** Of the tracked series, highest priority first. */
  readonly tiers: readonly TierStatus[];
  /** When `series`, `tiers`, `catalogue` and `fetches` were counted, where there are too many series to count now; null: now. */
  readonly countedAt: Instant | null;
  readonly catalogue: readonly CatalogueAge[];
  readonly backfills: readonly BackfillStatus[];
  /** Of the last 24 hours, most requests first. */
  readonly fetches: readonly FetchStatus[];
  readonly revisions: number;
  /** Rows in quarantine. */
  readonly quarantined: number;
};

/** Fetches of this long are counted. */
const RECENT_MS = DAY;

/** What takes a look at each series, or at each request of a day. */
export type SeriesCounts = Pick<Status, 'series' | 'tiers' | 'catalogue' | 'fetches'>;

/** Under this name a service saves its last count of them. */
export const SERIES_COUNTS = 'series';

const COUNT_AT_LEAST_EVERY_MS = 60_000;
/** Counting keeps the database busy for this part of the time at most. */
const COUNTING_SHARE = 0.02;
/** So many turns of the service late, a count is old: then no service counts. */
const LATE_TURNS = 3;

/** How often a service counts what took so long the last time. */
export function countedEveryMs(tookMs: number): number {
  return Math.max(COUNT_AT_LEAST_EVERY_MS, tookMs / COUNTING_SHARE);
}

export async function countSeriesNow(sql: Sql, now: Instant): Promise<SeriesCounts> {
  const [series, tiers, catalogue, fetches] = await Promise.all([
    readSeries(sql),
    readTierStatus(sql, now),
    readCatalogueAges(sql),
    readFetches(sql, now),
  ]);
  return { series, tiers, catalogue, fetches };
}

/** As a service counted them last, where there are too many to count them now. Without a service they are counted, however long that takes. */
async function readSeriesCounts(sql: Sql, now: Instant): Promise<SeriesCounts & Pick<Status, 'countedAt'>> {
  const last = (await hasManySeries(sql)) ? await readCounted<SeriesCounts>(sql, SERIES_COUNTS) : null;
  const isFresh = last !== null && now - last.countedAt <= LATE_TURNS * countedEveryMs(last.tookMs);
  return isFresh
    ? { ...last.answer, countedAt: last.countedAt }
    : { ...(await countSeriesNow(sql, now)), countedAt: null };
}

export async function readStatus(sql: Sql, now: Instant): Promise<Status> {
  const [counts, seriesCounts, backfills] = await Promise.all([
    sql<{ coins: number; revisions: number; quarantined: number }[]>`
      select (select count(*) from market.coin) as coins, (select count(*) from market.revision) as revisions,
        (select count(*) from market.quarantine) as quarantined`,
    readSeriesCounts(sql, now),
    readRunning(sql, now),
  ]);
  const { coins, revisions, quarantined } = counts[0]!;
  return { coins, ...seriesCounts, backfills, revisions, quarantined };
}

function readSeries(sql: Sql): Promise<SeriesStatus[]> {
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

function readRunning(sql: Sql, now: Instant): Promise<BackfillStatus[]> {
  return sql<BackfillStatus[]>`
    select b.id, b.requested_at, b.interval, b.quote, lower(b.span) as from, upper(b.span) as to, b.planned_requests,
      (select count(*) from ops.fetch f where f.backfill_id = b.id)
        + (select coalesce(sum(p.requests), 0)::bigint from ops.fetch_totals p where p.backfill_id = b.id) as requests,
      b.is_detached, b.owner, b.heartbeat_at, not ${leaseIsAlive(sql, now)} as is_silent
    from ops.backfill b where b.state = 'running' order by b.id`;
}

function readFetches(sql: Sql, now: Instant): Promise<FetchStatus[]> {
  return sql<FetchStatus[]>`
    select outcome, count(*) as requests, sum(rows)::bigint as rows, max(sent_at) as last_at
    from ops.fetch where sent_at > ${now - RECENT_MS}
    group by outcome order by requests desc, outcome`;
}
