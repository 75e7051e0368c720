/** Puts series and candles into a test database without an upstream. */
import type { CandleColumns } from '../../src/core/candle.ts';
import { INTERVAL_MS, type Interval, isCandleInterval } from '../../src/core/interval.ts';
import type { Spans } from '../../src/core/span.ts';
import { writeAsText, writeCandles } from '../../src/store/candle/candle.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';

export type SeriesSeed = {
  readonly coinId: string;
  readonly interval: Interval;
  readonly quote?: 'usd' | 'btc';
  readonly wanted: Spans;
  readonly covered: Spans;
  /** Open times of the candles to store. */
  readonly candles: readonly number[];
  /** Default: how many of `candles` lie in `covered`. */
  readonly recorded?: number;
};

/** Resolves to the number of the series. */
export async function seedSeries(sql: Sql, seed: SeriesSeed): Promise<number> {
  const { coinId, interval, quote = 'usd', wanted, covered, candles } = seed;
  const inside = candles.filter((at) => covered.some((span) => span.from <= at && at < span.to)).length;
  const symbol = coinId.split('-')[0]!.toUpperCase();
  const coin = { id: coinId, name: coinId, symbol, rank: 1, is_new: false, is_active: true, type: 'coin' };
  await recordCoins(sql, [coin], Date.UTC(2024, 0, 1));
  const [row] = await sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, wanted, covered, covered_candles)
    values (${coinId}, ${quote}, ${interval}, ${wanted}, ${covered}, ${seed.recorded ?? inside})
    returning id`;
  const { id } = row!;
  if (candles.length > 0) {
    const span = { from: Math.min(...candles), to: Math.max(...candles) + INTERVAL_MS[interval] };
    if (isCandleInterval(interval)) await ensurePartitions(sql, interval, span);
    await writeCandles(sql, { id, interval }, writeAsText(candlesAt(candles)), 'fresh');
  }
  await sql`select ops.adopt_evidence()`;
  return id;
}

/** Plausible candles, a different one for each open time. */
export function candlesAt(openTimes: readonly number[]): CandleColumns {
  const price = openTimes.map((at) => 1 + ((at / 60_000) % 1000) / 7);
  return {
    openTime: [...openTimes],
    open: price,
    high: price.map((p) => p * 1.5),
    low: price.map((p) => p / 1.5),
    close: price.map((p) => p * 1.1),
    volume: price.map((p) => Math.floor(p * 1e6)),
    marketCap: price.map((p, i) => (i % 5 === 0 ? null : Math.floor(p * 1e9))),
  };
}
