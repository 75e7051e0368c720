import { and, eq } from 'drizzle-orm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tables } from '../../../src/store/connection/tables.ts';
import { series } from '../../../src/store/schema/candles.ts';
import { coin } from '../../../src/store/schema/coins.ts';
import { readInstant, writeInstant } from '../../../src/store/values/instant.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Postgres begins at 4713 BC; `Date` ends in the year 275760. */
const FIRST = Date.UTC(-4711, 0, 1);
const LAST = 8.64e15;
/** Up to the year 2248 a double can hold microseconds. */
const MOST_SECONDS = Math.floor(2 ** 43 / 1000);

const milliseconds = fc.oneof(
  fc.integer({ min: FIRST, max: LAST }),
  fc.integer({ min: -1e12, max: 4e12 }),
  fc.integer({ min: -1_000, max: 1_000 }),
  fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
);
const microseconds = fc
  .tuple(fc.integer({ min: -MOST_SECONDS, max: MOST_SECONDS }), fc.integer({ min: 0, max: 999_999 }))
  .map(([seconds, micros]) => seconds * 1000 + micros / 1000);
const instant = fc.oneof(milliseconds, microseconds);

describe('an instant', () => {
  test.each<[string, number]>([
    ['1970-01-01 00:00:00+00', 0],
    ['2024-02-29 23:59:59+00', Date.UTC(2024, 1, 29, 23, 59, 59)],
    ['2024-01-01 00:00:00.5+00', Date.UTC(2024, 0, 1) + 500],
    ['2024-01-01 00:00:00.123456+00', Date.UTC(2024, 0, 1) + 123.456],
    ['2024-01-01 00:00:00.000001+00', Date.UTC(2024, 0, 1) + 0.001],
    ['1969-12-31 23:59:59.999+00', -1],
    ['0099-12-31 00:00:00+00', Date.parse('0099-12-31T00:00:00Z')],
    ['0001-01-01 00:00:00.25+00', Date.parse('0001-01-01T00:00:00.250Z')],
    ['0001-12-31 00:00:00+00 BC', Date.parse('0000-12-31T00:00:00Z')],
    ['4713-02-28 12:00:00+00 BC', Date.UTC(-4712, 1, 28, 12)],
    ['10000-01-01 00:00:00+00', Date.UTC(10_000, 0, 1)],
    ['275760-09-13 00:00:00+00', LAST],
    ['infinity', Number.POSITIVE_INFINITY],
    ['-infinity', Number.NEGATIVE_INFINITY],
  ])('reads %s as %d', async (text, at) => {
    expect(readInstant(text)).toBe(at);
    const [row] = await database.sql<{ text: string }[]>`select ${at}::timestamptz::text as text`;
    expect(row!.text).toBe(text);
  });

  test.each(['275760-09-13 00:00:00.000001+00', '280000-01-01 00:00:00+00', '294276-12-31 23:59:59.999999+00'])(
    'reads %s, which is later than a Date can hold, as the latest instant',
    async (text) => {
      expect(readInstant(text)).toBe(LAST);
      const [row] = await database.sql<{ at: number; span: unknown }[]>`
        select ${text}::text::timestamptz as at, tstzmultirange(tstzrange('2024-01-01Z', ${text}::text::timestamptz)) as span`;
      expect(row).toEqual({ at: LAST, span: [{ from: Date.UTC(2024, 0, 1), to: LAST }] });
    },
  );

  test.each(['2024-01-01 00:00:00+02', '2024-01-01T00:00:00Z', '2024-01-01', '2024-01-01 00:00:00,5+00', 'now', ''])(
    'rejects %s, which a session in UTC never prints',
    (text) => expect(() => readInstant(text)).toThrow('not an instant in UTC'),
  );

  test.each([Number.NaN, 8.64e15 + 1])('cannot be %d', (at) => {
    expect(() => writeInstant(at)).toThrow(RangeError);
  });

  test('is read back as it was written, alone and in an array', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(instant, { freq: 9 }), { minLength: 1, maxLength: 20 }), async (ats) => {
        const [row] = await database.sql<{ one: number | null; many: (number | null)[] }[]>`
          select ${ats[0]!}::timestamptz as one, ${ats}::timestamptz[] as many`;
        expect(row).toEqual({ one: ats[0], many: ats });
      }),
      { numRuns: 300 },
    );
  });

  test('is the same number of microseconds on the server', async () => {
    await fc.assert(
      fc.asyncProperty(microseconds, async (at) => {
        const [row] = await database.sql<{ micros: number }[]>`
          select (extract(epoch from ${at}::timestamptz) * 1000000)::bigint as micros`;
        // Multiply whole milliseconds and the fraction apart: the product of both may round the wrong way where a double has no room for more.
        const whole = Math.floor(at);
        expect(row!.micros).toBe(whole * 1000 + Math.round((at - whole) * 1000));
      }),
      { numRuns: 200 },
    );
  });

  test('with microseconds in a column still finds its row', async () => {
    await database.sql`create table public.seen (at timestamptz not null default clock_timestamp(), span tstzrange)`;
    await database.sql`insert into public.seen select clock_timestamp() from generate_series(1, 100)`;
    const rows = await database.sql<{ at: number }[]>`select at from public.seen`;
    for (const { at } of rows) expect(await database.sql`select from public.seen where at = ${at}`).not.toHaveLength(0);
    expect(rows).toHaveLength(100);
  });
});

test('drizzle reads and writes the same instants and spans in tables of the schema', async () => {
  const db = tables(database.sql);
  const known = { name: 'A', symbol: 'A', rank: 1, isNew: false, isActive: true };
  const seen = { firstSeenAt: 0, lastSeenAt: 1_234.567, rankSeenAt: Number.POSITIVE_INFINITY };
  await db.insert(coin).values({ id: 'a-a', ...known, ...seen });
  const wanted = [{ from: 0, to: Number.POSITIVE_INFINITY }];
  await db.insert(series).values({ coinId: 'a-a', quote: 'usd', interval: '1h', wanted, covered: [], priority: 0 });
  const [row] = await db
    .select({ first: coin.firstSeenAt, last: coin.lastSeenAt, data: coin.firstDataAt, wanted: series.wanted })
    .from(coin)
    .innerJoin(series, eq(series.coinId, coin.id))
    .where(and(eq(coin.lastSeenAt, 1_234.567), eq(coin.rankSeenAt, Number.POSITIVE_INFINITY)));
  expect(row).toEqual({ first: 0, last: 1_234.567, data: null, wanted });
});

describe('rows', () => {
  test('have columns in camelCase, and names inside of JSON unchanged', async () => {
    const [row] = await database.sql`
      select 1 as first_data_at, 2 as volume_24h, 3 as "alreadyCamel", '{"is_new": true}'::jsonb as as_json`;
    expect(row).toEqual({ firstDataAt: 1, volume24h: 2, alreadyCamel: 3, asJson: { is_new: true } });
  });

  test('accept and return spans as plain objects', async () => {
    const span = { from: Date.UTC(2024, 0, 1), to: Number.POSITIVE_INFINITY };
    const [row] = await database.sql`
      select ${span}::tstzrange as one, ${[span]}::tstzmultirange as spans, ${[]}::tstzmultirange as nothing,
        ${[span, span]}::tstzrange[] as many, null::tstzrange as none`;
    expect(row).toEqual({ one: span, spans: [span], nothing: [], many: [span, span], none: null });
  });
});
