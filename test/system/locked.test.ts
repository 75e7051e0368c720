/**
 * Other users who may log in to the database, and what they can block: a user who only reads blocks nothing (P16), a user who writes only
 * what the documents say.
 */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createClient, type Sql } from '../../src/store/connection/connect.ts';
import { takeLock } from '../../src/store/connection/lock.ts';
import { explainDatabaseError } from '../../src/store/connection/store-error.ts';
import { migrate } from '../../src/store/migration/migrate.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startCli, untilSaid } from '../support/program.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';
import { until } from '../support/until.ts';

let upstream: SimulatedUpstream;
/** Requests for candles that have arrived, and what the requests after the second wait for. */
let arrived: number;
let held: Promise<void> | null;
beforeEach(async () => {
  arrived = 0;
  held = null;
  upstream = await startUpstream({ seed: 1, coins: 3, latencyMs: 20 }, (simulated) => async (request, peer) => {
    if (request.url.includes('/ohlcv') && ++arrived > 2) await held;
    return simulated(request, peer);
  });
});
afterEach(() => upstream.close());

const BACKFILL = ['backfill', 'btc-bitcoin', '--start', '2024-01-01', '--end', '2024-12-01', '--yes', '--json'];
const settings = (url: string) => ({
  CHANDLER_BASE_URL: upstream.baseUrl,
  CHANDLER_PLAN: 'enterprise',
  CHANDLER_CANDLES_PER_REQUEST: '10',
  DATABASE_URL: url,
});
/** Waits this long for a lock, not half a minute. */
const impatient = (url: string, ms: number) => `${url}?options=-c%20lock_timeout%3D${ms}ms`;

/** A login that may read `market` and nothing else. */
async function logInAsReader({ sql, url }: TestDatabase): Promise<Sql> {
  const name = `reader_${randomUUID().slice(0, 8)}`;
  await sql.unsafe(`create role ${name} login password 'guess' in role analyst`);
  const theirs = new URL(url);
  theirs.username = name;
  theirs.password = 'guess';
  const reader = createClient({ url: theirs.href, max: 1 });
  onTestFinished(async () => {
    await reader.end();
    await sql.unsafe(`drop owned by ${name}; drop role ${name}`);
  });
  return reader;
}

test('a reader can take no lock, and make no table and no large object', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  // Its template does not include rights on the database itself.
  await migrate(database);
  const reader = await logInAsReader(database);
  for (const harmful of [
    'select pg_advisory_lock(i) from generate_series(1, 1000000) i',
    'select pg_try_advisory_xact_lock_shared(1)',
    'select lo_create(0)',
    "select lo_from_bytea(0, 'x')",
    'create temporary table mine (x int)',
    'create function pg_temp.mine() returns int language sql return 1',
    'begin; lock table market.candle in share mode',
    'select from market.series for share',
    'select from ops.lock',
  ])
    await expect(
      reader.unsafe(harmful).finally(() => reader`rollback`),
      harmful,
    ).rejects.toThrow('permission denied');
});

test('a reader who holds every lock that it can get blocks neither a migration nor a backfill', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await migrate(database);
  // As on a server whose superuser is not ours: each login may take advisory locks.
  await database.sql`grant execute on function pg_advisory_lock(bigint), pg_advisory_lock(int, int) to analyst`;
  const reader = await logInAsReader(database);
  // The locks of Chandler 0.1, and the one with which BullMQ migrates.
  await reader`select pg_advisory_lock(4242000 + i) from generate_series(1, 100) i`;
  const env = settings(impatient(database.url, 5_000));
  expect((await runCommand(['status'], { env })).code).toBe(0);
  await reader`begin`;
  for (const table of ['candle', 'series', 'coin', 'ticker', 'candles', 'gaps'])
    await reader.unsafe(`select * from market.${table} limit 1`);
  expect(await migrate(database)).toEqual([]);
  const { code, err } = await runCommand(BACKFILL, { env });
  expect(code, err).toBe(0);
  expect(err).not.toContain('lock');
});

test.each([
  ['a rule', 'create rule mine as on insert to market.candle do nothing'],
  [
    'a trigger',
    'create trigger mine before insert on market.candle execute function suppress_redundant_updates_trigger()',
  ],
  ['a comment', "comment on table market.candle is 'mine'"],
])(
  'a reader who tries to make %s is refused before it waits for a lock, so nobody waits behind it',
  async (_, statement) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    await migrate(database);
    const reader = await logInAsReader(database);
    // Another session works with the table. The statement would wait for it, and all others for the statement.
    await database.sql.begin(async (tx) => {
      await tx`lock table market.candle in share update exclusive mode`;
      await reader`set lock_timeout = '2s'`;
      await expect(reader.unsafe(statement)).rejects.toMatchObject({ code: '42501' });
    });
  },
);

test('a reader may make tables in a schema of its own', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await migrate(database);
  const reader = await logInAsReader(database);
  const [me] = await reader<{ name: string }[]>`select current_user as name`;
  await database.sql.unsafe(`create schema mine authorization ${me!.name}`);
  await reader`create table mine.notes (x int)`;
  await reader`comment on table mine.notes is 'mine'`;
});

test('a run waits for a table that another session has locked, says so, and requests nothing twice', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  // Two writers of the run wait for each other when it stalls. The timeout is long enough that they do not exceed it before the lock is taken.
  const env = settings(impatient(database.url, 2_000));
  const plan = await runCommand(['plan', ...BACKFILL.slice(1, -2), '--json'], { env });
  const { requests } = JSON.parse(plan.out) as { requests: number };
  let answer: () => void;
  held = new Promise((resolve) => {
    answer = resolve;
  });
  const run = await startCli([...BACKFILL, '--concurrency', '2'], env);
  await until(() => arrived > 2);
  const told = untilSaid(run, /another session holds a lock of the database; waiting up to/);
  const released = untilSaid(run, /the lock of the database was released/);
  await database.sql.begin(async (tx) => {
    await tx`lock table market.series in access exclusive mode`;
    answer();
    await told;
  });
  await released;
  const { code, out, err } = await run.ended;
  expect(code, err).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ backfill: { end: 'done', requests, gaps: [] } });
  expect(upstream.asked()).toBe(requests);
});

describe('a command whose wait for a lock times out', () => {
  test.each([
    ['a table', ['status'], 'lock table market.series in access exclusive mode', 'market.series'],
    ['the schema', ['status'], 'lock table ops.migration in access exclusive mode', 'ops.migration'],
    ['a migration', ['migrate'], 'lock table ops.migration in share mode', 'ops.migration'],
    ['a row', ['track', 'remove', '--all'], 'select from ops.track for update', 'ops.track'],
    ['a statement', ['sql', 'delete from ops.track'], 'lock table ops.track in share mode', 'ops.track'],
  ])('names the session that holds the lock: %s', async (_, command, lock, table) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const url = impatient(database.url, 300);
    await database.sql`
      insert into ops.track (tier, interval, quote, since, priority, target_age, created_at)
      values ('all', '1h', 'usd', now(), 20, '1 hour', now())`;
    // A reader, whose lock is weaker, and who has held it for longer.
    await database.sql.begin(async (reader) => {
      await reader`select from market.coin, ops.track`;
      await database.sql.begin(async (tx) => {
        const [holder] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
        await tx.unsafe(lock);
        const { code, err } = await runCommand(command, { env: settings(url) });
        expect(code).toBe(1);
        expect(err).toMatch(
          new RegExp(
            `another session holds a lock that Chandler needs: session ${holder!.pid} \\(user '\\w+', chandler test\\), in a transaction since .*Z that uses .*${table}.*pg_terminate_backend\\(${holder!.pid}\\)`,
          ),
        );
      });
    });
  });

  test('gives a query that finds the session, even when nobody waits for it any more', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const error = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
    const [, query] = /find it with: (select .*?); /.exec(explainDatabaseError(error, database.url)!.message)!;
    const find = () => database.sql.unsafe(query!);
    await database.sql.begin(async (tx) => {
      const [holder] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await tx`select from market.series for update`;
      expect(await find()).toMatchObject([{ pid: holder!.pid, state: 'idle in transaction' }]);
    });
    expect(await find()).toEqual([]);
  });
});

test('one transaction at a time holds an advisory lock, until it ends', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { sql } = database;
  const order: string[] = [];
  const hold = (name: string) =>
    sql.begin(async (tx) => {
      await takeLock(tx, 'mine');
      order.push(`${name} begins`);
      await tx`select 1`;
      order.push(`${name} ends`);
    });
  await Promise.all([hold('first'), hold('second'), hold('third')]);
  for (let i = 0; i < order.length; i += 2) expect(order[i + 1]).toBe(order[i]!.replace('begins', 'ends'));
});
