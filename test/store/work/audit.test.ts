/** The audit log over years. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql, SqlOrTransaction } from '../../../src/store/connection/connect.ts';
import { readAudit } from '../../../src/store/work/audit.ts';
import { readAuditEntries } from '../../../src/views/dashboard/audit-entries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const ENTRIES = 20_000;
const LAST = Date.UTC(2025, 0, 1);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  // One entry in a thousand is the start of a service. Another machine has one start, the last entry.
  await sql`
    insert into ops.audit (at, actor, command, settings)
    select to_timestamp(${LAST / 1000}) + (n - ${ENTRIES}::int) * interval '1 minute', case when n = ${ENTRIES}::int then 'b@there' else 'a@here' end,
      case when n % 1000 = 0 then 'service' else 'track' end, case when n % 1000 = 0 then jsonb_build_object('PLAN', n::text) end
    from generate_series(1, ${ENTRIES}::int) n`;
  await sql`vacuum analyze ops.audit`;
});
afterAll(() => database.drop());

/** What was read, and how many rows of the table Postgres read for it. */
async function reading<T>(read: (tx: SqlOrTransaction) => Promise<T>): Promise<{ value: T; rows: number }> {
  return (await database.sql.begin(async (tx) => {
    const before = await rowsRead(tx);
    const value = await read(tx);
    return { value, rows: (await rowsRead(tx)) - before };
  })) as { value: T; rows: number };
}

/** Rows that this connection has read. */
async function rowsRead(tx: SqlOrTransaction): Promise<number> {
  const [row] = await tx<{ rows: number }[]>`
    select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relid = 'ops.audit'::regclass`;
  return row!.rows;
}

test('chandler log reads only the rows it shows and the last start before them, however old that is', async () => {
  const { value, rows } = await reading((tx) => readAudit(tx, { since: null, limit: 1_001 }));
  expect(value.map(({ id }) => id)).toEqual(Array.from({ length: 1_001 }, (_, i) => ENTRIES - 1_000 + i));
  expect(value[0]).toMatchObject({ settings: { PLAN: '19000' }, settingsBefore: { PLAN: '18000' } });
  expect(value.at(-1)).toMatchObject({ actor: 'b@there', settings: { PLAN: '20000' }, settingsBefore: null });
  expect(rows).toBeLessThan(1_100);
});

test('chandler log --since reads only the entries since then', async () => {
  const since = LAST - 9 * 60_000;
  const { value, rows } = await reading((tx) => readAudit(tx, { since, limit: 1_000 }));
  expect(value).toHaveLength(10);
  expect(rows).toBeLessThan(100);
});

test('the system page reads only the rows it shows, also when no start precedes them', async () => {
  const { value, rows } = await reading((tx) => readAuditEntries(tx as unknown as Sql, null));
  expect(value.rows).toHaveLength(30);
  expect(value.rows[0]).toMatchObject({ actor: 'b@there', changedSettings: [] });
  expect(rows).toBeLessThan(200);
});
