/** What is stored in and around a span of a series: an answer about the span is compared with it. */
import type { Instant } from '../../clock.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange } from '../values/multirange.ts';
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

/** The neighbours as read from JSON: instants are in seconds since 1970. */
export type NeighboursRead = {
  readonly candles: (readonly [number, ...(number | null)[]])[] | null;
  readonly coveredSeconds: number;
  readonly coveredCandles: number;
  readonly final: string;
};

/** So many slots on either side of the span are neighbours; at least those of one day. */
const REACH = 8;

/** A SQL expression for a statement in which `s` is the series. It is no statement of its own, because a plausible answer must not cost one more. */
export function neighboursOf(
  sql: SqlOrTransaction,
  { id, interval }: { readonly id: number; readonly interval: Interval },
  span: Span,
) {
  const reach = Math.max(REACH * INTERVAL_MS[interval], DAY);
  const within = { from: span.from - reach, to: span.to + reach };
  return sql`json_build_object(
    'candles', (select json_agg(json_build_array(extract(epoch from c.open_time), c.open, c.high, c.low, c.close, c.volume, c.market_cap)
        order by c.open_time)
      from ${storedRows(sql, sql`${id}::int`, interval)} c
      where c.open_time >= ${within.from} and c.open_time < ${within.to}),
    'coveredSeconds', (select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0) from unnest(s.covered) r),
    'coveredCandles', s.covered_candles,
    'final', (s.covered * ${[within]}::tstzmultirange)::text)`;
}

export function toNeighbours(read: NeighboursRead, interval: Interval): Neighbours {
  const candles = (read.candles ?? []).map(([at, ...numbers]) => [at * 1000, ...numbers] as unknown as StoredCandle);
  return {
    candles,
    covered: (read.coveredSeconds * 1000) / INTERVAL_MS[interval],
    coveredCandles: read.coveredCandles,
    final: parseMultirange(read.final),
  };
}
