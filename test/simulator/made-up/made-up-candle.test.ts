import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OhlcvCandle } from '../../../src/contract/record/market-data.ts';
import { type CandleInterval, DAY, floorToGrid, INTERVAL_MS, INTERVALS } from '../../../src/core/interval.ts';
import { toCandle, visitBars } from '../../../src/simulator/made-up/made-up-candle.ts';
import { createMadeUpWorld, type MadeUpSeries } from '../../../src/simulator/made-up/made-up-world.ts';

const COINS = 27;
const worlds = new Map<number, ReturnType<typeof createMadeUpWorld>>();

function seriesOf(seed: number, index: number, quote: 'usd' | 'btc'): MadeUpSeries {
  const world = worlds.get(seed) ?? createMadeUpWorld({ seed, coins: COINS });
  worlds.set(seed, world);
  return world.series(world.coins[index]!, quote);
}

function candles(series: MadeUpSeries, interval: CandleInterval, from: number, to: number): OhlcvCandle[] {
  const out: OhlcvCandle[] = [];
  visitBars(series, interval, from, to, (at, bar) => {
    out.push(toCandle(series.coin, at, at + INTERVAL_MS[interval] - 1_000, bar));
    return true;
  });
  return out;
}

/** The candles that the finer candles make, by the definition of a candle. */
function aggregate(fine: readonly OhlcvCandle[], interval: CandleInterval): OhlcvCandle[] {
  const groups = new Map<number, OhlcvCandle[]>();
  for (const candle of fine) {
    const at = floorToGrid(candle.openTime, interval);
    groups.set(at, [...(groups.get(at) ?? []), candle]);
  }
  return [...groups].map(([openTime, parts]) => ({
    openTime,
    closeTime: openTime + INTERVAL_MS[interval] - 1_000,
    open: parts[0]!.open,
    high: Math.max(...parts.map((part) => part.high!)),
    low: Math.min(...parts.map((part) => part.low!)),
    close: parts.at(-1)!.close,
    volume: parts.some((part) => part.volume === null) ? null : parts.reduce((sum, part) => sum + part.volume!, 0),
    marketCap: parts.at(-1)!.marketCap,
  }));
}

const aSeries = fc
  .record({
    seed: fc.integer({ min: 0, max: 30 }),
    index: fc.nat(COINS - 1),
    quote: fc.constantFrom('usd' as const, 'btc' as const),
  })
  .map(({ seed, index, quote }) => seriesOf(seed, index, quote));
const aDay = fc.integer({ min: Date.UTC(2013, 0, 1) / DAY, max: Date.UTC(2026, 0, 1) / DAY }).map((day) => day * DAY);
/** A day of the coin's life, or one of its edges. */
const aSeriesAndDay = fc.tuple(aSeries, aDay, fc.constantFrom('any', 'first', 'last')).map(([series, any, which]) => {
  const { start, end } = series.coin;
  const at = which === 'first' ? start : which === 'last' && end !== Infinity ? end - 1 : Math.max(any, start);
  return { series, day: Math.floor(at / DAY) * DAY };
});

describe('the candles of the made-up market', () => {
  it('are exact aggregates of the finer candles, at every width, including gaps and the ends of a coin’s life', () => {
    fc.assert(
      fc.property(aSeriesAndDay, fc.constantFrom(...INTERVALS), ({ series, day }, coarse) => {
        const end = day + 2 * DAY - 1;
        for (const fine of INTERVALS.slice(0, INTERVALS.indexOf(coarse))) {
          expect(candles(series, coarse, day, end)).toEqual(aggregate(candles(series, fine, day, end), coarse));
        }
      }),
      { numRuns: 400 },
    );
  });

  it('are possible: on the grid, ascending, low ≤ open, close ≤ high, integer volumes, positive prices', () => {
    fc.assert(
      fc.property(aSeriesAndDay, fc.constantFrom(...INTERVALS), ({ series, day }, interval) => {
        const rows = candles(series, interval, day, day + 3 * DAY);
        const isWhole = (n: number | null) => n === null || (Number.isSafeInteger(n) && n >= 0);
        const impossible = rows.filter(
          (c, i) =>
            c.openTime % INTERVAL_MS[interval] !== 0 ||
            (i > 0 && c.openTime <= rows[i - 1]!.openTime) ||
            !(c.low! > 0 && c.low! <= Math.min(c.open!, c.close!) && c.high! >= Math.max(c.open!, c.close!)) ||
            !isWhole(c.volume) ||
            !isWhole(c.marketCap),
        );
        expect(impossible).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('do not depend on what is requested together with them, nor on the order of requests', () => {
    fc.assert(
      fc.property(aSeriesAndDay, fc.constantFrom(...INTERVALS), ({ series, day }, interval) => {
        const width = INTERVAL_MS[interval];
        const together = candles(series, interval, day, day + DAY - 1);
        for (let at = day + DAY - width; at >= day; at -= width * 7) {
          const [alone = null] = candles(series, interval, at, at);
          expect(alone).toEqual(together.find((candle) => candle.openTime === at) ?? null);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('begin and end exactly where the coin does', () => {
    for (let index = 0; index < COINS; index++) {
      const series = seriesOf(7, index, 'usd');
      const { start, end } = series.coin;
      expect(candles(series, '5m', start - 2 * DAY, start).map((c) => c.openTime)).toEqual([start]);
      if (end !== Infinity)
        expect(candles(series, '5m', end - 300_000, end + 2 * DAY).map((c) => c.openTime)).toEqual([end - 300_000]);
    }
  });

  it('exist for both quotes of a coin at the same times', () => {
    for (let index = 0; index < COINS; index++) {
      const from = Date.UTC(2022, 5, 1);
      const times = (quote: 'usd' | 'btc') =>
        candles(seriesOf(3, index, quote), '1h', from, from + 60 * DAY).map((c) => c.openTime);
      expect(times('usd')).toEqual(times('btc'));
    }
  });

  it('have every oddity in a world of nine coins', () => {
    const from = Date.UTC(2020, 0, 1);
    const days = (index: number) => candles(seriesOf(1, index, 'usd'), '24h', from, from + 3 * 365 * DAY);
    const byKind = new Map(Array.from({ length: 9 }, (_, i) => [seriesOf(1, i, 'usd').coin.kind, i]));
    expect([...byKind.keys()].sort()).toEqual(['dead', 'gappy', 'late', 'plain', 'sparse', 'tiny']);
    const lengths = gapLengths(days(byKind.get('gappy')!));
    expect(lengths.size).toBeGreaterThan(4);
    expect(Math.max(...lengths)).toBeGreaterThan(7);
    expect(days(byKind.get('tiny')!)[0]!.close).toBeLessThan(1e-7);
    expect(days(byKind.get('sparse')!).some((c) => c.volume === null)).toBe(true);
    expect(days(byKind.get('sparse')!).some((c) => c.marketCap === null)).toBe(true);
    expect(seriesOf(1, byKind.get('late')!, 'usd').coin.start).toBeGreaterThan(Date.UTC(2022, 5, 30));
    expect(gapLengths(days(0)).size).toBe(0);
  });
});

describe('the coins of the made-up market', () => {
  it('have 50,000 different ids, shaped like the upstream’s, bitcoin first', () => {
    const { coins } = createMadeUpWorld({ seed: 5, coins: 50_000 });
    expect(new Set(coins.map((coin) => coin.id)).size).toBe(50_000);
    expect(coins[0]!.id).toBe('btc-bitcoin');
    for (const coin of coins) expect(coin.id).toMatch(/^[a-z0-9]+-[a-z0-9-]+$/);
  });

  it('are the same coins in a smaller world', () => {
    expect(createMadeUpWorld({ seed: 5, coins: 10 }).coins).toEqual(
      createMadeUpWorld({ seed: 5, coins: 40 }).coins.slice(0, 10),
    );
  });

  it.each([0, -1, 1.5, 65_001])('cannot be %d', (coins) => {
    expect(() => createMadeUpWorld({ seed: 1, coins })).toThrow(
      `coins must be a whole number from 1 to 65000, got ${coins}`,
    );
  });
});

function gapLengths(days: readonly OhlcvCandle[]): Set<number> {
  const lengths = days.slice(1).map((c, i) => (c.openTime - days[i]!.openTime) / DAY - 1);
  return new Set(lengths.filter((length) => length > 0));
}
