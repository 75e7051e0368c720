/**
 * The rates of currencies without a coin move: the rate of one instant is always the same, other instants have other rates, and tickers
 * agree with it.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FIATS } from '../../src/contract/record/fiats.ts';
import type { MarketData } from '../../src/contract/record/market-data.ts';
import type { TickerQuote } from '../../src/contract/record/records.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { dollarsPer } from '../../src/simulator/exchange-rates.ts';
import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { createRecordedMarket } from '../../src/simulator/recorded/recorded.ts';
import { readRecordedSeries } from '../../src/simulator/recorded/recorded-series.ts';
import { RATES_SEED } from '../../src/simulator/recorded/recorded-ticker.ts';
import { frozenClock } from '../service/conformance.ts';

const MINUTE = 60_000;
const NOON = Date.UTC(2024, 5, 1, 12, 3);
const SEED = 7;
const CURRENCIES = FIATS.map(({ symbol }) => symbol).filter((symbol) => symbol !== 'USD');
const instants = fc.integer({ min: Date.UTC(2015, 0, 1), max: Date.UTC(2030, 0, 1) });

describe('the rate of a currency', () => {
  it('is the same at the same instant, and different at another instant or with another seed', () => {
    for (const symbol of CURRENCIES) {
      const rate = dollarsPer(symbol, NOON, SEED)!;
      expect(dollarsPer(symbol, NOON, SEED)).toBe(rate);
      expect(dollarsPer(symbol, NOON + MINUTE - 1, SEED)).toBe(rate);
      for (const later of [MINUTE, HOUR, DAY, 30 * DAY]) expect(dollarsPer(symbol, NOON + later, SEED)).not.toBe(rate);
      expect(dollarsPer(symbol, NOON, SEED + 1)).not.toBe(rate);
    }
    expect(dollarsPer('USD', NOON, SEED)).toBe(1);
    expect(dollarsPer('BTC', NOON, SEED)).toBeUndefined();
  });

  it('moves on its own, a little in a minute and more in a day, and stays near its level', () => {
    const moves = (symbol: string, step: number) =>
      Array.from({ length: 200 }, (_, i) =>
        Math.log(dollarsPer(symbol, NOON + (i + 1) * step, SEED)! / dollarsPer(symbol, NOON + i * step, SEED)!),
      );
    const typical = (all: readonly number[]) => Math.sqrt(all.reduce((sum, one) => sum + one * one, 0) / all.length);
    const together = (a: readonly number[], b: readonly number[]) =>
      a.reduce((sum, one, i) => sum + one * b[i]!, 0) / a.length / typical(a) / typical(b);
    for (const symbol of CURRENCIES) {
      const [minute, day] = [typical(moves(symbol, MINUTE)), typical(moves(symbol, DAY))];
      // As the square root of the time: 38 times as far in a day as in a minute.
      expect([symbol, day / minute > 19, day / minute < 76]).toEqual([symbol, true, true]);
      expect(day).toBeLessThan(0.015);
    }
    expect(Math.abs(together(moves('EUR', DAY), moves('JPY', DAY)))).toBeLessThan(0.3);
    fc.assert(
      fc.property(instants, fc.constantFrom(...CURRENCIES), (at, symbol) => {
        const [rate, level] = [dollarsPer(symbol, at, SEED)!, dollarsPer(symbol, NOON, SEED)!];
        expect(Math.abs(Math.log(rate / level))).toBeLessThan(1);
      }),
    );
  });
});

const world = createMadeUpWorld({ seed: SEED, coins: 6 });
const series = readRecordedSeries();
const CHANGES = { '1h': HOUR, '6h': 6 * HOUR, '12h': 12 * HOUR, '24h': DAY, '7d': 7 * DAY, '30d': 30 * DAY } as const;

type Subject = {
  readonly at: fc.Arbitrary<number>;
  readonly seed: number;
  readonly marketAt: (now: number) => MarketData;
};
const subjects: readonly [string, Subject][] = [
  ['made-up', { at: instants, seed: SEED, marketAt: (now) => createMadeUpMarket({ world, clock: frozenClock(now) }) }],
  [
    'recorded',
    {
      at: fc.integer({ min: Date.UTC(2019, 0, 1), max: Date.UTC(2021, 11, 1) }),
      seed: RATES_SEED,
      marketAt: (now) => createRecordedMarket({ series, clock: frozenClock(now) }),
    },
  ],
];

describe.each(subjects)('the %s market in other currencies', (_, { at, seed, marketAt }) => {
  const bitcoinAt = async (now: number, symbol: string) => {
    const ticker = (await marketAt(now).ticker({ coinId: 'btc-bitcoin', quotes: [symbol, 'USD'] }))!;
    return { updatedAt: Date.parse(ticker.last_updated!), usd: ticker.quotes.USD!, quote: ticker.quotes[symbol]! };
  };

  it('has the prices in dollars times the rate of its update, and changes that match these prices', async () => {
    await fc.assert(
      fc.asyncProperty(at, fc.constantFrom(...CURRENCIES), async (now, symbol) => {
        const { updatedAt, usd, quote } = await bitcoinAt(now, symbol);
        expect(usd.price! / quote.price! / dollarsPer(symbol, updatedAt, seed)!).toBeCloseTo(1, 9);
        for (const [name, ms] of Object.entries(CHANGES)) {
          const before = (await bitcoinAt(now - ms, symbol)).quote.price!;
          const told = quote[`percent_change_${name}` as keyof TickerQuote] as number;
          // Changes have two digits.
          expect([name, Math.abs(told - (quote.price! / before - 1) * 100) <= 0.0051]).toEqual([name, true]);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('converts money at the current rates', async () => {
    await fc.assert(
      fc.asyncProperty(at, async (now) => {
        const euros = await marketAt(now).convert({ baseId: 'eur-euro', quoteId: 'pln-polish-zloty', amount: 3 });
        const rate = dollarsPer('EUR', now, seed)! / dollarsPer('PLN', now, seed)!;
        expect(euros!.price! / rate).toBeCloseTo(3, 9);
      }),
      { numRuns: 20 },
    );
  });
});
