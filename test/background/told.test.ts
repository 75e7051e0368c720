/** What an operator learns while nobody looks: whole services, a clock that the test moves, and a webhook that is really there. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { type Hook, startHook } from '../support/hook.ts';
import {
  createServiceWorld,
  expectAlive,
  type ServiceWorld,
  type ServiceWorldOptions,
  untilLogged,
} from '../support/service-world.ts';

const MINUTE = 60_000;
const START = Date.UTC(2030, 4, 15, 10, 3);

let world: ServiceWorld;
let hook: Hook;
beforeEach(async () => {
  hook = await startHook();
});
afterEach(async () => {
  await world?.close();
  await hook.close();
});

/** `at`: on the clock of the world. */
type Line = { readonly at: number; readonly msg: string; readonly [field: string]: unknown };

const create = async (env: Record<string, string> = {}) => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    simulator: { coins: 12, limits: { keys: { good: 'pro' } } },
    env: { CHANDLER_PLAN: 'pro', ...env },
  });
};
const lines = (): Line[] =>
  world.services().flatMap((service) =>
    service.lines.map((line) => {
      const [, at, json] = /^(\S+) (.*)$/s.exec(line)!;
      return { ...JSON.parse(json!), at: Date.parse(at!) };
    }),
  );
/** So many minutes pass, one after the other, and everybody does what is due. */
const minutes = async (n: number) => {
  for (let i = 0; i < n; i++) await world.advance(MINUTE);
  expectAlive(world);
};
const until = async (isSo: () => boolean, most = 30) => {
  for (let i = 0; i < most && !isSo(); i++) await minutes(1);
  expect(isSo()).toBe(true);
};

test('a database that is down is told while it is down, by one of all services, and once when it is back', async () => {
  await create({ CHANDLER_WEBHOOK_URL: hook.url, CHANDLER_NOTIFY: 'database-down' });
  const one = await world.start('one');
  await world.start('two', { roles: ['worker'] });
  await minutes(2);
  world.cutDatabase();
  await untilLogged(world, one, 'the database: ');
  await minutes(1);
  expect(hook.texts()).toEqual([]);
  await until(() => hook.texts().length > 0, 5);
  expect(hook.texts()[0]).toMatch(
    /^The database cannot be used since 2030-05-15 10:0\d(:\d+)?Z \(2m( \d+s)?\): .*Nothing is fetched meanwhile, and nothing is lost: .*chandler doctor .*\(one:/,
  );
  await minutes(10);
  expect(hook.texts()).toHaveLength(1);
  world.mend();
  await untilLogged(world, one, 'the database recovered');
  await until(() => hook.texts().length > 1);
  expect(hook.texts()[1]).toMatch(
    /^Resolved: the database could not be used from .* to .* \(1\d+m( \d+s)?\)\. It is back/,
  );
  await minutes(6);
  expect(hook.texts()).toHaveLength(2);
  expect(await world.database.sql`select event, sent_at is null as unsent from ops.notice order by id`).toEqual([
    { event: 'database-down', unsent: false },
    { event: 'database-down', unsent: false },
  ]);
});

/** An upstream that knows the keys `good` and `better`, until it refuses the first. */
function twoKeys(isRevoked: () => boolean): Pick<ServiceWorldOptions, 'simulator' | 'script'> {
  return {
    simulator: { coins: 12, limits: { keys: { good: 'pro', better: 'pro' } } },
    script: (request) =>
      isRevoked() && /good/.test(request.headers.get('authorization') ?? '')
        ? Promise.resolve(Response.json({ error: 'no such key' }, { status: 403 }))
        : null,
  };
}

test('a key that is refused in the middle of work stops the work, and is told at once; another key resolves it', async () => {
  let isRevoked = false;
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    ...twoKeys(() => isRevoked),
    env: { CHANDLER_API_KEY: 'good', CHANDLER_WEBHOOK_URL: hook.url, CHANDLER_NOTIFY: 'key-refused,stuck' },
  });
  const service = await world.start('one');
  await world.untilListed();
  await minutes(2);
  isRevoked = true;
  await until(() => hook.texts().length > 0, 10);
  expect(hook.texts()[0]).toMatch(/^Key refused since .*: the upstream refused the key \(.*403.*set CHANDLER_API_KEY/);
  expect(await world.database.sql`select from market.refusal where reason = 'forbidden'`).toHaveLength(0);
  const before = world.asked.length;
  await minutes(30);
  // After 1, 4, 16 … minutes, and not for every schedule.
  expect(world.asked.length - before).toBeLessThanOrEqual(8);
  expect(hook.texts()).toHaveLength(1);
  await service.stop();
  await world.start('two', { env: { CHANDLER_API_KEY: 'better' } });
  await until(() => hook.texts().length > 1, 5);
  expect(hook.texts()[1]).toMatch(/^Resolved: the upstream accepts the key again/);
});

test('a new key that is refused as well resolves nothing, nor does a service with another key', async () => {
  let isRevoked = false;
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    ...twoKeys(() => isRevoked),
    env: { CHANDLER_API_KEY: 'good', CHANDLER_WEBHOOK_URL: hook.url, CHANDLER_NOTIFY: 'key-refused' },
  });
  const service = await world.start('one');
  await world.untilListed();
  await world.start('other', { env: { CHANDLER_API_KEY: 'better' } });
  await minutes(2);
  isRevoked = true;
  await until(() => hook.texts().length > 0, 10);
  await minutes(5);
  expect(hook.texts()).toHaveLength(1);
  await service.stop();
  await until(() => hook.texts().length > 1, 5);
  expect(hook.texts()[1]).toMatch(/^Resolved: /);
  await world.services()[0]!.stop();
  // An hour later it is news again.
  await minutes(61);
  const again = await world.start('again');
  await until(() => hook.texts().length > 2, 5);
  expect(hook.texts()[2]).toMatch(/^Key refused since /);
  await again.stop();
  const wrong = await world.start('wrong', { env: { CHANDLER_API_KEY: 'worse' } });
  await minutes(5);
  expect(hook.texts()).toHaveLength(3);
  await wrong.stop();
  await world.start('better', { env: { CHANDLER_API_KEY: 'better' } });
  await until(() => hook.texts().length > 3, 5);
  expect(hook.texts()[3]).toMatch(/^Resolved: the upstream accepts the key again/);
});

test('a backfill goes on when the upstream accepts a key again that it refused, and nothing else is told of it', async () => {
  let isRevoked = false;
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    simulator: { coins: 12, limits: { keys: { good: 'enterprise' } } },
    env: {
      CHANDLER_API_KEY: 'good',
      CHANDLER_WEBHOOK_URL: hook.url,
      CHANDLER_NOTIFY: 'key-refused,backfill-failed,backfill-done,stuck',
      CHANDLER_CANDLES_PER_REQUEST: '1',
      CHANDLER_REQUESTS_PER_SECOND: '1',
    },
    script: () => (isRevoked ? Promise.resolve(Response.json({ error: 'no such key' }, { status: 403 })) : null),
  });
  await world.start('one');
  await world.start('two');
  const [coinId] = await world.untilListed();
  const { sql } = world.database;
  const DAYS = 40;
  const to = START - 4 * DAY - (START % DAY);
  const target = { coinIds: [coinId!], interval: '24h', quote: 'usd', span: { from: to - DAYS * DAY, to } } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  const requestedAt = world.clock.now();
  await queueBackfill(sql, { ...target, requestedAt, spec: {}, plannedRequests: DAYS, priority: 0 });
  const read = async () => (await readBackfills(sql, { all: true }))[0]!;
  for (let i = 0; i < 60 && (await read()).stored === 0; i++) await world.advance(MINUTE / 10);
  expect(await read()).toMatchObject({ state: 'running' });
  isRevoked = true;
  await until(() => hook.texts().length > 0, 10);
  expect(hook.texts()[0]).toMatch(/^Key refused since /);
  await minutes(2);
  expect(await read()).toMatchObject({ state: 'queued', message: 'key refused' });
  isRevoked = false;
  await until(() => hook.texts().length > 1, 20);
  expect(hook.texts()[1]).toMatch(/^Resolved: the upstream accepts the key again, and all work goes on/);
  await until(() => hook.texts().length > 2, 20);
  expect(hook.texts()[2]).toMatch(/^Backfill 1 .* is done: nothing is left to fetch/);
});

test('the log of an outage has a line for each cause and minute, with a count, and times that a person can read', async () => {
  await create({ CHANDLER_SCHEDULE_GLOBAL: '* * * * *', CHANDLER_SCHEDULE_EXCHANGES: '* * * * *' });
  await world.start('one');
  await world.untilListed();
  world.upstream = 'broken';
  await minutes(8);
  world.upstream = 'up';
  const failed = lines().filter(({ cause }) => cause !== undefined);
  // Schedules fail for the same reason, and are one line.
  const causes = new Set(failed.map(({ msg, cause }) => `${msg}: ${cause}`));
  expect(causes).toContain('schedule failed, and is tried again: upstream.test answered 502: a web page');
  expect(failed.some(({ count, names }) => Number(count) >= 2 && (names as string[]).length >= 2)).toBe(true);
  for (const about of causes) {
    const at = failed.filter(({ msg, cause }) => `${msg}: ${cause}` === about).map((line) => line.at);
    for (const [i, then] of at.slice(1).entries()) expect(then - at[i]!, about).toBeGreaterThan(MINUTE - 1_000);
  }
  for (const { at: _, ...line } of lines()) {
    expect(JSON.stringify(line)).not.toMatch(/"stack"/);
    // No time is a number of milliseconds since 1970.
    for (const [name, value] of Object.entries(line))
      expect(typeof value === 'number' && value > 1e11, name).toBe(false);
  }
});
