/** The longer cases of told.test.ts: whole services, a clock that the test moves, and a webhook that is really there. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type Hook, startHook } from '../support/hook.ts';
import { createServiceWorld, expectAlive, type ServiceWorld, untilLogged } from '../support/service-world.ts';

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

const create = async (env: Record<string, string> = {}) => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    simulator: { coins: 12, limits: { keys: { good: 'pro' } } },
    env: { CHANDLER_PLAN: 'pro', ...env },
  });
};
/** So many minutes pass, one after the other, and everybody does what is due. */
const minutes = async (n: number) => {
  for (let i = 0; i < n; i++) await world.advance(MINUTE);
  expectAlive(world);
};
const until = async (isSo: () => boolean, most = 30) => {
  for (let i = 0; i < most && !isSo(); i++) await minutes(1);
  expect(isSo()).toBe(true);
};

test('a database that is down is told late when the service that would tell it cannot', async () => {
  await create({ CHANDLER_WEBHOOK_URL: hook.url, CHANDLER_NOTIFY: 'database-down' });
  const other = await world.start('two', { roles: ['worker'] });
  const teller = await world.start('one', { roles: ['scheduler'] });
  await minutes(2);
  teller.kill();
  world.cutDatabase();
  await untilLogged(world, other, 'the database: ');
  await minutes(10);
  expect(hook.texts()).toEqual([]);
  world.mend();
  await untilLogged(world, other, 'the database recovered');
  // The rest of its connections are opened on the machine's time, while minutes of the world pass in no time.
  const begun = performance.now();
  while (hook.texts().length === 0) {
    expect(performance.now() - begun).toBeLessThan(60_000);
    await minutes(1);
    await systemClock.sleep(50);
  }
  expect(hook.texts()).toEqual([
    expect.stringMatching(/^The database could not be used from .* to .* \(\d+m( \d+s)?\): .* It is back/),
  ]);
});

test('the heartbeat comes every few minutes from one of all services, and stops while the service is not well', async () => {
  await create({ CHANDLER_HEARTBEAT_URL: hook.url });
  const worker = await world.start('worker', { roles: ['worker'] });
  await minutes(3);
  // Nobody rings: the service does not do its work.
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
