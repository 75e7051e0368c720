/**
 * The data of the coverage map for some series: the stretches of each, by their state. It reads only these series, with multirange arithmetic and
 * `market.gaps`. Of candles it reads only the times, and only for series with slots that two answers reported empty: nothing else shows where these
 * slots are. `readCoverageFacts` has their number.
 */
import type { Instant } from '../../clock.ts';
import { INTERVAL_MS, type SeriesName } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { GAP_REASONS, type GapReason } from '../operations/gaps.ts';
import { confirmedEmptySlots, countSlots, readConfirmedEmptyWithin } from './confirmed-empty.ts';
import type { CoverageReason } from './coverage-order.ts';

/** The states of a stretch of the map; elsewhere nothing is wanted. In the order of drawing: later states lie on top. */
export const COVERAGE_STATES = ['final', 'told twice', 'told once', ...GAP_REASONS] as const satisfies readonly (
  | 'final'
  | CoverageReason
)[];
export type CoverageState = (typeof COVERAGE_STATES)[number];

type CoverageWindow = {
  /** Whole multiples of `stepSeconds`. */
  readonly fromSeconds: number;
  readonly toSeconds: number;
  /**
   * Stretches begin and end at multiples of it: each is widened to such steps, and stretches that then touch become one. So a row has no more
   * stretches than the window has steps, and the smallest gap is still one step wide.
   */
  readonly stepSeconds: number;
};

export type CoverageRow = SeriesName & {
  readonly seriesId: number;
  readonly symbol: string;
  readonly name: string;
  readonly rank: number | null;
  readonly widthSeconds: number;
  /** Null: no rule tracks it. */
  readonly tier: Tier | null;
  /**
   * For each stretch in turn: its state (index in `COVERAGE_STATES`), its first step, and the step after its last. Steps count from `fromSeconds`.
   */
  readonly stretches: readonly number[];
  /** The number of slots in the whole series that two answers reported empty, if reading their places would take too long; else 0. */
  readonly confirmedEmptyElsewhere: number;
};

type Row = Omit<CoverageRow, 'stretches' | 'widthSeconds' | 'confirmedEmptyElsewhere'> & {
  readonly toldTwice: number;
  /** Number of slots to read in order to find these. */
  readonly slotsToRead: number;
  readonly final: string | null;
  readonly toldOnce: string | null;
  readonly gaps: Readonly<Partial<Record<GapReason, string>>> | null;
};

/** The rows of these series, in this order. */
export async function readCoverageRows(
  sql: Sql,
  ids: readonly number[],
  window: CoverageWindow,
): Promise<CoverageRow[]> {
  const rows = await readRows(sql, ids, window);
  const read = await readConfirmedEmptyWithin(sql, rows, window);
  return rows.map(({ final, toldOnce, gaps, toldTwice, slotsToRead, ...row }) => {
    const found = read.get(row.seriesId);
    const byState = { final, 'told once': toldOnce, 'told twice': found ?? null, ...gaps };
    const stretches = COVERAGE_STATES.flatMap((state, index) => stretchesOf(byState[state] ?? null, index));
    const confirmedEmptyElsewhere = slotsToRead > 0 && found === undefined ? toldTwice : 0;
    return { ...row, widthSeconds: INTERVAL_MS[row.interval] / 1000, stretches, confirmedEmptyElsewhere };
  });
}

async function readRows(
  sql: Sql,
  ids: readonly number[],
  { fromSeconds, toSeconds, stepSeconds }: CoverageWindow,
): Promise<Row[]> {
  const from = sql`to_timestamp(${fromSeconds}::float8)`;
  const to = sql`to_timestamp(${toSeconds}::float8)`;
  // `least` and `greatest` ignore an open end, which is null.
  const steps = (lower: ReturnType<Sql>, upper: ReturnType<Sql>) => sql`range_agg(int4range(
    floor((date_part('epoch', greatest(${lower}, ${from})) - ${fromSeconds}::float8) / ${stepSeconds}::float8)::int,
    ceil((date_part('epoch', least(${upper}, ${to})) - ${fromSeconds}::float8) / ${stepSeconds}::float8)::int))::text`;
  const stepsOf = (column: 'covered' | 'empty_once') => sql`(
    select ${steps(sql`lower(r)`, sql`upper(r)`)} from unnest(s.${sql(column)} * tstzmultirange(tstzrange(${from}, ${to}))) r)`;
  return sql<Row[]>`
    select s.id as series_id, s.coin_id, c.symbol, c.name, nullif(c.rank, 0) as rank, s.interval, s.quote, k.tier, e.told_twice,
      case when e.told_twice > 0 then ${countSlots(sql, sql`s.covered * tstzmultirange(tstzrange(${from}, ${to})) - s.empty_once`, sql`e.width`)}
        else 0 end as slots_to_read,
      ${stepsOf('covered')} as final, case when not isempty(s.empty_once) then ${stepsOf('empty_once')} end as told_once,
      (select json_object_agg(x.reason, x.steps) from (
        select g.reason, ${steps(sql`g.gap_from`, sql`g.gap_to`)} as steps
        from market.gaps g
        where g.coin_id = s.coin_id and g.quote = s.quote and g.interval = s.interval
          and coalesce(g.gap_from < ${to}, true) and coalesce(g.gap_to > ${from}, true)
        group by g.reason) x) as gaps
    from unnest(${ids as number[]}::int[]) with ordinality as asked(id, position)
    join market.series s on s.id = asked.id join market.coin c on c.id = s.coin_id
    cross join lateral (select width, ${confirmedEmptySlots(sql, sql`width`)} as told_twice from ops.seconds_of(s.interval) width offset 0) e
    left join ops.tracked t on t.series_id = s.id left join ops.tier k on k.id = t.tier_id
    order by asked.position`;
}

/** Parses `{[1,5),[7,9)}`. */
function stretchesOf(steps: string | null, state: number): number[] {
  const ends = steps === null ? [] : (steps.match(/\d+/g) ?? []);
  return ends.flatMap((end, i) => (i % 2 === 0 ? [state, Number(end)] : [Number(end)]));
}

/** The earliest start of the wanted spans of these series, not before the data of their coins; null: nothing is wanted, or it has no start. */
export async function readFirstWanted(sql: Sql, ids: readonly number[]): Promise<Instant | null> {
  const [row] = await sql<{ at: Instant | null }[]>`
    select min(greatest(lower(s.wanted), c.first_data_at)) as at
    from market.series s join market.coin c on c.id = s.coin_id where s.id = any(${ids as number[]}::int[])`;
  return row!.at !== null && Number.isFinite(row!.at) ? row!.at : null;
}

/** The gaps of a series with one reason. */
export type ReasonFacts = {
  readonly reason: GapReason;
  readonly gaps: number;
  readonly slots: number;
  /** The start of the first gap; null: it has no start. */
  readonly from: Instant | null;
  /** The end of the last gap. */
  readonly to: Instant | null;
};

export type CoverageFacts = Pick<
  CoverageRow,
  'seriesId' | 'coinId' | 'symbol' | 'name' | 'interval' | 'quote' | 'tier'
> & {
  readonly slotsWanted: number;
  /** The wanted slots with a final answer. */
  readonly slotsCovered: number;
  readonly slotsMissing: number;
  /** Final slots without a candle, by how many answers reported this. */
  readonly slotsEmptyOnce: number;
  readonly slotsEmptyTwice: number;
  /** Reasons with the most slots first. */
  readonly reasons: readonly ReasonFacts[];
};

/** The numbers of these series, over their whole time, in this order. */
export async function readCoverageFacts(sql: Sql, ids: readonly number[]): Promise<CoverageFacts[]> {
  const rows = await sql<(Omit<CoverageFacts, 'reasons'> & { readonly reasons: readonly RawReason[] | null })[]>`
    select s.id as series_id, s.coin_id, v.symbol, c.name, s.interval, s.quote, k.tier, v.slots_wanted, v.slots_covered, v.slots_missing,
      v.slots_empty_once, v.slots_empty_twice,
      (select json_agg(json_build_array(x.reason, x.gaps, x.slots, date_part('epoch', x.first), date_part('epoch', x.last))
          order by x.slots desc, x.reason) from (
        select g.reason, count(*) as gaps, sum(g.slots) as slots, min(coalesce(g.gap_from, '-infinity')) as first, max(g.gap_to) as last
        from market.gaps g
        where g.coin_id = s.coin_id and g.quote = s.quote and g.interval = s.interval group by g.reason) x) as reasons
    from unnest(${ids as number[]}::int[]) with ordinality as asked(id, position)
    join market.series s on s.id = asked.id join market.coin c on c.id = s.coin_id
    join market.coverage v on v.coin_id = s.coin_id and v.quote = s.quote and v.interval = s.interval
    left join ops.tracked t on t.series_id = s.id left join ops.tier k on k.id = t.tier_id
    order by asked.position`;
  return rows.map((row) => ({
    ...row,
    reasons: (row.reasons ?? []).map(([reason, gaps, slots, from, to]) => ({
      ...{ reason, gaps, slots, from: toInstant(from), to: toInstant(to) },
    })),
  }));
}

type RawReason = readonly [reason: GapReason, gaps: number, slots: number, from: number | string, to: number | string];

/** Postgres writes seconds, or `"-Infinity"`. */
function toInstant(seconds: number | string | null): Instant | null {
  return typeof seconds === 'number' ? Math.round(seconds * 1000) : null;
}
