/** Reads the bars of a chart: stored candles, candles made of finer ones (`market.ohlcv`), or prices; and the holes between them. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import {
  type CandleInterval,
  DAY,
  INTERVAL_MS,
  INTERVALS,
  type Interval,
  isCandleInterval,
  type PriceInterval,
} from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { asSqlInterval, type BarWidth, countSlots, slotAfter, slotOf, widthOfPrices } from './bar-width.ts';
import type { SeriesFacts } from './coin-facts.ts';
import { type Hole, holesBetween, type KnownGap } from './holes.ts';

/** The content of a chart: bars of a width that can be made, or one price series. */
export type ChartOf =
  | { readonly kind: 'candles'; readonly quote: Quote; readonly width: BarWidth }
  | { readonly kind: 'prices'; readonly quote: Quote; readonly interval: PriceInterval };

/** A price has only `close`. */
export type Bar = {
  readonly at: Instant;
  readonly open: number | null;
  readonly high: number | null;
  readonly low: number | null;
  readonly close: number | null;
  readonly volume: number | null;
  readonly isFinal: boolean;
  /** The upstream changed it after it was final. */
  readonly isRevised: boolean;
  /** It is made of finer candles. Upstream has not sent it as a whole. */
  readonly isMade: boolean;
  /** It was made while parts are missing that are old enough to be final. */
  readonly isIncomplete: boolean;
};

export type Bars = {
  /** Starts of slots. */
  readonly from: Instant;
  readonly to: Instant;
  readonly bars: readonly Bar[];
  readonly holes: readonly Hole[];
};

/** The stretch that can have bars, from one start of a slot to another. */
export type Extent = { readonly from: Instant; readonly to: Instant };

/** The stored series of which the chart is made, that of its own interval first. Empty: the chart cannot be made. */
export function sourcesOf(series: readonly SeriesFacts[], chart: ChartOf): SeriesFacts[] {
  const ofQuote = series.filter(({ quote }) => quote === chart.quote);
  if (chart.kind === 'prices') return ofQuote.filter(({ interval }) => interval === chart.interval);
  const widest = INTERVALS.indexOf(chart.width.base);
  const placeOf = ({ interval }: SeriesFacts) => INTERVALS.indexOf(interval as CandleInterval);
  return ofQuote
    .filter((one) => isCandleInterval(one.interval) && placeOf(one) <= widest)
    .sort((a, b) => placeOf(b) - placeOf(a));
}

export function gridOf(chart: ChartOf) {
  return chart.kind === 'prices' ? widthOfPrices(chart.interval) : chart.width;
}

/** The interval whose own series the chart shows; null: its bars are made of finer candles. */
export function ownInterval(chart: ChartOf): Interval | null {
  if (chart.kind === 'prices') return chart.interval;
  return isCandleInterval(chart.width.name) ? chart.width.name : null;
}

/** From the first slot that is wanted or stored to the last one that has begun. Null: there is no such slot. */
export function extentOf(
  sources: readonly SeriesFacts[],
  chart: ChartOf,
  { firstDataAt, now }: { readonly firstDataAt: Instant | null; readonly now: Instant },
): Extent | null {
  const grid = gridOf(chart);
  const known = sources.flatMap(({ from, to, finalFrom }) =>
    from === null || to === null ? [] : [{ from, to, finalFrom }],
  );
  if (known.length === 0) return null;
  const wanted = Math.max(Math.min(...known.map(({ from }) => from)), firstDataAt ?? 0, 0);
  // Stored data are shown, even if the upstream now says that its data begin later.
  const begin = Math.min(wanted, ...known.map(({ finalFrom }) => finalFrom ?? wanted));
  const end = Math.min(now, Math.max(...known.map(({ to }) => to)));
  if (begin >= end) return null;
  return { from: slotOf(grid, begin), to: slotAfter(grid, slotOf(grid, end - 1)) };
}

/** Maximum number of slots that are read at once. */
const MOST_SLOTS = 3_000;
/** Maximum number of source rows that are read at once. */
export const MOST_ROWS = 60_000;
/** The service makes candles of these widths in advance, so their own rows are read. */
const MADE_AHEAD: readonly CandleInterval[] = ['6h', '12h', '24h'];

/** How many slots of this chart are read at once: fewer when each is made of many rows. 0: a single slot is made of too many rows. */
export function mostSlots(sources: readonly SeriesFacts[], chart: ChartOf): number {
  if (chart.kind === 'prices') return MOST_SLOTS;
  const { ms, months, base } = chart.width;
  const finest = MADE_AHEAD.includes(base) ? base : ((sources.at(-1)?.interval ?? base) as CandleInterval);
  const rows = (months > 0 ? months * 31 * DAY : ms) / INTERVAL_MS[finest];
  return Math.min(MOST_SLOTS, Math.floor(MOST_ROWS / rows));
}

type BarsQuestion = {
  readonly coinId: string;
  readonly chart: ChartOf;
  readonly sources: readonly SeriesFacts[];
  /** Starts of slots, at most `mostSlots` of them. */
  readonly from: Instant;
  readonly to: Instant;
  readonly firstDataAt: Instant | null;
  readonly now: Instant;
};

export async function readBars(sql: Sql, question: BarsQuestion): Promise<Bars> {
  const { chart, sources, from, to, now, firstDataAt } = question;
  const grid = gridOf(chart);
  if (from >= to) return { from, to, bars: [], holes: [] };
  const [rows, known, gaps, revised, isFromUpstream] = await Promise.all([
    chart.kind === 'prices' ? readPrices(sql, question) : readCandles(sql, question, chart.width),
    readKnown(sql, question),
    readGaps(sql, question),
    readRevised(sql, question),
    readIsFromUpstream(sql, question),
  ]);
  const settledUntil = Math.min(...sources.map((one) => one.settledUntil));
  const bars = rows.map((row): Bar => {
    const isMade = !isFromUpstream(row.at);
    const isIncomplete = isMade && !row.isFinal && slotAfter(grid, row.at) <= settledUntil;
    return { ...row, isRevised: revised.has(row.at), isMade, isIncomplete };
  });
  const why = { grid, from, to, now, gaps, firstDataAt, ...known };
  return {
    from,
    to,
    bars,
    holes: holesBetween(
      bars.map(({ at }) => at),
      why,
    ),
  };
}

/** Number of slots in a span of the chart. */
export function slotsIn(chart: ChartOf, { from, to }: Extent): number {
  return from >= to ? 0 : countSlots(gridOf(chart), from, to);
}

type Row = Omit<Bar, 'isRevised' | 'isMade' | 'isIncomplete'>;

function readCandles(sql: Sql, { coinId, chart, from, to }: BarsQuestion, width: BarWidth): Promise<Row[]> {
  return sql<Row[]>`
    select open_time as at, open, high, low, close, volume, complete as is_final
    from market.ohlcv(${coinId}, ${asSqlInterval(width)}::interval, ${from}::timestamptz, ${to}::timestamptz, ${chart.quote})`;
}

function readPrices(sql: Sql, { sources, from, to }: BarsQuestion): Promise<Row[]> {
  return sql<Row[]>`
    select p.time as at, null::float8 as open, null::float8 as high, null::float8 as low, p.price as close, p.volume_24h as volume,
      s.covered @> p.time as is_final
    from market.price p join market.series s on s.id = p.series_id
    where p.series_id = ${sources[0]?.id ?? 0} and p.time >= ${from}::timestamptz and p.time < ${to}::timestamptz order by p.time`;
}

/** For a chart of finer candles, only the final slots are known: only a series of its own interval shows which slots one answer reported empty. */
async function readKnown(
  sql: Sql,
  { coinId, chart, sources, from, to }: BarsQuestion,
): Promise<{ readonly final: Spans; readonly emptyOnce: Spans }> {
  const span = sql`tstzmultirange(tstzrange(${from}::timestamptz, ${to}::timestamptz))`;
  const own = sources.find(({ interval }) => interval === ownInterval(chart))?.id ?? 0;
  const base = chart.kind === 'prices' ? chart.interval : chart.width.base;
  const [row] = await sql<{ final: Spans; emptyOnce: Spans | null }[]>`
    select market.final_spans(${coinId}, ${base}::market.candle_interval, ${chart.quote}) * ${span} as final,
      (select empty_once * ${span} from market.series where id = ${own}) as empty_once`;
  return { final: row!.final, emptyOnce: row!.emptyOnce ?? [] };
}

/** The gaps of each source. The widest source comes first, as in `market.on_grid`; a finer one counts where nothing is wanted of the wider ones. */
function readGaps(sql: Sql, { coinId, chart, sources, from, to }: BarsQuestion): Promise<KnownGap[][]> {
  return Promise.all(
    sources.map(
      ({ interval }) => sql<KnownGap[]>`
        select gap_from as from, gap_to as to, reason, detail from market.gaps
        where coin_id = ${coinId} and quote = ${chart.quote} and interval = ${interval}::market.candle_interval
          and gap_to > ${from}::timestamptz and gap_from < ${to}::timestamptz
        order by gap_from`,
    ),
  );
}

/** Returns whether upstream itself sent the bar at an instant, as a candle of its own interval. */
async function readIsFromUpstream(
  sql: Sql,
  { coinId, chart, sources, from, to }: BarsQuestion,
): Promise<(at: Instant) => boolean> {
  const own = sources.find(({ interval }) => interval === ownInterval(chart));
  if (own === undefined) return () => false;
  if (sources.length === 1) return () => true;
  const rows = await sql<{ at: Instant }[]>`
    select open_time as at from market.candle where series_id = ${own.id} and interval = ${own.interval}::market.candle_interval
      and open_time >= ${from}::timestamptz and open_time < ${to}::timestamptz
      and not (select market.final_spans(${coinId}, ${own.interval}::market.candle_interval, ${chart.quote}) - covered
        from market.series where id = ${own.id}) @> open_time`;
  const times = new Set(rows.map(({ at }) => at));
  return (at) => times.has(at);
}

/** Starts of the bars of which a part was changed after it was final. */
async function readRevised(sql: Sql, { chart, sources, from, to }: BarsQuestion): Promise<ReadonlySet<Instant>> {
  const grid = gridOf(chart);
  const rows = await sql<{ at: Instant }[]>`
    select distinct open_time as at from market.revision
    where series_id = any(${sources.map(({ id }) => id)}::int[]) and open_time >= ${from}::timestamptz and open_time < ${to}::timestamptz`;
  return new Set(rows.map(({ at }) => slotOf(grid, at)));
}
