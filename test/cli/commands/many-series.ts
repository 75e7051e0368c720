/** A warehouse with very many series, and the rows that commands read of it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countWhenDue } from '../../../src/background/service/counting.ts';
import { type Clock, type Instant, systemClock } from '../../../src/clock.ts';
import { HOUR } from '../../../src/core/interval.ts';
import { type Database, openDatabase } from '../../../src/store/connection/connect.ts';
import { keepInstance } from '../../../src/store/work/instance.ts';
import { countSeriesNow } from '../../../src/views/operations/series-counts.ts';
import { type CommandResult, runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeManySeries } from '../../support/many-series.ts';

/** With all their series, more than few. */
export const COINS = 600;

export let database: TestDatabase;

export function useManySeries(): void {
  beforeAll(async () => {
    database = await createTestDatabase({ max: 1 });
    await makeManySeries(database.sql, { coins: COINS, requests: 1_000 });
  });
  afterAll(() => database?.drop());
}

type Read = { readonly series: number; readonly tracked: number; readonly coins: number };

/** Rows read from tables since then. */
export async function readSince(before: Read): Promise<Read> {
  const now = await readRows();
  const since = (table: keyof Read) => now[table] - before[table];
  return { series: since('series'), tracked: since('tracked'), coins: since('coins') };
}

/** Rows read so far, by all sessions. */
export async function readRows(): Promise<Read> {
  const { sql } = database;
  // A session reports its reads when it ends or is told to.
  const others = () =>
    sql`select from pg_stat_activity where datname = current_database() and application_name <> 'chandler test'`;
  await expect.poll(others, { timeout: 60_000 }).toHaveLength(0);
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<Read[]>`
    select sum(n) filter (where relname = 'series')::float8 as series,
      sum(n) filter (where relname = 'tracked')::float8 as tracked, sum(n) filter (where relname = 'coin')::float8 as coins
    from (
      select relname, seq_tup_read as n from pg_stat_user_tables
      union all
      select relname, idx_tup_read from pg_stat_user_indexes
    ) t`;
  return row!;
}

export async function run(...args: string[]): Promise<CommandResult & { readonly read: Read }> {
  const before = await readRows();
  const result = await runCommand(args, { env: { DATABASE_URL: database.url } });
  expect(result).toMatchObject({ code: 0 });
  return { ...result, read: await readSince(before) };
}

/** A service that counts, or would. */
export async function inService<T>(work: (service: Database) => Promise<T>): Promise<T> {
  const service = await openDatabase({ url: database.url, max: 4, applicationName: 'chandler service' });
  try {
    return await work(service);
  } finally {
    await service.close();
  }
}

export const count = (clock: Clock = systemClock) => inService((service) => countWhenDue({ clock, database: service }));
export const countNow = (now: Instant) => inService(({ sql }) => countSeriesNow(sql, now));
export const covered = (series: readonly { readonly slotsCovered: number }[]) => series.map((one) => one.slotsCovered);

/** A service with a current heartbeat. */
export const beService = (roles: readonly string[]) =>
  keepInstance(database.sql, { owner: 'a:1', roles, startedAt: Date.now() - HOUR, heartbeatAt: Date.now() });

/** As if no service had ever run. */
export async function forgetServices(): Promise<void> {
  await database.sql`delete from ops.counted`;
  await database.sql`delete from ops.watch`;
  await database.sql`delete from ops.instance`;
}

/** Why no count can be shown, the roles of a running service, and the age of the last count. */
type NotCounted = [string, readonly string[] | null, string];

export function testCountedWhenAsked(cases: NotCounted[]): void {
  test.each(cases)('counts series only on request when %s', async (_, roles, age) => {
    const { sql } = database;
    expect(await count()).toBe(true);
    // As if a month of work had been done since then.
    await sql`update ops.counted set counted_at = now() - ${age}::interval, answer = jsonb_set(answer, '{series}', '[]')`;
    if (roles !== null) await beService(roles);
    const counted = JSON.parse((await run('status', '--json', '--count')).out);
    expect(counted.countedAt).toBeNull();
    expect(covered(counted.series)).toEqual(covered((await countNow(Date.now())).series));

    const { out } = await run('status', '--json');
    const { catalogue, fetches } = counted;
    expect(JSON.parse(out)).toMatchObject({ countedAt: null, series: null, tiers: null, catalogue, fetches });
    expect((await run('status')).out).toMatch(
      /\nThere are more than 20,000 series, and no service has counted them lately\. To count them now: chandler status --count\n/,
    );
  });
}
