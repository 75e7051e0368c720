/** The binary format of COPY is read, however the stream is cut into pieces. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withSnapshot } from '../../../src/store/backup/source.ts';
import { type ColumnType, createBatch, type Value, valueAt } from '../../../src/store/copy/columns.ts';
import { openCopyOut } from '../../../src/store/copy/copy-out.ts';
import { readCopy } from '../../../src/store/copy/read-copy.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

const TYPES: readonly ColumnType[] = ['text', 'instant', 'double', 'integer', 'integer', 'bigint', 'boolean'];
const SELECT = `select case when i % 7 = 3 then null when i % 7 = 4 then '' else repeat('ü', i % 50) end,
  case when i % 5 <> 0 then '1999-12-31 23:59:59.999999Z'::timestamptz + i * interval '1 day 1 microsecond' end,
  case when i % 3 <> 0 then i / 7.0::float8 end, case when i % 4 <> 0 then -i end, (i % 30000)::smallint,
  case when i % 6 <> 0 then i::bigint << 40 end, case when i % 2 = 0 then i % 4 = 0 end
  from generate_series(0, 999) i`;

async function rowsOf(chunks: AsyncIterable<Buffer>, capacity: number): Promise<Value[][]> {
  const batch = createBatch(TYPES, capacity);
  const rows: Value[][] = [];
  const take = () => {
    for (let row = 0; row < batch.rows; row++) rows.push(batch.columns.map((column) => valueAt(column, row)));
  };
  for await (const _ of readCopy(chunks, batch, capacity)) take();
  take();
  return rows;
}

function expectedRow(i: number): Value[] {
  const epoch = BigInt(Date.UTC(1999, 11, 31, 23, 59, 59)) * 1_000n + 999_999n;
  const text = i % 7 === 3 ? null : i % 7 === 4 ? '' : 'ü'.repeat(i % 50);
  const at = i % 5 === 0 ? null : epoch + BigInt(i) * (86_400_000_000n + 1n);
  return [
    text,
    at,
    i % 3 === 0 ? null : i / 7,
    i % 4 === 0 ? null : 0 - i,
    i,
    i % 6 === 0 ? null : BigInt(i) << 40n,
    i % 2 === 0 ? i % 4 === 0 : null,
  ];
}

async function readAll(): Promise<Buffer> {
  const pg = await import('pg');
  const { to } = await import('pg-copy-streams');
  const client = new pg.default.Client({ connectionString: database.url });
  await client.connect();
  const parts: Buffer[] = [];
  for await (const part of client.query(to(`copy (${SELECT}) to stdout (format binary)`)) as AsyncIterable<Buffer>)
    parts.push(part);
  await client.end();
  return Buffer.concat(parts);
}

test('reads every value and every null of every type, however the bytes are cut', async () => {
  const bytes = await readAll();
  const expected = Array.from({ length: 1_000 }, (_, i) => expectedRow(i));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 1_200 }),
      async (sizes, capacity) => {
        async function* cut() {
          for (let at = 0, i = 0; at < bytes.length; at += sizes[i++ % sizes.length]!)
            yield bytes.subarray(at, at + sizes[i % sizes.length]!);
        }
        expect(await rowsOf(cut(), capacity)).toEqual(expected);
      },
    ),
    { numRuns: 40 },
  );
});

test('throws when the stream ends early, instead of returning a short result', async () => {
  const bytes = await readAll();
  async function* cut() {
    yield bytes.subarray(0, bytes.length - 500);
  }
  await expect(rowsOf(cut(), 100)).rejects.toThrow(/ended a COPY before its last row/);
});

test('several statements fill the same batches from one snapshot', async () => {
  await database.sql`create table market.copied (i int)`;
  await database.sql`insert into market.copied values (1), (2), (3)`;
  const rows = await withSnapshot(database.sql, async (_, snapshot) => {
    await database.sql`insert into market.copied values (4)`;
    const copy = await openCopyOut({ url: database.url, snapshot });
    async function* statements() {
      yield 'select i from market.copied order by i';
      await database.sql`insert into market.copied values (5)`;
      yield 'select -i from market.copied order by i';
    }
    const found: number[][] = [];
    for await (const batch of copy.read(statements(), ['integer'], 4))
      found.push([...(batch.columns[0]!.values as Int32Array).slice(0, batch.rows)]);
    await copy.close();
    return found;
  });
  expect(rows).toEqual([
    [1, 2, 3, -1],
    [-2, -3],
  ]);
});

test('throws the error of a failed statement with the message of Postgres', async () => {
  await withSnapshot(database.sql, async (_, snapshot) => {
    const copy = await openCopyOut({ url: database.url, snapshot });
    async function* statements() {
      yield 'select 1 / (3 - i) from generate_series(1, 5) i';
    }
    const read = async () => {
      for await (const _ of copy.read(statements(), ['integer'], 10)) expect(_.rows).toBeLessThanOrEqual(10);
    };
    await expect(read()).rejects.toThrow(/division by zero/);
    await copy.close();
  });
});

test('explains in one sentence that the connection was lost', async () => {
  await withSnapshot(database.sql, async (_, snapshot) => {
    const copy = await openCopyOut({ url: database.url, snapshot });
    async function* statements() {
      yield 'select 1';
      await database.sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'chandler export' and datname = current_database()`;
      yield 'select 2';
    }
    const read = async () => {
      for await (const batch of copy.read(statements(), ['integer'], 1)) expect(batch.rows).toBe(1);
    };
    await expect(read()).rejects.toThrow(/^Postgres at .* is starting up or shutting down/);
    await copy.close();
  });
});
