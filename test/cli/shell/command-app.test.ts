/** The clock of commands when the clock of the machine differs from that of the database. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/** Sets `clock_timestamp()` of this database ahead of its machine. It is found before Postgres' own function. */
async function setAhead({ sql }: TestDatabase, hours: number): Promise<void> {
  await sql`create schema other_time`;
  await sql.unsafe(`
    create function other_time.clock_timestamp() returns timestamptz language sql volatile
      as 'select pg_catalog.clock_timestamp() + interval ''${hours} hours'''`);
  const [row] = await sql<{ name: string }[]>`select current_database() as name`;
  await sql.unsafe(`alter database ${row!.name} set search_path = other_time, pg_catalog, "$user", public`);
}

test.each([3, -3])(
  'a command records all times by the clock of the database, which is %i hours ahead of its own',
  async (hours) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const onError = (error: unknown) => {
      throw error;
    };
    const simulator = createSimulator({ market: 'made-up', coins: 3, clock: systemClock, unlimited: true, onError });
    const upstream = await listen(simulator.fetch, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => upstream.close());
    await setAhead(database, hours);
    const env = {
      DATABASE_URL: database.url,
      CHANDLER_BASE_URL: `${upstream.url}/v1`,
      CHANDLER_PLAN: 'enterprise',
    };
    const from = new Date(Date.now() - 30 * DAY).toISOString().slice(0, 10);
    const to = new Date(Date.now() - 20 * DAY).toISOString().slice(0, 10);
    const { code, err } = await runCommand(['backfill', 'btc-bitcoin', '--start', from, '--end', to, '--yes'], { env });
    expect(code, err).toBe(0);
    const now = Date.now() + hours * HOUR;
    const [row] = await database.sql<Record<string, number>[]>`
    select b.requested_at, b.started_at, b.heartbeat_at, b.finished_at, a.at, a.ended_at, f.sent_at
    from ops.backfill b, ops.audit a, (select max(sent_at) as sent_at from ops.fetch) f`;
    for (const [name, at] of Object.entries(row!)) expect(Math.abs(at - now), name).toBeLessThan(HOUR / 2);
    // A service goes by the same clock, so it does not take the run for dead, nor for one that begins in the future.
    expect(row!.startedAt).toBeLessThanOrEqual(row!.finishedAt!);
  },
);
