/** A service that does not know the plan of its key yet, on a clock that the test moves. */
import { afterEach, expect, test } from 'vitest';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';

export const MINUTE = 60_000;
const START = Date.UTC(2030, 4, 15, 10, 3);
export const KEY = 'right';

export let world: ServiceWorld;
export function useWorld(): void {
  afterEach(() => world?.close());
}

export const create = async (env: Record<string, string> = {}) => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    simulator: { coins: 12, limits: { keys: { [KEY]: 'pro' } } },
    env: { CHANDLER_API_KEY: KEY, ...env },
  });
};
export const asked = () => world.asked.map(({ path }) => path);
/** Waits until the log matches, a few seconds at most. */
export const said = async (like: RegExp) => {
  for (let i = 0; i < 40 && !like.test(lines()); i++) await world.advance(100);
  expectAlive(world);
  expect(lines()).toMatch(like);
};
const lines = () =>
  world
    .services()
    .flatMap((service) => service.lines)
    .join('\n');

export function testFirstStart(state: 'broken' | 'down'): void {
  test(`an upstream that is ${state} at the first start: the service waits, sends few requests, and assumes no plan`, async () => {
    // More requests than the free plan has, and a small part of what the plan of the key has.
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
  });
}
