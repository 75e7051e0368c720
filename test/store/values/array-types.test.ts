import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test('arrays of text are read back as they were written, whatever they contain', async () => {
  const text = fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0'));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(text)), async (values) => {
      const [row] = await database.sql<{ back: unknown; n: number }[]>`
        select ${values}::text[] as back, coalesce(array_length(${values}::text[], 1), 0) as n`;
      expect(row).toEqual({ back: values, n: values.length });
    }),
    { numRuns: 60 },
  );
});

test('arrays of numbers, booleans and ranges are read back as they were written', async () => {
  const range = { from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 1, 1) };
  const doubles = [0.1, -0, 1e-300, 1.7976931348623157e308, Number.POSITIVE_INFINITY, null];
  const [row] = await database.sql`
    select ${[1, -2, null]}::int[] as ints, ${[2 ** 40, null]}::bigint[] as bigs, ${doubles}::float8[] as doubles,
      ${['true', 'false']}::text[]::bool[] as flags, ${[range]}::tstzrange[] as ranges`;
  expect(row).toEqual({
    ints: [1, -2, null],
    bigs: [2 ** 40, null],
    doubles: [0.1, 0, 1e-300, 1.7976931348623157e308, Number.POSITIVE_INFINITY, null],
    flags: [true, false],
    ranges: [range],
  });
});
