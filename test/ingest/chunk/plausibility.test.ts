/** Real markets and the simulator's calm ones: how many of their answers would need a second opinion. */
import { expect, test } from 'vitest';
import type { Candle, CandleColumns } from '../../../src/core/candle.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../../src/core/interval.ts';
import { findImplausible } from '../../../src/ingest/chunk/plausibility.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { readRecordedSeries } from '../../../src/simulator/recorded/recorded-series.ts';
import type { StoredCandle } from '../../../src/store/candle/neighbours.ts';
import { frozenClock } from '../../service/conformance.ts';

const toColumns = (candles: readonly Candle[]): CandleColumns => ({
  openTime: candles.map((c) => c.openTime),
  open: candles.map((c) => c.open),
  high: candles.map((c) => c.high),
  low: candles.map((c) => c.low),
  close: candles.map((c) => c.close),
  volume: candles.map((c) => c.volume),
  marketCap: candles.map((c) => c.marketCap),
});
const stored = ({ openTime, open, high, low, close }: Candle): StoredCandle => [openTime, open, high, low, close];

/** The answers of a backfill, newest first, each beside what the ones before it have stored; then a refresh of each newest day. */
function implausibleOf(
  interval: Interval,
  candles: readonly Candle[],
  size: number,
): { asked: number; found: string[] } {
  const width = INTERVAL_MS[interval];
  const [first, last] = [candles[0]!.openTime, candles.at(-1)!.openTime];
  const found: string[] = [];
  let asked = 0;
  for (let to = last + width; to > first; to -= size * width) {
    const from = to - size * width;
    const inside = candles.filter(({ openTime }) => openTime >= from && openTime < to);
    const beside = candles.filter(({ openTime }) => openTime >= to && openTime < to + Math.max(8 * width, DAY));
    const slots = (last + width - to) / width;
    const known = candles.filter(({ openTime }) => openTime >= to).length;
    asked++;
    const implausible = findImplausible({
      interval,
      candles: toColumns(inside),
      beside: { candles: beside.map(stored), covered: slots, coveredCandles: known },
      final: [],
    });
    if (implausible !== null) found.push(`${new Date(from).toISOString()} ${implausible.kind}: ${implausible.detail}`);
  }
  return { asked, found };
}

/** Of the requests, so many may be second ones. */
const MOST = 0.005;

test.each([366, 100, 30])('recorded candles, asked for in chunks of %i, are plausible', (size) => {
  const results = readRecordedSeries().map(({ interval, candles }) => implausibleOf(interval, candles, size));
  const asked = results.reduce((sum, result) => sum + result.asked, 0);
  const found = results.flatMap((result) => result.found);
  expect(found.length, `${found.length} of ${asked} answers: ${found.join('; ')}`).toBeLessThanOrEqual(asked * MOST);
});

test.each(['24h', '1h', '5m'] as const)('the made-up market is plausible: %s', async (interval) => {
  const now = Date.UTC(2026, 9, 20);
  const world = createMadeUpWorld({ seed: 7, coins: 60 });
  const market = createMadeUpMarket({ world, clock: frozenClock(now) });
  const results: ReturnType<typeof implausibleOf>[] = [];
  for (const { id } of await market.coins()) {
    const from = now - 3_660 * INTERVAL_MS[interval];
    const answer = await market.ohlcv({ coinId: id, quote: 'usd', interval, from, to: now, limit: 5_000 });
    const candles = answer as unknown as readonly Candle[];
    if (candles.length > 0) results.push(implausibleOf(interval, candles, 366));
  }
  const asked = results.reduce((sum, result) => sum + result.asked, 0);
  const found = results.flatMap((result) => result.found);
  expect(found.length, `${found.length} of ${asked} answers: ${found.join('; ')}`).toBeLessThanOrEqual(asked * MOST);
});
