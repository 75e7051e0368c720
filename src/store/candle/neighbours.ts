/** What is stored in and around a span of a series: an answer about the span is compared with it. */
import type { Instant } from '../../clock.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storedRows } from './stored.ts';

/** The prices of one slot. Further values of the slot may follow; they are ignored. */
export type PricedCandle = readonly [
  openTime: Instant,
  open: number | null,
  high: number | null,
  low: number | null,
  close: number | null,
  ...others: (number | null)[],
];

export type StoredCandle = readonly [
  openTime: Instant,
  open: number | null,
  high: number | null,
  low: number | null,
  close: number | null,
  volume: number | null,
  marketCap: number | null,
];

export type Neighbours = {
  /** Ascending. */
  readonly candles: readonly StoredCandle[];
  /** Slots of the whole series with a final answer. `coveredCandles` of them have a candle. */
  readonly covered: number;
  readonly coveredCandles: number;
  /** Final slots of the stretch from which `candles` were read. */
  readonly final: Spans;
};

/** What the series itself tells of its neighbours. Columns of a statement that reads it. */
export type FinalRead = {
  readonly coveredSeconds: number;
  readonly coveredCandles: number;
  readonly final: Spans;
};

/** So many slots on either side of the span are neighbours; at least those of one day. */
const REACH = 8;

type Series = { readonly id: number; readonly interval: Interval };

function stretchOf({ interval }: Series, span: Span): Span {
  const reach = Math.max(REACH * INTERVAL_MS[interval], DAY);
  return { from: span.from - reach, to: span.to + reach };
}

/** SQL for the columns of `FinalRead`, for a statement in which `s` is the series. */
export function finalOf(sql: SqlOrTransaction, series: Series, span: Span) {
  return sql`(select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0)::float8 from unnest(s.covered) r) as covered_seconds,
    s.covered_candles, s.covered * ${[stretchOf(series, span)]}::tstzmultirange as final`;
}

/** The candles as read from JSON: instants are in seconds since 1970. */
export type CandlesRead = { readonly candles: (readonly [number, ...(number | null)[]])[] | null };

/**
 * The statement that reads the candles in and around the span. It is not a part of the statement that reads the state of the series: Postgres
 * would plan all of that one again for each span, because a plan for any span opens every partition. This small one costs little to plan.
 */
export function candlesAround(sql: SqlOrTransaction, series: Series, span: Span) {
  const within = stretchOf(series, span);
  return sql<CandlesRead[]>`
    select json_agg(json_build_array(extract(epoch from c.open_time), c.open, c.high, c.low, c.close, c.volume, c.market_cap)
      order by c.open_time) as candles
    from ${storedRows(sql, sql`${series.id}::int`, series.interval)} c
    where c.open_time >= ${within.from} and c.open_time < ${within.to}`;
}

export function toNeighbours(read: FinalRead & CandlesRead, interval: Interval): Neighbours {
  const { coveredSeconds, coveredCandles, final } = read;
  const candles = (read.candles ?? []).map(([at, ...numbers]) => [at * 1000, ...numbers] as unknown as StoredCandle);
  return { candles, covered: (coveredSeconds * 1000) / INTERVAL_MS[interval], coveredCandles, final };
}
