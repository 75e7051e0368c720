/** The query builder on our connection: every column type both ways, transactions, and the errors that callers rely on. */
import { eq, getTableName, is, sql as raw } from 'drizzle-orm';
import { boolean, doublePrecision, integer, PgTable, pgTable, smallint, text } from 'drizzle-orm/pg-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, openDatabase } from '../../../src/store/connection/connect.ts';
import { isDatabaseUnavailable } from '../../../src/store/connection/database-unavailable.ts';
import { matches, tables, updateRows } from '../../../src/store/connection/tables.ts';
import {
  bigIdentity,
  bigNumber,
  bytea,
  candleInterval,
  instant,
  jsonb,
  tstzmultirange,
  tstzrange,
} from '../../../src/store/schema/columns.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { loadSchemaFiles } from '../../support/schema-files.ts';

const sample = pgTable('sample', {
  id: bigIdentity('id').primaryKey(),
  name: text('name').notNull().unique(),
  small: smallint('small_one'),
  whole: integer('whole'),
  big: bigNumber('big'),
  float: doublePrecision('float'),
  flag: boolean('flag'),
  at: instant('seen_at'),
  span: tstzrange('span'),
  spans: tstzmultirange('spans'),
  interval: candleInterval('interval'),
  json: jsonb('json'),
  bytes: bytea('bytes'),
  texts: text('texts').array(),
  ids: integer('ids').array(),
});
type Sample = Omit<typeof sample.$inferInsert, 'id' | 'name'>;

const NOTHING: Sample = {
  ...{ small: null, whole: null, big: null, float: null, flag: null, at: null, span: null, spans: null },
  ...{ interval: null, json: null, bytes: null, texts: null, ids: null },
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.sql.unsafe(`
    create table public.sample (id bigint generated always as identity primary key, name text not null unique, small_one smallint,
      whole integer, big bigint, float double precision, flag boolean, seen_at timestamptz, span tstzrange, spans tstzmultirange,
      interval market.candle_interval, json jsonb, bytes bytea, texts text[], ids integer[])`);
});
afterAll(() => database.drop());

describe('a column of each type', () => {
  const span = { from: Date.UTC(2024, 0, 1), to: Number.POSITIVE_INFINITY };
  test.each<[string, Sample]>([
    ['null', {}],
    ['numbers', { small: -32_768, whole: 2 ** 31 - 1, big: 2 ** 53 - 1, float: 0.1 + 0.2 }],
    ['zero and false', { small: 0, whole: 0, big: 0, float: 0, flag: false, at: 0 }],
    ['true', { flag: true }],
    ['an instant to the microsecond', { at: 1_234.567 }],
    ['an instant before 1970', { at: -1 }],
    ['infinity', { float: Number.POSITIVE_INFINITY, at: Number.NEGATIVE_INFINITY }],
    ['a span', { span, spans: [{ from: 0, to: 1_000 }, span] }],
    ['no span', { span: { from: 0, to: 0 }, spans: [] }],
    ['an enum', { interval: '24h' }],
    ['an object', { json: { a: [1, null, 'x'], 'b"': { c: true } } }],
    ['a list', { json: ['a', { b: 1 }] }],
    ['an empty list', { json: [] }],
    ['a number as JSON', { json: 1.5 }],
    ['bytes', { bytes: Buffer.from([0, 1, 127, 128, 255]) }],
    ['no bytes', { bytes: Buffer.alloc(0) }],
    ['texts', { texts: ['', 'NULL', 'a,b', '{"x"}', 'back\\slash', "quo'te", 'ü\n'] }],
    ['no texts', { texts: [], ids: [] }],
    ['whole numbers', { ids: [1, -2, 2 ** 31 - 1] }],
  ])('reads back as written: %s', async (name, values) => {
    const db = tables(database.sql);
    const [made] = await db
      .insert(sample)
      .values({ name, ...values })
      .returning();
    const expected = { ...NOTHING, ...values, id: made!.id, name };
    expect(made).toEqual(expected);
    expect(await db.select().from(sample).where(eq(sample.name, name))).toEqual([expected]);
    // A statement written by hand returns the same.
    const [row] =
      await database.sql`select *, small_one as small, seen_at as at from public.sample where name = ${name}`;
    expect(row).toMatchObject(expected);
  });

  test('reads back as written by an update, and can be compared', async () => {
    const db = tables(database.sql);
    await db.insert(sample).values({ name: 'before' });
    const values = {
      at: 5,
      span,
      spans: [span],
      json: { a: 'b' },
      texts: ['x'],
      bytes: Buffer.from('b'),
      interval: '5m' as const,
    };
    const written = await db
      .update(sample)
      .set({ name: 'after', ...values })
      .where(eq(sample.name, 'before'));
    expect(written.count).toBe(1);
    for (const condition of [
      eq(sample.at, 5),
      eq(sample.span, span),
      eq(sample.spans, [span]),
      eq(sample.bytes, values.bytes),
    ]) {
      const found = await db.select({ name: sample.name }).from(sample).where(condition);
      expect(found).toContainEqual({ name: 'after' });
    }
  });

  test('characters that jsonb cannot hold are replaced', async () => {
    const json = { text: 'a\0b\ud800c' };
    const [row] = await tables(database.sql)
      .insert(sample)
      .values({ name: 'odd', json })
      .returning({ json: sample.json });
    expect(row).toEqual({ json: { text: 'a\ufffdb\ufffdc' } });
  });
});

test('every table of the schema files can be read with all its columns', async () => {
  const all = Object.values(await loadSchemaFiles()).filter((value) => is(value, PgTable));
  expect(all.length).toBeGreaterThan(40);
  for (const table of all) {
    const rows = await tables(database.sql).select().from(table).limit(1);
    expect(Array.isArray(rows), getTableName(table)).toBe(true);
  }
});

describe('a write that returns no rows', () => {
  test('reports how many rows it wrote', async () => {
    const db = tables(database.sql);
    const inserted = await db.insert(sample).values([{ name: 'one' }, { name: 'two' }]);
    const again = await db.insert(sample).values({ name: 'one' }).onConflictDoNothing();
    const removed = await db.delete(sample).where(raw`${sample.name} in ('one', 'two')`);
    expect([inserted.count, again.count, removed.count]).toEqual([2, 0, 2]);
  });

  test('accepts SQL expressions', async () => {
    const db = tables(database.sql);
    await db.insert(sample).values({ name: 'counted', whole: 1 });
    await db
      .update(sample)
      .set({ whole: raw`${sample.whole} + 1` })
      .where(eq(sample.name, 'counted'));
    expect(await db.select({ whole: sample.whole }).from(sample).where(eq(sample.name, 'counted'))).toEqual([
      { whole: 2 },
    ]);
  });
});

test('rows are found and updated by their values, and null is one of them', async () => {
  const db = tables(database.sql);
  await db.insert(sample).values([
    { name: 'with a number', whole: 7, at: 7 },
    { name: 'with another', whole: 8, at: 7 },
    { name: 'without one', at: 7 },
  ]);
  const find = async (values: Parameters<typeof matches<typeof sample>>[1]) => {
    const rows = await db.select({ name: sample.name }).from(sample).where(matches(sample, values)).orderBy(sample.id);
    return rows.map(({ name }) => name);
  };
  expect(await find({ at: 7, whole: 7 })).toEqual(['with a number']);
  expect(await find({ at: 7, whole: null })).toEqual(['without one']);
  expect(await updateRows(database.sql, sample, { at: 7, whole: null }, { whole: 9 })).toBe(1);
  expect(await updateRows(database.sql, sample, { at: 7 }, { flag: true })).toBe(3);
  expect(await updateRows(database.sql, sample, { at: 8 }, { flag: false })).toBe(0);
  expect(await find({ flag: true, whole: 9 })).toEqual(['without one']);
});

describe('a statement in a transaction', () => {
  const count = (name: string) => tables(database.sql).$count(sample, eq(sample.name, name));

  test('is committed with it, and invisible to others before', async () => {
    await database.sql.begin(async (tx) => {
      await tables(tx).insert(sample).values({ name: 'committed' });
      expect(await count('committed')).toBe(0);
      expect(await tables(tx).$count(sample, eq(sample.name, 'committed'))).toBe(1);
    });
    expect(await count('committed')).toBe(1);
  });

  test('is rolled back with it', async () => {
    const failed = database.sql.begin(async (tx) => {
      await tables(tx).insert(sample).values({ name: 'undone' });
      throw new Error('changed my mind');
    });
    await expect(failed).rejects.toThrow('changed my mind');
    expect(await count('undone')).toBe(0);
  });
});

describe('an error', () => {
  test("is the driver's own, with the SQLSTATE of Postgres", async () => {
    const db = tables(database.sql);
    await db.insert(sample).values({ name: 'once' });
    const twice = db
      .insert(sample)
      .values({ name: 'once' })
      .then(
        () => null,
        (error: unknown) => error,
      );
    expect(await twice).toMatchObject({ name: 'PostgresError', code: '23505', constraint_name: 'sample_name_key' });
    const wrong = db
      .select({ x: raw`1 / 0` })
      .from(sample)
      .then(
        () => null,
        (error: unknown) => error,
      );
    expect(await wrong).toMatchObject({ name: 'PostgresError', code: '22012' });
  });

  test('of a lost connection is recognised as such', async () => {
    const other = createClient({ url: database.url, max: 1 });
    try {
      const [own] = await other<{ pid: number }[]>`select pg_backend_pid() as pid`;
      const slow = tables(other).select({ x: raw`pg_sleep(60)` }).from(sample).limit(1);
      const failed = slow.then(
        () => null,
        (error: unknown) => error,
      );
      const isRunning = async () => {
        const [row] = await database.sql`select from pg_stat_activity where pid = ${own!.pid} and state = 'active'`;
        return row !== undefined;
      };
      await expect.poll(isRunning).toBe(true);
      await database.sql`select pg_terminate_backend(${own!.pid})`;
      expect(isDatabaseUnavailable(await failed)).toBe(true);
    } finally {
      await other.end({ timeout: 0 });
    }
  });
});

test('a statement is prepared once per connection', async () => {
  const other = await openDatabase({ url: database.url, max: 1 });
  try {
    for (const name of ['a', 'b', 'c']) {
      await tables(other.sql).select().from(sample).where(eq(sample.name, name));
      await other.sql.begin((tx) => tables(tx).select().from(sample).where(eq(sample.name, name)));
    }
    const [row] = await other.sql<{ n: number }[]>`
      select count(*) as n from pg_prepared_statements where statement like '%"sample"."name" = $1'`;
    expect(row!.n).toBe(1);
  } finally {
    await other.close();
  }
});
