/**
 * Computes the SHA-256 of the final rows of each month of each series, as attestations have it (docs/proof.md), while rows are written to a file or
 * read from one. So everybody who has the files can compute what was attested.
 */
import { createHash, type Hash } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import { monthReset, monthStart } from '../../core/calendar.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Batch, Column } from '../../store/copy/columns.ts';
import type { MonthOfCandles } from '../../views/attestation/series-state.ts';
import type { SeriesDataset } from '../dataset/dataset.ts';
import { type Place, placeOf } from './series-name.ts';

export type DigestedSeries = {
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  /** All rows, final or not. */
  rows: number;
  readonly months: MonthOfCandles[];
};

type SeriesDigests = {
  /** The rows of a series must be adjacent, in order of time. */
  add(batch: Batch): void;
  /** Returns the series in the order in which they came. */
  finish(): readonly DigestedSeries[];
};

/** `columns`: the column names of the batches, in order. `place`: the interval and quote of batches that have no columns for them. */
export function createSeriesDigests(
  dataset: SeriesDataset,
  columns: readonly string[],
  place: Place | null,
): SeriesDigests {
  const index = (name: string) => columns.indexOf(name);
  const numbers = (
    dataset.name === 'candles'
      ? ['open', 'high', 'low', 'close', 'volume', 'market_cap']
      : ['price', 'price', 'price', 'price', 'volume_24h', 'market_cap']
  ).map(index);
  const found: DigestedSeries[] = [];
  const month = createMonth();
  let series: DigestedSeries | null = null;
  let name = '';
  const close = () => {
    const closed = month.close();
    if (closed !== null) series?.months.push(closed);
  };
  return {
    add: (batch) => {
      const { columns: given } = batch;
      const coins = given[index('coin_id')]!.values as string[];
      const nameAt =
        place === null ? namesIn(batch, index('quote'), index('interval'), coins) : (i: number) => coins[i]!;
      const times = given[index(dataset.time)]!.values as BigInt64Array;
      const isFinal = given[index('is_final')]!.values as Uint8Array;
      const values = numbers.map((i) => given[i]!);
      for (let i = 0; i < batch.rows; i++) {
        const named = nameAt(i);
        if (series === null || named !== name) {
          close();
          name = named;
          series = {
            coinId: coins[i]!,
            ...(place ?? placeOf(batch, index('quote'), index('interval'), i, dataset)),
            rows: 0,
            months: [],
          };
          found.push(series);
        }
        series.rows++;
        if (isFinal[i] === 0) continue;
        const at = Number(times[i]! / 1_000n);
        if (!month.holds(at)) {
          close();
          month.begin(at);
        }
        month.add(rowBytes(times[i]!, values, i));
      }
    },
    finish: () => {
      close();
      return found;
    },
  };
}

function namesIn({ columns }: Batch, quote: number, interval: number, coins: readonly string[]) {
  const [quotes, intervals] = [columns[quote]!.values as string[], columns[interval]!.values as string[]];
  return (i: number) => `${coins[i]} ${quotes[i]} ${intervals[i]}`;
}

/** Computes the digest of one month at a time. */
function createMonth() {
  let hash: Hash | null = null;
  let from: Instant = 0;
  let to: Instant = 0;
  let candles = 0;
  return {
    holds: (at: Instant) => hash !== null && at >= from && at < to,
    begin: (at: Instant) => {
      hash = createHash('sha256');
      from = monthStart(at);
      to = monthReset(at);
      candles = 0;
    },
    add: (row: Buffer) => {
      hash!.update(row);
      candles++;
    },
    close: (): MonthOfCandles | null => {
      if (hash === null) return null;
      const sha256 = hash.digest('hex');
      hash = null;
      return { from, candles, sha256 };
    },
  };
}

/** Time in seconds and six numbers, eight bytes each. */
const ROW = Buffer.alloc(56);
const NULL_BITS = 0x7ff8000000000000n;

/** The bytes of a row that its digests are made of; NaN stands for null. They are valid until the next call. */
export function rowBytes(microseconds: bigint, values: readonly Column[], row: number): Buffer {
  ROW.writeBigInt64BE(microseconds / 1_000_000n);
  for (const [i, column] of values.entries()) {
    if (column.isNull[row] === 1) ROW.writeBigUInt64BE(NULL_BITS, 8 + 8 * i);
    else ROW.writeDoubleBE((column.values as Float64Array)[row]!, 8 + 8 * i);
  }
  return ROW;
}
