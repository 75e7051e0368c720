import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { normalize, type Span } from '../../../src/core/span.ts';
import { parseMultirange, parseRange, toMultirange, toRange } from '../../../src/store/values/multirange.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const FIRST = Date.parse('0001-01-01T00:00:00Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');
const instant = fc.oneof(
  fc.integer({ min: FIRST, max: LAST }),
  fc.integer({ min: 0, max: 30 }).map((day) => Date.UTC(2024, 0, day)),
);
const span = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: instant }, { weight: 1, arbitrary: fc.constant(Number.NEGATIVE_INFINITY) }),
    fc.oneof({ weight: 9, arbitrary: instant }, { weight: 1, arbitrary: fc.constant(Number.POSITIVE_INFINITY) }),
  )
  .map(([a, b]): Span => ({ from: Math.min(a, b), to: Math.max(a, b) }));

describe('spans and Postgres multiranges', () => {
  test('are read back from the server as they were written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(span, { maxLength: 8 }).map(normalize), async (spans) => {
        const [row] = await database.sql<
          { text: string }[]
        >`select ${toMultirange(spans)}::tstzmultirange::text as text`;
        expect(parseMultirange(row!.text)).toEqual(spans);
      }),
      { numRuns: 300 },
    );
  });

  test('mean the same set: the server unites overlapping spans exactly as normalize does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(span, { maxLength: 8 }), async (spans) => {
        const [row] = await database.sql<
          { text: string }[]
        >`select ${toMultirange(spans)}::tstzmultirange::text as text`;
        expect(parseMultirange(row!.text)).toEqual(normalize(spans));
      }),
      { numRuns: 300 },
    );
  });

  test('a single range is read back as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(
        span.filter((s) => s.from < s.to),
        async (one) => {
          const [row] = await database.sql<{ text: string }[]>`select ${toRange(one)}::tstzrange::text as text`;
          expect(parseRange(row!.text)).toEqual(one);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('are half-open: the end is outside', async () => {
    const [row] = await database.sql`
      select ${toRange({ from: 0, to: 1000 })}::tstzrange @> to_timestamp(0) as first, ${toRange({ from: 0, to: 1000 })}::tstzrange @> to_timestamp(1) as last`;
    expect(row).toEqual({ first: true, last: false });
  });

  test('microseconds are cut, and infinity is understood', () => {
    expect(parseRange('["2024-01-01 00:00:00.123999+00",infinity)')).toEqual({
      from: Date.parse('2024-01-01T00:00:00.123Z'),
      to: Number.POSITIVE_INFINITY,
    });
    expect(parseRange('["2024-01-01 00:00:00.5+00","2024-01-02 00:00:00+00")').from).toBe(
      Date.parse('2024-01-01T00:00:00.500Z'),
    );
  });

  test('a text that is not in UTC, not half-open or no range is rejected', () => {
    expect(() => parseRange('["2024-01-01 00:00:00+02","2024-01-02 00:00:00+02")')).toThrow('not an instant in UTC');
    expect(() => parseRange('["2024-01-01 00:00:00+00","2024-01-02 00:00:00+00"]')).toThrow('not a range');
    expect(() => parseMultirange('nonsense')).toThrow('not a multirange');
    expect(() => toRange({ from: 0, to: Date.UTC(12_000, 0, 1) })).toThrow(RangeError);
  });
});
