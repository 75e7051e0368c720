/** A process that stands still in the middle of a transaction: its machine sleeps, is paused, or is cut off. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startServiceProcess } from '../support/service-process.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

let database: TestDatabase;
let upstream: SimulatedUpstream;
beforeAll(async () => {
  database = await createTestDatabase();
  upstream = await startUpstream({ seed: 5, coins: 10 });
});
afterAll(async () => {
  await upstream?.close();
  await database?.drop();
});

test('another service goes on, and finishes the work', { timeout: 300_000 }, async () => {
  const { sql } = database;
  const env = {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: upstream.baseUrl,
    CHANDLER_PLAN: 'enterprise',
    CHANDLER_REQUESTS_PER_SECOND: '60',
    CHANDLER_CANDLES_PER_REQUEST: '50',
  };
  const target = ['btc-bitcoin', '--interval', '1h', '--start', '2024-01-01', '--end', '2026-01-01'];
  const frozen = await startServiceProcess('all', env);
  await frozen.said(/^ready/);
  expect((await runCommand(['backfill', ...target, '--detach', '--yes'], { env })).code).toBe(0);
  await frozen.said(/^backfill 1 started/);
  // Until it is stopped while it has locked the series, and its statement is done.
  const standsStill = async () => {
    process.kill(frozen.pid, 'SIGSTOP');
    await systemClock.sleep(20);
    const locked = await sql`
      select from pg_stat_activity a join pg_locks l on l.pid = a.pid
      where a.datname = current_database() and a.state = 'idle in transaction'
        and l.relation = 'market.series'::regclass and l.mode = 'RowShareLock'`;
    if (locked.length > 0) return true;
    process.kill(frozen.pid, 'SIGCONT');
    await systemClock.sleep(Math.random() * 50);
    return false;
  };
  while (!(await standsStill())) {
    const [run] = await sql<{ state: string }[]>`select state from ops.backfill`;
    expect(run!.state).toBe('running');
  }
  const other = await startServiceProcess('all', env);
  await other.said(/^backfill 1: done/);
  process.kill(frozen.pid, 'SIGCONT');
  expect(await Promise.all([frozen.stop(), other.stop()])).toEqual([0, 0]);
  expect((await runCommand(['verify'], { env })).code).toBe(0);
  // What had been answered to the frozen process is asked again: at most what it had in flight.
  const [sent] = await sql<{ spent: number; stored: number }[]>`
    select (select sum(month_spent)::int from ops.quota_spent where name = 'backfill 1') as spent,
      (select count(*)::int from ops.fetch where backfill_id = 1) as stored`;
  expect(sent!.spent - sent!.stored).toBeLessThanOrEqual(16);
});
