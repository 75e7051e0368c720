/** Means of real candles as prices: how many answers about them would need a second opinion, and which false answers do. */
import { describe, expect, test } from 'vitest';
import { readPriceRows } from '../../../src/contract/record/price.ts';
import type { Candle } from '../../../src/core/candle.ts';
import { DAY, INTERVAL_MS, type PriceInterval } from '../../../src/core/interval.ts';
import { answersOtherRequest } from '../../../src/ingest/chunk/other-request.ts';
import { findImplausible } from '../../../src/ingest/plausibility/plausibility.ts';
import { BACKFILLS, expectFew, implausibleOf, REFRESHES, stored, toColumns, withoutIdle } from './recorded/answers.ts';
import { PRICES, within } from './recorded/candles.ts';

describe.each([...BACKFILLS, ...REFRESHES])('answers of %i slots, %s', (size, order) => {
  test.each(PRICES)('prices are plausible: %s, %s', (name, interval, prices) => {
    // There are many hours: for short answers the newest year of them is enough.
    const newest = size < 30 ? prices.slice(-9_000) : prices;
    expectFew(name, [withoutIdle(name, size, implausibleOf(interval, newest, size, order))]);
  });
});

const valued = (row: Candle, price: number | null): Candle => ({
  ...row,
  ...{ open: price, high: price, low: price, close: price },
});
const scaled = (factor: number) => (rows: readonly Candle[]) => rows.map((row) => valued(row, row.close! * factor));
const second = (change: (rows: readonly Candle[]) => readonly Candle[]) => (rows: readonly Candle[]) => [
  ...rows.slice(0, rows.length >> 1),
  ...change(rows.slice(rows.length >> 1)),
];
const nothing = (rows: readonly Candle[]) => rows.map((row) => ({ ...valued(row, null), volume: null }));
const zero = (rows: readonly Candle[]) => rows.map((row) => ({ ...valued(row, 0), volume: 0 }));
const constant = (rows: readonly Candle[]) => rows.map(({ openTime }) => ({ ...rows[0]!, openTime }));

/** `isShort`: an answer of three rows shows it, too. */
const LIES: readonly (readonly [
  name: string,
  tell: (rows: readonly Candle[]) => readonly Candle[],
  kind: string,
  isShort: boolean,
])[] = [
  ['a million times as high', scaled(1e6), 'broken', true],
  ['a thousandth', scaled(1e-3), 'broken', true],
  ['three times as high', scaled(3), 'broken', true],
  ['no prices', nothing, 'null', true],
  ['prices of zero', zero, 'zero', true],
  ['one price over and over', constant, 'constant', true],
  ['every second row missing', (rows) => rows.filter((_, i) => i % 2 === 0), 'thinned', true],
  ['no prices in the second half', second(nothing), 'null', false],
  ['prices of zero in the second half', second(zero), 'zero', false],
  ['one row over and over in the second half', second(constant), 'constant', false],
  ['another scale in the second half', second(scaled(1e-3)), 'broken', false],
];

describe.each([
  ['hours as prices-1h', 'prices-1h'],
  ['hours as prices-1d', 'prices-1d'],
  ['ltc-litecoin 24h', 'prices-1d'],
] as const)('false answers beside stored prices: %s', (series, interval) => {
  const prices = PRICES.find(([name, of]) => name === series && of === interval)![2];
  const width = INTERVAL_MS[interval];
  /** What is found in an answer of `size` slots, of which `isFinal` are stored already. */
  function judge(size: number, tell: (rows: readonly Candle[]) => readonly Candle[], isFinal = 0): string | null {
    const at = prices.length - 400;
    const truth = prices.slice(at, at + size);
    const from = truth[0]!.openTime;
    const beside = within(prices, { from: from - 24 * width, to: from + isFinal * width });
    return (
      findImplausible({
        interval,
        candles: toColumns(tell(truth)),
        beside: {
          candles: beside.map(stored),
          covered: at + isFinal,
          coveredCandles: at + isFinal,
          final: [{ from: prices[0]!.openTime, to: from + isFinal * width }],
        },
        samples: [],
      })?.kind ?? null
    );
  }

  test('the truth is not detected as false', () => {
    for (const size of [1, 3, 100]) expect(judge(size, (rows) => rows)).toBeNull();
    expect(judge(100, (rows) => rows, 100)).toBeNull();
  });

  test.each(LIES)('%s', (_, tell, kind, isShort) => {
    expect(judge(100, tell)).toBe(kind);
    if (isShort) expect(judge(3, tell)).toBe(kind);
  });

  test.each([
    ['other volumes', (rows: readonly Candle[]) => rows.map((row) => ({ ...row, volume: row.volume! + 1 }))],
    ['prices a little higher', scaled(1.001)],
    ['every second row missing', (rows: readonly Candle[]) => rows.filter((_, i) => i % 2 === 0)],
  ])('an answer that contradicts a whole final stretch: %s', (_, tell) => {
    expect(judge(100, tell, 60)).toBe('rewritten');
    expect(judge(100, tell, 100)).toBe('rewritten');
  });

  test('two answers may differ in a few final prices', () => {
    expect(
      judge(100, (rows) => rows.map((row, i) => (i < 5 ? { ...row, volume: row.volume! + 1 } : row)), 60),
    ).toBeNull();
  });
});

test('prices of another coin are detected beside stored ones', () => {
  const of = (coin: string) => PRICES.find(([name]) => name === `${coin} 24h`)![2];
  const [bitcoin, litecoin] = [of('btc-bitcoin'), of('ltc-litecoin')];
  const from = litecoin[300]!.openTime;
  const final = { from: from - 100 * DAY, to: from };
  const found = findImplausible({
    interval: 'prices-1d',
    candles: toColumns(litecoin.slice(300, 310)),
    beside: { candles: within(bitcoin, final).map(stored), covered: 100, coveredCandles: 100, final: [final] },
    samples: [],
  });
  expect(found?.kind).toBe('broken');
  // The stored prices may be the false ones as well: they are requested again.
  expect(found?.contradicts).toEqual([from - DAY]);
});

describe('rows of another width do not answer the request', () => {
  const START = Date.UTC(2024, 0, 1);
  const NOW = START + 4_000 * DAY;
  const judge = (asked: PriceInterval, told: PriceInterval, count: number) => {
    const first = Math.ceil(START / INTERVAL_MS[told]) * INTERVAL_MS[told];
    const read = readPriceRows(
      Array.from({ length: count }, (_, i) => ({
        timestamp: new Date(first + i * INTERVAL_MS[told]).toISOString(),
        ...{ price: 100 + i, volume_24h: 5 + i, market_cap: 7 + i },
      })),
    );
    return answersOtherRequest(asked, read.ok ? read.rows : [], { date: NOW, latest: NOW });
  };

  test.each([
    ['prices-1h', 'prices-1d'],
    ['prices-1h', 'prices-5m'],
    ['prices-1h', 'prices-30m'],
    ['prices-1h', 'prices-45m'],
    ['prices-10m', 'prices-5m'],
    ['prices-15m', 'prices-10m'],
    ['prices-45m', 'prices-1h'],
    ['prices-1d', 'prices-1h'],
    ['prices-1d', 'prices-7d'],
    ['prices-1d', 'prices-365d'],
    ['prices-7d', 'prices-1d'],
    ['prices-7d', 'prices-30d'],
    ['prices-30d', 'prices-90d'],
    ['prices-365d', 'prices-1d'],
  ] as const)('requested %s, answered %s', (asked, told) => {
    for (const count of [4, 5, 12, 300]) expect(judge(asked, told, count), `${count}`).toMatch(/^its rows are/);
    expect(judge(asked, asked, 12)).toBeNull();
  });
});
