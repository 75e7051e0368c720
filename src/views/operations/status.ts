/** The warehouse at a glance: what is wanted, what is there, what is under way, and what upstream answered lately. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import { type CatalogueAge, readCatalogueAges } from '../../store/catalogue/catalogue-item.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { SILENT_AFTER_MS } from '../../store/work/backfill.ts';
import { toInstant } from './instant.ts';
import { readTierStatus, type TierStatus } from './tiers.ts';

export type SeriesStatus = {
  readonly interval: Interval;
  readonly quote: Quote;
  readonly series: number;
  readonly slotsWanted: number;
  readonly slotsCovered: number;
  /** Wanted up to now and not covered, those too young for a final answer included: what the gaps add up to. */
  readonly slotsMissing: number;
  /** Of the missing slots, those too young for a final answer. */
  readonly slotsUnsettled: number;
  /** Candles inside coverage, as recorded when it was granted. */
  readonly candles: number;
  /** End of the newest final answer, of the series that is furthest and of the one that is least far. */
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
  /** Of the service: another process takes it over. */
  readonly isDetached: boolean;
  readonly owner: string;
  readonly heartbeatAt: Instant;
  /** No sign of life for so long that it was killed, or cannot reach the database. */
  readonly isSilent: boolean;
};

export type FetchStatus = {
  readonly outcome: string;
  readonly requests: number;
  readonly rows: number;
  readonly lastAt: Instant;
};

export type Status = {
  /** Coins the catalogue knows. */
  readonly coins: number;
  readonly series: readonly SeriesStatus[];
  /** Of the tracked series, highest priority first. */
  readonly tiers: readonly TierStatus[];
  readonly catalogue: readonly CatalogueAge[];
  readonly backfills: readonly BackfillStatus[];
  /** Of the last 24 hours, most requests first. */
  readonly fetches: readonly FetchStatus[];
  readonly revisions: number;
  readonly setAside: number;
};

const LATELY_SECONDS = 24 * 3600;

export async function readStatus(sql: Sql, now: Instant): Promise<Status> {
  const [counts, series, tiers, catalogue, backfills, fetches] = await Promise.all([
    sql<{ coins: number; revisions: number; set_aside: number }[]>`
      select (select count(*) from market.coin) as coins, (select count(*) from market.revision) as revisions,
        (select count(*) from market.quarantine) as set_aside`,
    readSeries(sql),
    readTierStatus(sql, now),
    readCatalogueAges(sql),
    readRunning(sql, now),
    readFetches(sql, now),
  ]);
  const { coins, revisions, set_aside } = counts[0]!;
  return { coins, series, tiers, catalogue, backfills, fetches, revisions, setAside: set_aside };
}

async function readSeries(sql: Sql): Promise<SeriesStatus[]> {
  const rows = await sql<
    (Omit<SeriesStatus, 'finalUntil' | 'finalUntilOldest'> & { newest: number | null; oldest: number | null })[]
  >`
    select c.interval, c.quote, count(*) as series, sum(c.slots_wanted)::bigint as "slotsWanted",
      sum(c.slots_covered)::bigint as "slotsCovered", sum(c.slots_missing)::bigint as "slotsMissing",
      sum(c.slots_unsettled)::bigint as "slotsUnsettled", sum(s.covered_candles)::bigint as candles,
      extract(epoch from max(upper(s.covered)))::float8 as newest,
      extract(epoch from min(coalesce(upper(s.covered), '-infinity')))::float8 as oldest
    from market.coverage c
    join market.series s on s.coin_id = c.coin_id and s.quote = c.quote and s.interval = c.interval
    group by c.interval, c.quote order by c.interval desc, c.quote desc`;
  return rows.map(({ newest, oldest, ...row }) => ({
    ...row,
    finalUntil: toInstant(newest),
    finalUntilOldest: toInstant(oldest),
  }));
}

async function readRunning(sql: Sql, now: Instant): Promise<BackfillStatus[]> {
  const rows = await sql<
    (Record<'id' | 'requested_at' | 'planned' | 'requests' | 'heartbeat_at', number> & {
      interval: Interval;
      quote: Quote;
      span_from: number | null;
      span_to: number | null;
      owner: string;
      is_detached: boolean;
    })[]
  >`
    select b.id, b.interval, b.quote, b.owner, b.is_detached, b.planned_requests as planned,
      extract(epoch from b.requested_at)::float8 as requested_at, extract(epoch from b.heartbeat_at)::float8 as heartbeat_at,
      extract(epoch from lower(b.span))::float8 as span_from, extract(epoch from upper(b.span))::float8 as span_to,
      (select count(*) from ops.fetch f where f.backfill_id = b.id)
        + (select coalesce(sum(p.requests), 0)::bigint from ops.backfill_past p where p.backfill_id = b.id) as requests
    from ops.backfill b where b.state = 'running' order by b.id`;
  return rows.map((row) => ({
    id: row.id,
    requestedAt: toInstant(row.requested_at)!,
    interval: row.interval,
    quote: row.quote,
    from: toInstant(row.span_from),
    to: toInstant(row.span_to),
    plannedRequests: row.planned,
    requests: row.requests,
    isDetached: row.is_detached,
    owner: row.owner,
    heartbeatAt: toInstant(row.heartbeat_at)!,
    isSilent: toInstant(row.heartbeat_at)! < now - SILENT_AFTER_MS,
  }));
}

async function readFetches(sql: Sql, now: Instant): Promise<FetchStatus[]> {
  const rows = await sql<{ outcome: string; requests: number; rows: number; last_at: number }[]>`
    select outcome, count(*) as requests, sum(rows)::bigint as rows, extract(epoch from max(sent_at))::float8 as last_at
    from ops.fetch where sent_at > to_timestamp(${now / 1000 - LATELY_SECONDS})
    group by outcome order by requests desc, outcome`;
  return rows.map(({ last_at, ...row }) => ({ ...row, lastAt: toInstant(last_at)! }));
}
