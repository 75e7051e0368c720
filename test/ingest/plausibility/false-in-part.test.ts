/** Answers of which a part of the rows is false, or only volume and market cap. */
import { describe, expect, test } from 'vitest';
import type { Candle, CandleColumns } from '../../../src/core/candle.ts';
import { DAY } from '../../../src/core/interval.ts';
import { findImplausible } from '../../../src/ingest/plausibility/plausibility.ts';
import { readRecordedSeries } from '../../../src/simulator/recorded/recorded-series.ts';
import type { StoredCandle } from '../../../src/store/candle/neighbours.ts';

const VALUES = ['open', 'high', 'low', 'close', 'volume', 'marketCap'] as const;
const PRICES = ['open', 'high', 'low', 'close'] as const;

const truth = readRecordedSeries()
  .find(({ coinId, interval }) => coinId === 'btc-bitcoin' && interval === '24h')!
  .candles.slice(-366)
  .map((row) => ({ ...row, marketCap: row.marketCap ?? row.close! * 2e7 }));

const judge = (rows: readonly Candle[], known: readonly Candle[] = [], isFinal = known.length > 0) =>
  findImplausible({
    interval: '24h',
    candles: Object.fromEntries(
      (['openTime', ...VALUES] as const).map((name) => [name, rows.map((row) => row[name])]),
    ) as unknown as CandleColumns,
    beside: {
      candles: known.map((row) => [row.openTime, ...VALUES.map((name) => row[name])] as unknown as StoredCandle),
      covered: known.length,
      coveredCandles: known.length,
      final: isFinal ? [{ from: known[0]!.openTime, to: known.at(-1)!.openTime + DAY }] : [],
    },
    samples: [],
  })?.kind ?? null;

type Part = { readonly from: number; readonly to: number };
const inPart = ({ from, to }: Part, change: (row: Candle) => Candle) =>
  truth.map((row, i) => (i >= from && i < to ? change(row) : row));
const withValues = (value: number | null) => (row: Candle) => ({
  ...row,
  ...Object.fromEntries(VALUES.map((name) => [name, value])),
});
const likeRow = (n: number) => (row: Candle) => ({ ...truth[n]!, openTime: row.openTime });
const times = (factor: number) => (row: Candle) => ({
  ...row,
  ...Object.fromEntries(PRICES.map((name) => [name, row[name]! * factor])),
});

describe('the first answer of a series, of 366 rows', () => {
  test.each([
    ['the truth', truth, null],
    ['the last 183 are zero', inPart({ from: 183, to: 366 }, withValues(0)), 'zero'],
    ['the last 183 have no numbers', inPart({ from: 183, to: 366 }, withValues(null)), 'null'],
    ['the last 180 are one candle', inPart({ from: 186, to: 366 }, likeRow(186)), 'constant'],
    ['twelve in the midst are one candle', inPart({ from: 100, to: 112 }, likeRow(100)), 'constant'],
    ['eleven in the midst are one candle', inPart({ from: 100, to: 111 }, likeRow(100)), null],
    ['100 in the midst are a million times as much', inPart({ from: 130, to: 230 }, times(1e6)), 'broken'],
    ['one in the midst is a thousandth', inPart({ from: 130, to: 131 }, times(1e-3)), 'broken'],
  ] as const)('%s', (_, rows, kind) => {
    expect(judge(rows)).toBe(kind);
  });

  test.each([
    ['zero', inPart({ from: 183, to: 366 }, withValues(0))],
    ['one candle', inPart({ from: 186, to: 366 }, likeRow(186))],
    ['a million times as much', inPart({ from: 130, to: 230 }, times(1e6))],
  ])('a part of %s is not implausible where it is stored already', (_, rows) => {
    expect(judge(rows, rows)).toBeNull();
  });
});

describe('an answer whose rows do not continue each other, beside stored candles that do', () => {
  const [known, rows] = [truth.slice(0, 8), truth.slice(8, 100)];
  const swapped = (row: Candle) => ({ ...row, open: row.close, close: row.open });
  const inOrder = (orderOf: (i: number) => number) =>
    rows.map((row, i) => ({ ...rows[orderOf(i)]!, openTime: row.openTime }));
  test.each([
    ['the truth', rows, null],
    ['open and close are swapped', rows.map(swapped), 'broken'],
    ['the newest row is the first', inOrder((i) => rows.length - 1 - i), 'broken'],
    ['the rows are in no order', inOrder((i) => (i * 37) % rows.length), 'broken'],
    [
      'every candle is its close',
      rows.map((row) => ({ ...row, open: row.close, high: row.close, low: row.close })),
      'broken',
    ],
    ['open and close are swapped, of another scale', rows.map(times(1.4)).map(swapped), 'broken'],
  ] as const)('%s', (_, told, kind) => {
    expect(judge(told, known)).toBe(kind);
  });

  test('is nothing new where the stored candles do not, either', () => {
    expect(judge(rows.map(swapped), known.map(swapped))).toBeNull();
  });
});

describe('an answer about final candles', () => {
  const change = (name: 'volume' | 'marketCap', slots: number, to: (value: number) => number | null) =>
    truth.map((row, i) => (i < slots ? { ...row, [name]: to(row[name]!) } : row));

  test.each(['volume', 'marketCap'] as const)('may change %s of ten of them at most', (name) => {
    expect(
      judge(
        change(name, 10, (value) => value + 1),
        truth,
      ),
    ).toBeNull();
    expect(
      judge(
        change(name, 11, (value) => value + 1),
        truth,
      ),
    ).toBe('rewritten');
    expect(
      judge(
        change(name, 11, () => null),
        truth,
      ),
    ).toBe('rewritten');
    const manifold = change(name, 366, (value) => value * 50);
    expect(judge(manifold, truth, false), 'not final').toBeNull();
  });

  test('or about candles that a repair left, may change the prices of ten of them at most', () => {
    const changed = (slots: number) => truth.map((row, i) => (i < slots ? times(1.2)(row) : row));
    expect(judge(changed(10), truth, false)).toBeNull();
    expect(judge(changed(11), truth, false)).toBe('rewritten');
    expect(
      judge(
        truth.filter((_, i) => i < 100 || i > 110),
        truth,
        false,
      ),
    ).toBe('rewritten');
  });
});
