/** With very many series, no command that a user waits for reads each of them. The tests count the rows that Postgres read, not the time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { quotaOf, readBudget } from '../../../src/budget.ts';
import { systemClock } from '../../../src/clock.ts';
import { parseConfig } from '../../../src/config.ts';
import { monthReset } from '../../../src/core/calendar.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { accountIdOf } from '../../../src/ingest/request/account.ts';
import { keepInstance } from '../../../src/store/work/instance.ts';
import { SERIES_OF_A_COIN } from '../../support/many-series.ts';
import {
  beService,
  COINS,
  count,
  countNow,
  covered,
  database,
  forgetServices,
  inService,
  readRows,
  readSince,
  run,
  testCountedWhenAsked,
  useManySeries,
} from './many-series.ts';

useManySeries();

const SERIES = COINS * SERIES_OF_A_COIN;

/** After reading this many, a command knows that there are many. */
const MANY = 20_000;

test('a permit waits for no read of each series: the reservation comes from the count of a service', async () => {
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
    // Each series once in two days.
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
    // One of several services counts, and not before a count is due.
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
    // What needs no read of each series is current. All else equals what an immediate count shows.
    const { now: before, countedAt: none, ...counted } = JSON.parse(live.out);
    expect(none).toBeNull();
    expect(before.services).toEqual([]);
    expect(status.now.services).toEqual(['a:1']);
    expect(status.catalogue).toEqual(counted.catalogue);

    await database.sql`update ops.counted set counted_at = counted_at - interval '4 minutes', took_ms = 10000`;
    await beService(['worker']);
    expect((await run('status')).out).toMatch(
      /\nA service counted series, ages, catalogue and requests 4m( \d+s)? ago; with this many series it counts only from time to time\.\n\nseries /,
    );
  });

  testCountedWhenAsked([['no service runs', null, '1 second']]);
});

test('gaps with a limit reads only what it shows, and says that it did not count the others', async () => {
  const { out, read } = await run('gaps', '--limit', '50');
  expect(read.series).toBeLessThanOrEqual(MANY + 200);
  expect(out.split('\n').filter((line) => /^c\d+-coin-/.test(line))).toHaveLength(50);
  expect(out).toMatch(
    /50 gaps shown\. There are too many series to count all gaps at once: .*--all shows and counts every gap/,
  );
  // With few series all gaps are counted, as always.
  const few = await run('gaps', 'c1-coin-1', '--limit', '5');
  expect(few.out).toMatch(/ gaps \(5 shown; --all shows every one\): [\d,]+ slots not asked yet/);
});

test('gaps with a reason that no gap has searches the gaps once', async () => {
  const { out, read } = await run('gaps', '--limit', '50', '--reason', 'malformed');
  expect(out).toBe('No gaps with the reason malformed.\n');
  // The series are counted as well, which is cheap.
  expect(read.series).toBeLessThanOrEqual(2 * SERIES + MANY + 200);
});

test('backfills list reads no record of a request', async () => {
  const { sql } = database;
  const { out } = await run('backfills', 'list');
  expect(out).toMatch(/1 +running .* 500 /);
  const plan = await sql`explain select spent, stored from ops.backfill_progress where id = 1`;
  expect(plan.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/\bfetch\b/);
});

test('the coins that have series, which each process counts every minute, are read once', async () => {
  const { read } = await run('quota');
  expect(read.coins).toBeLessThan(2 * COINS);
});

test('the planner inlines the width of an interval into the statement', async () => {
  const plan = await database.sql`
    explain (verbose, costs off) select ops.seconds_of(interval), ops.settled_until(interval) from market.series`;
  expect(plan.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/seconds_of|settled_until/);
  const [row] = await database.sql`select ops.seconds_of(null) as width, ops.settled_until(null) as until`;
  expect(row).toEqual({ width: null, until: null });
});
