/** Reads series as they were after a step of their evidence, without later answers, repairs and revisions. */
import type { Instant } from '../../clock.ts';
import { monthReset } from '../../core/calendar.ts';
import type { Interval } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { SHA256_OF_CANDLES, SHA256_OF_RECORDS } from './read-series.ts';
import { DIGEST_OF_NOTHING, monthsOf } from './series-state.ts';

type SeriesAsOf = {
  readonly seriesId: number;
  readonly interval: Interval;
  readonly step: number;
  /** The months that are different now. */
  readonly months: readonly Instant[];
};

type MonthAsOf = {
  readonly digest: Buffer;
  /** The number of revisions since, and their reasons. */
  readonly revised: number;
  readonly reasons: readonly string[];
  /** Number of slots that retention has removed since: their values are not on record. */
  readonly removed: number;
  /** The end of the newest removed slots. */
  readonly removedTo: Instant | null;
};

export type AsOf = {
  /** Computed again from name, evidence and candles; null when a step is missing, empty when retention removed the data for it. */
  readonly link: Buffer | null;
  readonly records: Buffer;
  /** Whether the current coverage is what all evidence says. */
  readonly isCoverageTrue: boolean;
  readonly months: ReadonlyMap<Instant, MonthAsOf>;
};

/** Returns the series in the given order. All must have one interval. */
export async function readAsOf(sql: Sql, asked: readonly SeriesAsOf[]): Promise<AsOf[]> {
  if (asked.length === 0) return [];
  const steps = asked.map(({ step }) => step);
  const heads = await sql<Omit<AsOf, 'months'>[]>`
    select ops.link_at(s.id, a.step) as link, ${sql.unsafe(SHA256_OF_RECORDS)} as records,
      s.covered = ops.covered_at(s.id, s.steps) as is_coverage_true
    from unnest(${asked.map(({ seriesId }) => seriesId)}::int[], ${steps}::int[]) with ordinality as a (id, step, position)
    join market.series s on s.id = a.id
    cross join lateral (select a.step as upto) attested
    order by a.position`;
  const months = await readMonths(sql, asked);
  return heads.map((head, i) => ({ ...head, months: months[i]! }));
}

type MonthRow = {
  readonly position: number;
  readonly covered: Spans;
  readonly candles: number;
  readonly sha256: string;
  readonly revised: number;
  readonly reasons: readonly string[];
  readonly removed: number;
  readonly removedTo: Instant | null;
};

async function readMonths(sql: Sql, asked: readonly SeriesAsOf[]): Promise<Map<Instant, MonthAsOf>[]> {
  const months = asked.flatMap(({ seriesId, step, months: of }, i) => of.map((from) => ({ i, seriesId, step, from })));
  const out = asked.map(() => new Map<Instant, MonthAsOf>());
  if (months.length === 0) return out;
  const { interval } = asked[0]!;
  const spans: Span[] = months.map(({ from }) => ({ from, to: monthReset(from) }));
  const rows = await sql<MonthRow[]>`
    select a.position, was.covered, found.candles, found.sha256, revised.revised, revised.reasons, gone.removed, gone.removed_to
    from unnest(${months.map((one) => one.seriesId)}::int[], ${months.map((one) => one.step)}::int[], ${spans}::tstzrange[])
      with ordinality as a (id, step, month, position)
    cross join lateral (
      select ops.covered_at(a.id, a.step) * tstzmultirange(a.month) as covered
    ) was
    cross join lateral (
      select count(*) as candles, encode(${sql.unsafe(SHA256_OF_CANDLES)}, 'hex') as sha256
      from ops.final_at(a.id, ${interval}::market.candle_interval, a.step, a.month) c
    ) found
    cross join lateral (
      select count(*) as revised, coalesce(json_agg(distinct r.reason), '[]') as reasons from market.revision r
      where r.series_id = a.id and r.step > a.step and a.month @> r.open_time and was.covered @> r.open_time
    ) revised
    cross join lateral (
      select coalesce(sum((date_part('epoch', upper(g)) - date_part('epoch', lower(g)))
        / ops.seconds_of(${interval}::market.candle_interval)), 0)::integer as removed, max(upper(g)) as removed_to
      from market.evidence e cross join unnest(e.slots * was.covered) g
      where e.series_id = a.id and e.number > a.step and e.kind = 'retention' and e.slots && a.month
    ) gone`;
  for (const { position, covered, candles, sha256, ...row } of rows) {
    const { i, from } = months[position - 1]!;
    // A month without coverage at that step had nothing to digest: it lay between months with coverage.
    const [digest] = monthsOf(covered, [{ from, candles, sha256 }], interval);
    out[i]!.set(from, { ...row, digest: digest?.digest ?? DIGEST_OF_NOTHING });
  }
  return out;
}
