/** A service that does not know the plan of its key yet, on a clock that the test moves. */
import { afterEach, expect, test } from 'vitest';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';

const MINUTE = 60_000;
const START = Date.UTC(2030, 4, 15, 10, 3);
const KEY = 'right';

let world: ServiceWorld;
afterEach(() => world?.close());

const create = async (env: Record<string, string> = {}) => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    simulator: { coins: 12, limits: { keys: { [KEY]: 'pro' } } },
    env: { CHANDLER_API_KEY: KEY, ...env },
  });
};
const asked = () => world.asked.map(({ path }) => path);
/** Waits until the log matches, a few seconds at most. */
const said = async (like: RegExp) => {
  for (let i = 0; i < 40 && !like.test(lines()); i++) await world.advance(100);
  expectAlive(world);
  expect(lines()).toMatch(like);
};
const lines = () =>
  world
    .services()
    .flatMap((service) => service.lines)
    .join('\n');

test.each(['broken', 'down'] as const)(
  'an upstream that is %s at the first start: the service waits, sends few requests, and assumes no plan',
  async (state) => {
    // More than the free plan has, and little of that which the key has.
    await create({ CHANDLER_SCHEDULE_GLOBAL: '*/1 * * * *' });
    world.upstream = state;
    await world.start('one');
    await said(/"the account: (the account's plan is not known yet|the upstream cannot be reached)/);
    for (let i = 0; i < 30; i++) await world.advance(MINUTE);
    expectAlive(world);
    expect(new Set(asked())).toEqual(new Set(['/users/me']));
    expect(asked().length).toBeLessThan(20);
    expect(await world.database.sql`select plan, checked_at from ops.account where checked_at is not null`).toEqual([]);
    world.upstream = 'up';
    for (let i = 0; i < 60 && !/"ready"/.test(lines()); i++) await world.advance(MINUTE);
    expect(lines()).toMatch(/"the account recovered"/);
    await world.untilListed();
    expect(await world.database.sql`select plan from ops.account`).toEqual([{ plan: 'pro' }]);
  },
);

test('a refused key: the service waits, however often it is started, and tries another key at once', async () => {
  await create({ CHANDLER_API_KEY: 'wrong' });
  for (let i = 0; i < 3; i++) {
    const service = await world.start(`start ${i}`);
    await said(/"the account: the upstream refused the key \(.*403.*set CHANDLER_API_KEY/);
    expectAlive(world);
    if (i < 2) await service.stop();
  }
  expect(asked()).toEqual(['/users/me', '/users/me']);
  // Several that wait ask no more than one.
  await world.start('another');
  for (let i = 0; i < 24; i++) await world.advance(60 * MINUTE);
  expectAlive(world);
  expect(asked().length).toBeGreaterThan(6);
  expect(asked().length).toBeLessThanOrEqual(2 * (1 + 5 + 4));
  const before = asked().length;
  await world.start('corrected', { env: { CHANDLER_API_KEY: KEY } });
  await world.untilListed();
  // The other two may ask once more meanwhile, each with the key that is refused.
  const byCorrected = world.asked.slice(before).filter(({ by }) => by === 'corrected');
  expect(byCorrected[0]).toMatchObject({ path: '/users/me' });
});
