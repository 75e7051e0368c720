/** With very many series, no command that a person waits for looks at each of them. Told by the rows that Postgres read, not by time. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { countWhenDue } from '../../../src/background/service/counting.ts';
import { quotaOf, readBudget } from '../../../src/budget.ts';
import { type Clock, type Instant, systemClock } from '../../../src/clock.ts';
import { parseConfig } from '../../../src/config.ts';
import { monthReset } from '../../../src/core/calendar.ts';
import { DAY, HOUR, MINUTE } from '../../../src/core/interval.ts';
import { accountIdOf } from '../../../src/ingest/request/account.ts';
import { type Database, openDatabase } from '../../../src/store/connection/connect.ts';
import { keepInstance } from '../../../src/store/work/instance.ts';
import { countedEveryMs, countSeriesNow, SERIES_COUNTS } from '../../../src/views/operations/series-counts.ts';
import { type CommandResult, runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../../support/many-series.ts';
import { startServiceProcess } from '../../support/service-process.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

/** With all their series, more than are few. */
const COINS = 600;
const SERIES = COINS * SERIES_OF_A_COIN;
/** Whether there are many is known after so many. */
const MANY = 20_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
  await makeManySeries(database.sql, { coins: COINS, requests: 1_000 });
});
afterAll(() => database?.drop());

type Read = { readonly series: number; readonly tracked: number; readonly coins: number };

/** Rows of tables that were read since then. */
async function readSince(before: Read): Promise<Read> {
  const now = await readRows();
  const since = (table: keyof Read) => now[table] - before[table];
  return { series: since('series'), tracked: since('tracked'), coins: since('coins') };
}

/** So far, by all. */
async function readRows(): Promise<Read> {
  const { sql } = database;
  // A session tells what it has read when it ends, or when it is told to.
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

async function run(...args: string[]): Promise<CommandResult & { readonly read: Read }> {
  const before = await readRows();
  const result = await runCommand(args, { env: { DATABASE_URL: database.url } });
  expect(result).toMatchObject({ code: 0 });
  return { ...result, read: await readSince(before) };
}

/** A service counts, or would. */
async function inService<T>(work: (service: Database) => Promise<T>): Promise<T> {
  const service = await openDatabase({ url: database.url, max: 4, applicationName: 'chandler service' });
  try {
    return await work(service);
  } finally {
    await service.close();
  }
}

const count = (clock: Clock = systemClock) => inService((service) => countWhenDue({ clock, database: service }));
const countNow = (now: Instant) => inService(({ sql }) => countSeriesNow(sql, now));
const covered = (series: readonly { readonly slotsCovered: number }[]) => series.map((one) => one.slotsCovered);

/** A service that is alive now. */
const beService = (roles: readonly string[]) =>
  keepInstance(database.sql, { owner: 'a:1', roles, startedAt: Date.now() - HOUR, heartbeatAt: Date.now() });

/** As if no service ever ran. */
async function forgetServices(): Promise<void> {
  await database.sql`delete from ops.counted`;
  await database.sql`delete from ops.watch`;
  await database.sql`delete from ops.instance`;
}

test('a permit waits for no look at each series: what is due is as a service counted it', async () => {
  await forgetServices();
  const config = parseConfig({ DATABASE_URL: database.url });
  if ('problems' in config) throw new Error(config.problems.join('\n'));
  const accountId = accountIdOf(config.ok.apiKey, config.ok.baseUrl);
  const beScheduler = () =>
    keepInstance(database.sql, {
      ...{ owner: 'a:1', roles: ['worker'], accountId, schedules: { freshness: '*/10 * * * *' } },
      ...{ startedAt: Date.now() - HOUR, heartbeatAt: Date.now() },
    });
  await beScheduler();
  expect(await count()).toBe(true);
  const [row] = await database.sql<{ tracked: number }[]>`select count(*)::int as tracked from ops.tracked`;
  await beScheduler();
  const before = await readRows();
  await inService(async ({ sql }) => {
    const app = { config: config.ok, clock: systemClock, database: { sql, ledger: sql }, surroundings: {} };
    const nextMonth = monthReset(Date.now());
    const days = (monthReset(nextMonth) - nextMonth) / DAY;
    const { reserved } = await readBudget(app);
    // Each of them once in two days.
    expect(reserved(nextMonth).month / days / (row!.tracked / 2)).toBeCloseTo(1, 2);
    const quota = quotaOf(app, { accountId, limits: { perMonth: 1, perDay: null, perSecond: null }, plan: 'free' });
    expect(await quota.take({ class: 'backfill', name: 'backfill 1' })).toMatchObject({ reason: 'reserved' });
    expect(await quota.take({ class: 'scheduled', name: 'freshness' })).toMatchObject({ kind: 'granted' });
  });
  expect(await readSince(before)).toEqual({ series: 0, tracked: 0, coins: 0 });
});

describe('status', () => {
  beforeEach(forgetServices);

  test('shows what a service counted, and when', async () => {
    const live = await run('status', '--json', '--count');
    await beService(['worker']);
    expect(await count()).toBe(true);
    // Of several services one counts, and not before it is due.
    expect(await count()).toBe(false);

    await beService(['worker']);
    const saved = await run('status', '--json');
    expect(saved.read.tracked).toBe(0);
    expect(saved.read.series).toBeLessThanOrEqual(MANY + 1);
    expect(saved.err).toBe('');
    const status = JSON.parse(saved.out);
    expect(Date.now() - Date.parse(status.countedAt)).toBeLessThan(DAY);
    const { series, tiers } = await countNow(Date.parse(status.countedAt));
    expect(status.tiers).toEqual(JSON.parse(JSON.stringify(tiers)));
    expect(covered(status.series)).toEqual(covered(series));
    // What takes no look at each series is of now, and all else is what counting at once shows.
    const { now: before, countedAt: none, ...counted } = JSON.parse(live.out);
    expect(none).toBeNull();
    expect(before.services).toEqual([]);
    expect(status.now.services).toEqual(['a:1']);
    expect(status.catalogue).toEqual(counted.catalogue);

    await database.sql`update ops.counted set counted_at = counted_at - interval '4 minutes', took_ms = 10000`;
    await beService(['worker']);
    expect((await run('status')).out).toMatch(
      /\nSeries, ages, catalogue and requests as a service counted them 4m( \d+s)? ago; with so many series it counts from time to time\.\n\nseries /,
    );
  });

  test.each<[string, readonly string[] | null, string]>([
    ['no service runs', null, '1 second'],
    ['only a service runs that answers callers', ['http'], '1 second'],
    ['the services could not count for long', ['worker'], '1 day'],
    ['the count was made before a clock was set back', ['worker'], '-1 day'],
  ])('counts series only when asked to when %s', async (_, roles, age) => {
    const { sql } = database;
    expect(await count()).toBe(true);
    // Since then a month of work was done, say.
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

  test('counts all series when asked to, also while a service counts them', async () => {
    await beService(['worker']);
    expect(await count()).toBe(true);
    await database.sql`update ops.counted set answer = jsonb_set(answer, '{series}', '[]')`;
    const status = JSON.parse((await run('status', '--json', '--count')).out);
    expect(status.countedAt).toBeNull();
    expect(covered(status.series)).toEqual(covered((await countNow(Date.now())).series));
  });

  test('shows what a service that runs has counted, and not any more once it has stopped', async () => {
    const { sql, url } = database;
    // Nobody answers there.
    const env = { DATABASE_URL: url, CHANDLER_PLAN: 'enterprise', CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1' };
    const service = await startServiceProcess('scheduler', env);
    try {
      await expect
        .poll(() => sql`select from ops.counted where name = ${SERIES_COUNTS}`, { timeout: 60_000 })
        .toHaveLength(1);
      const { out } = await runCommand(['status', '--json'], { env });
      expect(JSON.parse(out)).toMatchObject({ countedAt: expect.any(String), now: { services: [expect.any(String)] } });
    } finally {
      await service.stop();
    }
    expect(JSON.parse((await runCommand(['status', '--json'], { env })).out)).toMatchObject({
      countedAt: null,
      series: null,
    });
  });

  test('is counted by one service, also while the first count lasts', async () => {
    const clock = createVirtualClock(Date.now());
    let first: Promise<boolean> | undefined;
    await database.sql.begin(async (tx) => {
      await tx`lock table ops.fetch in access exclusive mode`;
      first = count(clock);
      const waiting = () => tx`select from pg_locks where not granted and relation = 'ops.fetch'::regclass`;
      await expect.poll(waiting, { timeout: 60_000 }).toHaveLength(1);
      clock.advance(2 * MINUTE);
      expect(await count(clock)).toBe(false);
    });
    expect(await first).toBe(true);
    const [{ tookMs }] = (await database.sql`select took_ms from ops.counted`) as unknown as [{ tookMs: number }];
    expect(tookMs).toBe(2 * MINUTE);
    // What takes so long is done seldom.
    expect(countedEveryMs(tookMs)).toBe(50 * tookMs);
    clock.advance(50 * tookMs - 2 * MINUTE - 1);
    expect(await count(clock)).toBe(false);
    clock.advance(1);
    expect(await count(clock)).toBe(true);
  });

  test('is counted again soon, but not at once, after a count that failed', async () => {
    const clock = createVirtualClock(Date.now());
    await database.sql`alter view market.coverage rename to hidden`;
    await expect(count(clock)).rejects.toThrow('coverage');
    await database.sql`alter view market.hidden rename to coverage`;
    expect(await count(clock)).toBe(false);
    clock.advance(MINUTE);
    expect(await count(clock)).toBe(true);
  });
});

test('gaps with a limit reads what it shows, and says that it did not count the others', async () => {
  const { out, read } = await run('gaps', '--limit', '50');
  expect(read.series).toBeLessThanOrEqual(MANY + 200);
  expect(out.split('\n').filter((line) => /^c\d+-coin-/.test(line))).toHaveLength(50);
  expect(out).toMatch(
    /50 gaps shown\. There are too many series to count all gaps at once: .*--all shows and counts every gap/,
  );
  // Of a few series all gaps are counted, as always.
  const few = await run('gaps', 'c1-coin-1', '--limit', '5');
  expect(few.out).toMatch(/ gaps \(5 shown; --all shows every one\): [\d,]+ slots not asked yet/);
});

test('gaps with a reason that no gap has looks for gaps once', async () => {
  const { out, read } = await run('gaps', '--limit', '50', '--reason', 'malformed');
  expect(out).toBe('No gaps with the reason malformed.\n');
  // The series are counted besides, which is cheap.
  expect(read.series).toBeLessThanOrEqual(2 * SERIES + MANY + 200);
});

test('backfills list looks at no request', async () => {
  const { sql } = database;
  const { out } = await run('backfills', 'list');
  expect(out).toMatch(/1 +running .* 500 /);
  const plan = await sql`explain select spent, stored from ops.backfill_progress where id = 1`;
  expect(plan.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/\bfetch\b/);
});

test('the coins that have series, which each process counts every minute, are looked for once', async () => {
  const { read } = await run('quota');
  expect(read.coins).toBeLessThan(2 * COINS);
});

test('the planner puts the width of an interval into the statement that asks for it', async () => {
  const plan = await database.sql`
    explain (verbose, costs off) select ops.seconds_of(interval), ops.settled_until(interval) from market.series`;
  expect(plan.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/seconds_of|settled_until/);
  const [row] = await database.sql`select ops.seconds_of(null) as width, ops.settled_until(null) as until`;
  expect(row).toEqual({ width: null, until: null });
});
