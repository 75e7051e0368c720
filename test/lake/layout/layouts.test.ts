import { describe, expect, test } from 'vitest';
import { INTERVALS, PRICE_INTERVALS } from '../../../src/core/interval.ts';
import { CANDLES, columnsIn } from '../../../src/lake/dataset/series-datasets.ts';
import { createInstantFormat, readInstantText } from '../../../src/lake/format/instant-text.ts';
import { monthsEach, periodsOf } from '../../../src/lake/layout/period.ts';
import { plainNumber, toolCandles } from '../../../src/lake/layout/tool-candles.ts';
import { createBatch, setValue } from '../../../src/store/copy/columns.ts';
import { candlesOf } from '../../../src/store/upkeep/partition.ts';

const EVER = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

describe('periods', () => {
  test('of candles equal those of their partitions, so that retention and files agree', () => {
    expect(INTERVALS.map(monthsEach)).toEqual(INTERVALS.map((interval) => candlesOf(interval).months));
    expect(new Set(PRICE_INTERVALS.map(monthsEach))).toEqual(new Set([1, 3, 12]));
  });

  test.each([
    [12, ['2023 part', '2024 part', '2025 part']],
    [3, ['2023 part-q4', '2024 part-q1', '2024 part-q2', '2024 part-q3', '2024 part-q4', '2025 part-q1']],
  ] as const)('of %i months cover the first row, the last row, and all between', (months, names) => {
    const [first, last] = [Date.UTC(2023, 11, 31), Date.UTC(2025, 0, 1)];
    const found = [...periodsOf(months, first, last, EVER)];
    expect(found.map(({ year, name }) => `${year} ${name}`)).toEqual(names);
    expect(found[0]!.from).toBeLessThanOrEqual(first);
    expect(found.at(-1)!.to).toBeGreaterThan(last);
    expect(found.slice(1).every(({ from }, i) => from === found[i]!.to)).toBe(true);
  });

  test('are clipped to the requested span', () => {
    const clip = { from: Date.UTC(2024, 0, 15), to: Date.UTC(2024, 2, 10) };
    const found = [...periodsOf(1, Date.UTC(2020, 0, 1), Date.UTC(2030, 0, 1), clip)];
    expect(found.map(({ name, from, to }) => [name, from, to])).toEqual([
      ['part-01', clip.from, Date.UTC(2024, 1, 1)],
      ['part-02', Date.UTC(2024, 1, 1), Date.UTC(2024, 2, 1)],
      ['part-03', Date.UTC(2024, 2, 1), clip.to],
    ]);
    expect([...periodsOf(1, Date.UTC(2020, 0, 1), Date.UTC(2021, 0, 1), clip)]).toEqual([]);
  });
});

test.each([0, 1, 0.1, 123.456, 1e-7, 1.5e-7, 5e-324, 1e21, 1.7976931348623157e308, 123456789012345680000, 0.000001234])(
  'writes %d without an exponent, and the text reads as the same number',
  (value) => {
    const text = plainNumber(value);
    expect(text).toMatch(/^\d+(\.\d+)?$/);
    expect(Number(text)).toBe(value);
  },
);

test.each([
  ['2024-02-29T12:34:56Z', 0n],
  ['2024-02-29T12:34:56.789Z', 0n],
  ['2024-02-29T12:34:56.789012Z', 0n],
  ['1969-12-31T23:59:59.999999Z', 0n],
  ['0000-01-01T00:00:00Z', 0n],
  ['9999-12-31T23:59:59.999999Z', 0n],
])('reads and writes %s', (text) => {
  const at = readInstantText(text)!;
  expect(createInstantFormat()(at)).toBe(text);
  expect(at / 1_000_000n).toBe(
    BigInt(Math.floor(Date.parse(`${text.slice(0, 19)}Z`) / 1_000)) + (at < 0n && at % 1_000_000n !== 0n ? 1n : 0n),
  );
});

test.each(['', '2024-01-31', '2024-01-31T00:00:00', '2024-01-31T00:00:00+02:00', '2024-13-01T00:00:00Z', 'x'])(
  'rejects %j as an instant',
  (text) => {
    expect(readInstantText(text)).toBeNull();
  },
);

test('cannot write an instant outside four-digit years', () => {
  expect(() => createInstantFormat()(253_402_300_800_000_000n)).toThrow(RangeError);
});

test('other tools get no volume when the number of coins exceeds every double', () => {
  const columns = columnsIn(CANDLES.columns, true);
  const batch = createBatch(
    columns.map(({ type }) => type),
    2,
  );
  for (const [row, close] of [5e-324, 2].entries()) {
    const prices = { open: close, high: close, low: close, close };
    const known: Record<string, unknown> = {
      open_time: 0n,
      ...prices,
      volume: 1e300,
      coin_id: 'x',
      quote: 'usd',
      interval: '24h',
      is_final: true,
    };
    for (const [i, { name }] of columns.entries()) setValue(batch.columns[i]!, row, (known[name] ?? null) as never);
    batch.rows++;
  }
  expect([...toolCandles(batch)].map(({ volume }) => volume)).toEqual([null, 5e299]);
});
