/** Series and answers that are made before the measurement, for benchmarks that use them. */
import type { CandleColumns } from '../../src/core/candle.ts';
import { chunksNewestFirst } from '../../src/core/chunk.ts';
import { INTERVAL_MS, type Interval, isPriceInterval, settledUntil, settleMs } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { judgeSlots } from '../../src/ingest/chunk/evidence.ts';
import { type ChunkCommit, storeChunk } from '../../src/store/candle/chunk.ts';
import type { ChunkAnswer, Known } from '../../src/store/candle/lock-series.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';

export const ROWS_PER_CHUNK = 366;

/** Resolves to their numbers. `prefix` separates rounds: each has coins without rows. */
export async function makeSeries(
  sql: Sql,
  prefix: string,
  count: number,
  interval: Interval,
  span: Span,
): Promise<number[]> {
  const coinIds = Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
  return makeSeriesOf(sql, coinIds, interval, span);
}

/** Ranks the coins in the given order. Resolves to the numbers of their series in the same order. */
export async function makeSeriesOf(
  sql: Sql,
  coinIds: readonly string[],
  interval: Interval,
  span: Span,
): Promise<number[]> {
  const coins = coinIds.map((id, i) => ({
    id,
    name: id,
    symbol: id.split('-')[0]!.toUpperCase(),
    rank: i + 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  }));
  await recordCoins(sql, coins, span.from);
  return wantSeries(sql, { coinIds, quote: 'usd', interval, span, priority: 0 });
}

export type PreparedChunk = {
  readonly series: { readonly id: number; readonly interval: Interval };
  readonly span: Span;
  readonly candles: CandleColumns;
};

/** All chunks of all series in the order of a backfill: series by series, newest first. Values have as many digits as real ones. */
export function prepareChunks(
  seriesIds: readonly number[],
  interval: Interval,
  span: Span,
  rows = ROWS_PER_CHUNK,
): PreparedChunk[] {
  return seriesIds.flatMap((id) =>
    [...chunksNewestFirst([span], interval, rows)].map((chunk) => ({
      series: { id, interval },
      span: chunk,
      candles: makeCandles(chunk, interval, id),
    })),
  );
}

function makeCandles({ from, to }: Span, interval: Interval, seed: number): CandleColumns {
  const c: CandleColumns = { openTime: [], open: [], high: [], low: [], close: [], volume: [], marketCap: [] };
  // A price is a candle with one value.
  const [high, low, close] = isPriceInterval(interval) ? [1, 1, 1] : [1.0371, 1.0293, 1.0113];
  for (let at = from; at < to; at += INTERVAL_MS[interval]) {
    const open = (1 + ((at / 60_000 + seed * 7919) % 9973)) / 7.3;
    c.openTime.push(at);
    c.open.push(open);
    c.high.push(open * high);
    c.low.push(open / low);
    c.close.push(open * close);
    c.volume.push(Math.floor(open * 1e6));
    c.marketCap.push(Math.floor(open * 1e9));
  }
  return c;
}

/** Stores a prepared chunk as if it had been answered at `asOf` and stored at `now`. */
export function storePrepared(
  sql: Sql,
  { series, span, candles }: PreparedChunk,
  asOf: number,
  now: number = asOf,
): Promise<ChunkCommit> {
  const answer: ChunkAnswer = {
    series,
    span,
    asOf,
    candles,
    open: [],
    quarantined: [],
    fetch: {
      sentAt: asOf,
      asOf,
      accountId: 'anonymous@bench',
      endpoint: isPriceInterval(series.interval) ? 'prices' : 'ohlcv',
      seriesId: series.id,
      span,
      backfillId: 1,
      attempt: 1,
      status: 200,
      outcome: 'stored',
      durationMs: 12,
      rows: candles.openTime.length,
      bytes: 79_000,
      bodySha256: SHA256,
      message: null,
    },
  };
  const findings = { candles, cutShort: [], quarantined: [], rowCount: candles.openTime.length };
  const verdictOf = (known: Known) =>
    judgeSlots({
      span,
      interval: series.interval,
      findings,
      sentAt: asOf,
      heardAt: asOf,
      asOf,
      ageMs: 0,
      settledTo: settledUntil(asOf, series.interval),
      settlesAfterMs: settleMs(series.interval),
      limit: Math.max(ROWS_PER_CHUNK, candles.openTime.length),
      known,
    });
  return storeChunk(sql, answer, verdictOf, () => now);
}

const SHA256 = new Uint8Array(32).fill(7);
