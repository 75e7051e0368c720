/** The longer cases of operator-notices.test.ts: whole services, a clock that the test moves, and a real webhook. */
import { expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { untilLogged } from '../support/service-world.ts';
import {
  create,
  hook,
  MINUTE,
  mendDatabase,
  minutes,
  open,
  START,
  twoKeys,
  until,
  useHook,
  world,
} from './operator-notices.ts';

useHook();

test('a database that is down is reported late when the service that would report it has been killed', async () => {
  await create({ CHANDLER_WEBHOOK_URL: hook.url, CHANDLER_NOTIFY: 'database-down' });
  const other = await world.start('two', { roles: ['worker'] });
  const teller = await world.start('one', { roles: ['scheduler'] });
  await minutes(2);
  teller.kill();
  world.cutDatabase();
  await untilLogged(world, other, 'the database: ');
  await minutes(10);
  expect(hook.texts()).toEqual([]);
  await mendDatabase(other);
  await until(() => hook.texts().length > 0);
  expect(hook.texts()).toEqual([
    expect.stringMatching(/^The database could not be used from .* to .* \(\d+m( \d+s)?\): .* It is back/),
  ]);
});

test('the heartbeat comes every few minutes from one of all services, and stops while the service is not well', async () => {
  await create({ CHANDLER_HEARTBEAT_URL: hook.url });
  const worker = await world.start('worker', { roles: ['worker'] });
  await minutes(3);
  // No heartbeat is sent: the service does not do its work.
  expect(hook.gets).toBe(0);
  await world.start('scheduler', { roles: ['scheduler'] });
  await until(() => hook.gets === 1, 2);
  await minutes(30);
  expect(hook.gets).toBeGreaterThanOrEqual(5);
  expect(hook.gets).toBeLessThanOrEqual(7);
  expect(hook.posts).toEqual([]);
  world.upstream = 'broken';
  await minutes(12);
  const before = hook.gets;
  await minutes(15);
  expect(hook.gets).toBe(before);
  world.upstream = 'up';
  await until(() => hook.gets > before);
  worker.kill();
  await minutes(3);
  const alone = hook.gets;
  await minutes(15);
  expect(hook.gets).toBe(alone);
});

test('another key that is refused as well ends no notice, and neither does a service with another key', async () => {
  let isRevoked = false;
  await open({
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
  // An hour later it is reported again.
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

test('a backfill continues when the upstream accepts a key again that it refused, and no other notice is sent', async () => {
  let isRevoked = false;
  await open({
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
