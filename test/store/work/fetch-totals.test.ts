/** The totals of the requests of each backfill, which a trigger updates while requests are recorded. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { backfillTotals } from '../../../src/store/backfill/backfill.ts';
import { recordRefusal, withdrawRefusals } from '../../../src/store/candle/refusal.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import type { SqlOrTransaction } from '../../../src/store/connection/connect.ts';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { type FetchRow, recordFetch } from '../../../src/store/work/fetch.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';

const AT = Date.UTC(2024, 0, 1, 12);

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

function record(sql: SqlOrTransaction, rest: Partial<FetchRow> = {}): Promise<number> {
  return recordFetch(sql, {
    ...{
      sentAt: AT,
      asOf: AT,
      accountId: 'a',
      endpoint: 'ohlcv',
      seriesId: null,
      span: null,
      backfillId: 7,
      attempt: 1,
    },
    ...{ status: 200, outcome: 'stored', durationMs: 1, rows: 10, stored: 9, revised: 2, quarantined: 1, bytes: 1 },
    ...{ bodySha256: null, message: null },
    ...rest,
  });
}

/** The totals counted from the requests themselves. */
async function counted(sql: SqlOrTransaction) {
  return sql`
    select backfill_id, outcome, count(*) as requests, sum(rows)::int as rows, sum(stored)::int as stored, sum(revised)::int as revised,
      sum(quarantined)::int as quarantined from ops.fetch where backfill_id is not null group by 1, 2 order by 1, 2`;
}

async function kept(sql: SqlOrTransaction) {
  return sql`
    select backfill_id, outcome, sum(requests)::int as requests, sum(rows)::int as rows, sum(stored)::int as stored,
      sum(revised)::int as revised, sum(quarantined)::int as quarantined from ops.fetch_totals group by 1, 2 order by 1, 2`;
}

test('the totals equal the recorded requests, without those of a transaction that was rolled back', async () => {
  const { sql } = database;
  for (let i = 0; i < 40; i++)
    await record(sql, { backfillId: 7 + (i % 3), outcome: i % 4 > 0 ? 'stored' : 'limited' });
  await record(sql, { backfillId: null });
  const undone = sql.begin(async (tx) => {
    await record(tx);
    throw new Error('killed');
  });
  await expect(undone).rejects.toThrow('killed');
  await sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, backfill_id, attempt, outcome, duration_ms, rows, stored, revised,
      quarantined, bytes)
    select now(), now(), 'a', 'ohlcv', 7 + n % 2, 1, 'stored', 1, n, n, 0, 0, 1 from generate_series(1, 100) n`;
  expect(await kept(sql)).toEqual(await counted(sql));
  expect((await backfillTotals(sql, 8)).byOutcome).toEqual({ limited: 3, stored: 60 });
});

test('ten workers of one backfill do not wait for each other to update the totals', async () => {
  const { sql } = database;
  await record(sql);
  let recorded = 0;
  let endAll: (() => void) | undefined;
  const end = new Promise<void>((resolve) => {
    endAll = resolve;
  });
  // Each transaction waits until all have recorded their request.
  const work = () =>
    sql.begin(async (tx) => {
      await record(tx);
      if (++recorded === 9) endAll?.();
      await end;
    });
  await Promise.all(Array.from({ length: 9 }, work));
  expect((await backfillTotals(sql, 7)).requests).toBe(10);
});

test('a migration computes the totals from the requests and from the totals of those that were removed', async () => {
  const empty = await createEmptyDatabase();
  try {
    const { sql } = empty;
    await migrateUpTo(empty, '0026_dashboard');
    for (let i = 0; i < 5; i++) await record(sql, { outcome: i > 0 ? 'stored' : 'limited' });
    await sql`
      insert into ops.fetch_totals (backfill_id, outcome, requests, rows, stored, revised, quarantined)
      values (7, 'stored', 100, 1000, 900, 0, 0), (6, 'stored', 1, 2, 3, 4, 5)`;
    expect((await migrate(empty))[0]).toBe('0027_counted_fetches');
    await record(sql);
    const totals = { requests: 106, rows: 1060, stored: 954, revised: 12, quarantined: 6 };
    expect(await backfillTotals(sql, 7)).toEqual({ ...totals, byOutcome: { limited: 1, stored: 105 } });
    expect((await backfillTotals(sql, 6)).quarantined).toBe(5);
  } finally {
    await empty.drop();
  }
});

/** The database as an earlier version has left it. */
async function migrateUpTo({ sql }: TestDatabase, last: string): Promise<void> {
  const folder = path.join(import.meta.dirname, '../../../migrations');
  const { entries } = JSON.parse(readFileSync(`${folder}/meta/_journal.json`, 'utf8')) as {
    entries: { tag: string; when: number }[];
  };
  await sql.unsafe(`
    create schema ops;
    create table ops.migration (id serial primary key, hash text not null, created_at bigint, name text);
    create table ops.lock (name text primary key)`);
  for (const { tag, when } of entries) {
    const text = readFileSync(`${folder}/${tag}.sql`, 'utf8');
    await sql.unsafe(text);
    const hash = createHash('sha256').update(text).digest('hex');
    await sql`insert into ops.migration (hash, created_at, name) values (${hash}, ${when}, ${tag})`;
    if (tag === last) return;
  }
  throw new Error(`there is no migration ${last}`);
}

test('a refusal is withdrawn if it was sent after the last stored answer of its backfill, in whatever order both were recorded', async () => {
  const { sql } = database;
  const ids = ['a-a', 'b-b', 'c-c', 'd-d'];
  await recordCoins(
    sql,
    ids.map((id) => ({ id, name: id, symbol: id, rank: 1, is_new: false, is_active: true, type: 'coin' })),
    AT,
  );
  const span = { from: AT, to: AT + 3_600_000 };
  const [a, b, c, d] = await wantSeries(sql, { coinIds: ids, quote: 'usd', interval: '1h', span, priority: 0 });
  const refuse = async (seriesId: number, sentAt: number, backfillId: number) => {
    const fetchId = await record(sql, { seriesId, sentAt, backfillId, status: 403, outcome: 'refused' });
    await recordRefusal(sql, {
      ...{ plan: 'pro', seriesId, span, reason: 'forbidden', message: 'no', refusedAt: sentAt, fetchId },
    });
  };
  await sql`
    insert into ops.backfill (id, requested_at, started_at, state, spec, span, interval, quote, planned_requests) overriding system value
    select id, ${AT}, ${AT}, 'failed', '{}', ${span}::tstzrange, '1h', 'usd', 1 from generate_series(7, 9) id`;
  await refuse(a!, AT + 1, 7);
  // Sent later, and recorded earlier.
  await record(sql, { sentAt: AT + 5 });
  await refuse(b!, AT + 4, 7);
  await refuse(c!, AT + 6, 7);
  await record(sql, { sentAt: AT + 9, backfillId: 8 });
  await refuse(d!, AT + 8, 9);
  const refused = async () =>
    (await sql`select series_id from market.refusal order by 1`).map(({ seriesId }) => seriesId);
  await withdrawRefusals(sql, 7, false);
  expect(await refused()).toEqual([a, b, d]);
  await withdrawRefusals(sql, 9, false);
  expect(await refused()).toEqual([a, b]);
});
