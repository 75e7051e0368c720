/** A process that is frozen in the middle of a transaction: its machine sleeps, is paused, or is disconnected. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startServiceProcess } from '../support/service-process.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';
import { until } from '../support/until.ts';

/** Concurrent requests without --concurrency. */
const IN_FLIGHT = 8;
/** An advisory lock of this test. */
const GATE = 4_711_000_001;

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

test('another service finishes the work of a frozen process', { timeout: 300_000 }, async () => {
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
  await sql.unsafe(`
    create function public.wait_at_gate() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${GATE}); return new; end $$;
    create trigger wait_at_gate before insert on ops.fetch for each row when (new.backfill_id is not null)
      execute function public.wait_at_gate()`);
  const holder = await sql.reserve();
  await holder`select pg_advisory_lock(${GATE})`;
  const untilTrue = (locks: string) =>
    until(async () => {
      const found = await sql.unsafe(`
        select from pg_stat_activity a join pg_locks l using (pid) where a.datname = current_database() and ${locks}`);
      return found.length > 0;
    });
  expect((await runCommand(['backfill', ...target, '--detach', '--yes'], { env })).code).toBe(0);
  await frozen.said(/^backfill 1 started/);
  // The process is frozen when it has locked the series and recorded the request, and has not committed.
  await untilTrue(`locktype = 'advisory' and not granted`);
  process.kill(frozen.pid, 'SIGSTOP');
  await holder`select pg_advisory_unlock(${GATE})`;
  holder.release();
  await untilTrue(`relation = 'market.series'::regclass and mode = 'RowShareLock' and state = 'idle in transaction'`);
  const other = await startServiceProcess('all', env);
  await other.said(/^backfill 1: done/);
  process.kill(frozen.pid, 'SIGCONT');
  expect(await Promise.all([frozen.stop(), other.stop()])).toEqual([0, 0]);
  expect((await runCommand(['verify'], { env })).code).toBe(0);
  // What had been answered to the frozen process is requested again: at most its requests in flight.
  const [recorded] = await sql<{ spent: number; requests: number }[]>`
    select (select sum(month_spent)::int from ops.quota_spent where name = 'backfill 1') as spent,
      (select count(*)::int from ops.fetch where backfill_id = 1) as requests`;
  expect(upstream.asked() - recorded!.requests).toBeLessThanOrEqual(IN_FLIGHT);
  // Permits that were lost while the process was frozen stay counted.
  expect(recorded!.spent).toBeGreaterThanOrEqual(upstream.asked());
  expect(recorded!.spent - recorded!.requests).toBeLessThanOrEqual(2 * IN_FLIGHT);
});
