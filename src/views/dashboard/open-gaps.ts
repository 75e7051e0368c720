/** Gaps that could be requested now, but that no backfill fetches. */
import type { Instant } from '../../clock.ts';
import { ceilToGrid, DAY, type Interval, type SeriesName } from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { readLastCounts, readSeries, type SeriesCounts } from '../operations/series-counts.ts';
import { hasManySeries } from '../operations/series-filter.ts';

/** The gaps of one series that were never requested, and that no backfill fetches. */
export type SeriesGaps = SeriesName & {
  readonly gaps: Spans;
  /** Each gap lies in one of them. */
  readonly wanted: Spans;
};

export type OpenGaps =
  | { readonly kind: 'exact'; readonly series: readonly SeriesGaps[] }
  /**
   * With more than a few series: the slots by interval. They include slots that the upstream refuses, and slots that open backfills fetch. With
   * very many series, they are as a service counted them last.
   */
  | { readonly kind: 'counted'; readonly intervals: readonly { readonly interval: Interval; readonly slots: number }[] }
  /** There are very many series, and no service has counted recently. */
  | { readonly kind: 'unknown' };

/** With more series, the gaps are only counted. */
const FEW_SERIES = 2_000;
/** Younger gaps are excluded, because a run of the schedules fetches them. */
const YOUNG_MS = 2 * DAY;

export async function readOpenGaps(sql: Sql, now: Instant): Promise<OpenGaps> {
  const [row] = await sql<{ isMany: boolean }[]>`
    select exists (select from market.series offset ${FEW_SERIES} limit 1) as is_many`;
  if (!row!.isMany) return { kind: 'exact', series: await readNow(sql, now) };
  // A service counts only when there are too many series to count them here.
  return (await hasManySeries(sql)) ? lastCounted(sql, now) : countedAs(await readSeries(sql));
}

/** Excludes what queued and running backfills fetch. A paused one fetches nothing. */
async function readNow(sql: Sql, now: Instant): Promise<readonly SeriesGaps[]> {
  const rows = await sql<SeriesGaps[]>`
    with fetched as (
      select coin_id, interval, quote, range_agg(span) as spans from ops.backfill cross join unnest(coin_ids) coin_id
      where state in ('queued', 'running') group by 1, 2, 3
    )
    select g.coin_id, g.interval, g.quote, s.wanted,
      range_agg(tstzrange(g.gap_from, least(g.gap_to, ${now - YOUNG_MS}))) - coalesce(f.spans, '{}') as gaps
    from market.gaps g join market.series s on (s.coin_id, s.interval, s.quote) = (g.coin_id, g.interval, g.quote)
      left join fetched f on (f.coin_id, f.interval, f.quote) = (g.coin_id, g.interval, g.quote)
    where g.reason = 'not asked yet' and g.gap_from < ${now - YOUNG_MS}
    group by g.coin_id, g.interval, g.quote, s.wanted, f.spans order by g.coin_id, g.interval, g.quote`;
  return rows.flatMap(({ gaps, ...series }) => {
    const onGrid = gaps
      .map(({ from, to }) => ({ from: ceilToGrid(from, series.interval), to: ceilToGrid(to, series.interval) }))
      .filter(({ from, to }) => from < to);
    return onGrid.length === 0 ? [] : [{ ...series, gaps: onGrid }];
  });
}

async function lastCounted(sql: Sql, now: Instant): Promise<OpenGaps> {
  const last = await readLastCounts(sql, now);
  return last === null ? { kind: 'unknown' } : countedAs(last.series);
}

function countedAs(series: SeriesCounts['series']): OpenGaps {
  const intervals = series.map((one) => ({ interval: one.interval, slots: one.slotsMissing - one.slotsUnsettled }));
  return { kind: 'counted', intervals };
}
