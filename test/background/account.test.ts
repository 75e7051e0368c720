/** A service with a key that does not know yet which plan it has, in a time that passes when told. */
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
const lines = () =>
  world
    .services()
    .flatMap((service) => service.lines)
    .join('\n');

test.each(['broken', 'down'] as const)(
  'an upstream that is %s at the first start is waited for, takes few requests, and no plan is made up',
  async (state) => {
    // More than the free plan has, and little of that which the key has.
    await create({ CHANDLER_SCHEDULE_GLOBAL: '*/1 * * * *' });
    world.upstream = state;
    await world.start('one');
    expect(lines()).toMatch(/"the account: the upstream (has not said yet|cannot be reached)/);
    for (let i = 0; i < 30; i++) await world.advance(MINUTE);
    expectAlive(world);
    expect(new Set(asked())).toEqual(new Set(['/users/me']));
    expect(asked().length).toBeLessThan(20);
    expect(await world.database.sql`select plan, checked_at from ops.account where checked_at is not null`).toEqual([]);
    world.upstream = 'up';
    for (let i = 0; i < 60 && !/"ready"/.test(lines()); i++) await world.advance(MINUTE);
    expect(lines()).toMatch(/"the account: well again"/);
    await world.untilListed();
    expect(await world.database.sql`select plan from ops.account`).toEqual([{ plan: 'pro' }]);
  },
);
