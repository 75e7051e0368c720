/** Real markets and the simulator's calm ones: how many of their answers would need a second opinion. */
import { describe, expect, test } from 'vitest';
import type { Candle } from '../../../src/core/candle.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { findImplausible } from '../../../src/ingest/plausibility/plausibility.ts';
import type { Sample } from '../../../src/store/candle/other-intervals.ts';
import { testMadeUp } from './plausibility.ts';
import { BACKFILLS, expectFew, implausibleOf, REFRESHES, stored, toColumns, withoutIdle } from './recorded/answers.ts';
import { REAL, recorded, within } from './recorded/candles.ts';

describe.each([...BACKFILLS, ...REFRESHES])('answers of %i slots, %s', (size, order) => {
  test('recorded candles are plausible', () => {
    // There are many hours: for short answers the newest year of them is enough.
    const newest = (candles: readonly Candle[]) => (size < 30 ? candles.slice(-9_000) : candles);
    for (const [name, interval, candles] of REAL) {
      expectFew(name, [withoutIdle(name, size, implausibleOf(interval, newest(candles), size, order))]);
    }
  });

  // Refreshes of two and three slots are in `plausibility.deep.test.ts`.
  if (order === 'newest first' || size === 1) testMadeUp(size, order);
});

describe('another interval of the same coin', () => {
  const series = recorded.filter(({ coinId }) => coinId === 'btc-bitcoin');
  const hours = series.find(({ interval }) => interval === '1h')!.candles;
  const days = series
    .find(({ interval }) => interval === '24h')!
    .candles.filter(({ openTime: at }) => {
      return within(hours, { from: at, to: at + DAY }).length === 24;
    });
  const alone = { candles: [], covered: 0, coveredCandles: 0, final: [] } as const;

  /** The hours of some days, compared with the daily candles of these days. */
  const compare = (
    picked: readonly Candle[],
    change: (hours: readonly Candle[]) => readonly Candle[] = (all) => all,
  ) => {
    const samples = picked.map(
      (day): Sample => ({
        interval: '24h',
        slot: { from: day.openTime, to: day.openTime + DAY },
        candle: stored(day),
        hasDiffered: false,
      }),
    );
    const span = { from: picked[0]!.openTime, to: picked.at(-1)!.openTime + DAY };
    return findImplausible({
      interval: '1h',
      candles: toColumns(change(within(hours, span))),
      beside: alone,
      samples,
    });
  };

  test.each([1, 4, 15])('recorded hours agree with %i recorded days', (size) => {
    const results = days.flatMap((_, i) => (i + size <= days.length ? [compare(days.slice(i, i + size))] : []));
    expect(results.length).toBeGreaterThan(500);
    expectFew('hours beside days', [{ asked: results.length, found: results.flatMap((found) => found?.detail ?? []) }]);
  });

  test('the first answer of a series, of another scale or another day, is detected', () => {
    const scaled = (rows: readonly Candle[]) =>
      rows.map((row) => ({
        ...row,
        open: row.open! / 1e3,
        high: row.high! / 1e3,
        low: row.low! / 1e3,
        close: row.close! / 1e3,
      }));
    const next = (rows: readonly Candle[]) =>
      rows.map((row, i) => ({ ...(hours[hours.indexOf(rows[0]!) + i + 24] ?? row), openTime: row.openTime }));
    const found = (change: (rows: readonly Candle[]) => readonly Candle[]) =>
      days.slice(0, 500).filter((_, i) => compare(days.slice(i, i + 4), change)?.kind === 'other interval').length;
    expect(found(scaled)).toBe(500);
    // A market that hardly moves looks the same a day later.
    expect(found(next)).toBeGreaterThan(300);
  });
});

/** What a comparison with the neighbouring stored candles shows of a short answer. */
describe('a short answer next to stored candles', () => {
  const { candles } = recorded.find(({ interval }) => interval === '1h')!;
  const at = 5_000;
  const judge = (rows: readonly Candle[]) =>
    findImplausible({
      interval: '1h',
      candles: toColumns(rows),
      beside: {
        candles: candles.slice(at - 24, at).map(stored),
        covered: at,
        coveredCandles: at,
        final: [{ from: candles[0]!.openTime, to: candles[at - 1]!.openTime + HOUR }],
      },
      samples: [],
    })?.kind ?? null;
  const truth = candles.slice(at, at + 3);
  const as = (row: Candle, values: Candle) => ({ ...values, openTime: row.openTime });
  const times = (factor: number) =>
    truth.map((row) => ({
      ...row,
      open: row.open! * factor,
      high: row.high! * factor,
      low: row.low! * factor,
      close: row.close! * factor,
    }));

  test.each([
    ['the truth', truth, null],
    ['one candle of it', truth.slice(0, 1), null],
    ['three percent higher', times(1.03), 'broken'],
    ['a thousandth', times(1e-3), 'broken'],
    ['a thousandth of one candle', times(1e-3).slice(0, 1), 'broken'],
    ['the values of the day before', truth.map((row, i) => as(row, candles[at + i - 24]!)), 'broken'],
    ['three times as much of the second one', truth.with(1, times(3)[1]!), 'broken'],
    ['all the same', truth.map((row) => as(row, truth[0]!)), 'constant'],
    ['the second one missing', [truth[0]!, truth[2]!], 'thinned'],
  ])('%s', (_, rows, kind) => {
    expect(judge(rows)).toBe(kind);
  });

  test('a hole that is final already is not implausible', () => {
    const missing = truth[1]!.openTime;
    const beside = {
      candles: candles
        .slice(at - 24, at + 24)
        .filter(({ openTime }) => openTime !== missing)
        .map(stored),
      covered: at + 24,
      coveredCandles: at + 23,
      final: [{ from: candles[0]!.openTime, to: candles[at + 24]!.openTime }],
    };
    const rows = toColumns([truth[0]!, truth[2]!]);
    expect(findImplausible({ interval: '1h', candles: rows, beside, samples: [] })).toBeNull();
  });

  test.each([
    [30, 18, 'thinned'],
    [200, 170, 'rewritten'],
  ])(
    'an answer of %i slots without every second candle is detected, also when another run has stored %i of them meanwhile',
    (slots, n, kind) => {
      const asked = candles.slice(0, slots);
      const rows = toColumns(asked.filter((_, i) => i % 2 === 0));
      const final = [{ from: asked[0]!.openTime, to: asked[n]!.openTime }];
      const beside = { candles: asked.slice(0, n).map(stored), covered: n, coveredCandles: n, final };
      expect(findImplausible({ interval: '1h', candles: rows, beside, samples: [] })?.kind).toBe(kind);
    },
  );

  test.each(['volume', 'marketCap'] as const)(
    'a long answer without any %s is detected, except where a neighbour has none either',
    (name) => {
      const asked = candles.slice(100, 220).map((candle) => ({ ...candle, marketCap: 1e9, [name]: null }));
      const around = [...candles.slice(90, 100), ...candles.slice(220, 230)].map((candle) => ({
        ...candle,
        marketCap: 1e9,
      }));
      const final = [{ from: candles[90]!.openTime, to: candles[230]!.openTime }];
      const judged = (neighbours: readonly Candle[]) =>
        findImplausible({
          interval: '1h',
          candles: toColumns(asked),
          beside: { candles: neighbours.map(stored), covered: 20, coveredCandles: 20, final },
          samples: [],
        });
      expect(judged(around)).toMatchObject({ kind: 'null' });
      expect(judged(around.with(3, { ...around[3]!, [name]: null }))).toBeNull();
    },
  );
});
