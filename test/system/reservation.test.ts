/** Quota is reserved for what services will really request, and every process shows the same reservation. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { cadenceOf } from '../../src/ingest/schedule/cadence.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { runCommand } from '../support/cli.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';

const START = Date.UTC(2026, 0, 10, 6);
const COMMON = { CHANDLER_BASE_URL: 'http://upstream.test/v1', CHANDLER_PLAN: 'free' };
/** All schedules that send requests, except for the list of coins. */
const OFF = Object.fromEntries(
  ['tickers', 'global', 'exchanges', 'rates', ...CATALOGUE_KINDS].map((name) => [
    `CHANDLER_SCHEDULE_${name.toUpperCase()}`,
    'off',
  ]),
);

let world: ServiceWorld;
afterEach(() => world?.close());

/** The output of a process with other settings than the services: those of the plan. */
async function read(command: string, ...more: string[]) {
  const env = { ...COMMON, DATABASE_URL: world.database.url };
  const { code, out, err } = await runCommand([command, ...more, '--json'], { env, clock: world.clock });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out);
}

test('a schedule that is off in the services, and the schedules of a service that is gone, reserve nothing', async () => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: { ...COMMON, ...OFF },
    simulator: { seed: 3, coins: 8, limits: { plan: 'free', overrides: { pacePerSecond: null } } },
  });
  expect(await read('quota')).toMatchObject({ month: { reserved: 0, left: 20_000 }, scheduling: { state: 'none' } });

  const service = await world.start('a');
  await world.untilListed();
  const coins = cadenceOf('7 */6 * * *');
  const expected = (at: number) => ({
    // Without tickers it requests two lists.
    day: 2 * coins.count(at, Math.floor(at / DAY) * DAY + DAY),
    month: 2 * coins.count(at, Date.UTC(2026, 1)),
  });
  const { day, month, scheduling, scheduled } = await read('quota');
  expect({ day: day.reserved, month: month.reserved }).toEqual(expected(world.clock.now()));
  expect({ scheduling: scheduling.state, names: scheduled.map((s: { name: string }) => s.name) }).toEqual({
    scheduling: 'running',
    names: ['coins'],
  });
  const { schedules } = await read('schedule');
  const asking = schedules.filter((s: { requestsPerMonth: number }) => s.requestsPerMonth > 0);
  expect(asking.map(({ name, cron }: { name: string; cron: string }) => ({ name, cron }))).toEqual([
    { name: 'coins', cron: coins.cron },
  ]);
  expect((await read('schedule')).month.requests).toBe(31 * 4 * 2);

  // Another service of the account runs with its own settings, and the reservation is for both.
  const other = await world.start('b', { env: { CHANDLER_SCHEDULE_GLOBAL: '0 */6 * * *' } });
  await world.advance(1_000);
  expect((await read('quota')).month.reserved).toBe(
    expected(world.clock.now()).month + cadenceOf('0 */6 * * *').count(world.clock.now(), Date.UTC(2026, 1)),
  );
  await other.stop();
  await service.stop();

  // A restart, an upgrade or a crash: the service comes back with the settings that this process knows.
  await world.advance(2 * HOUR);
  const stopped = await read('quota');
  expect(stopped.scheduling).toMatchObject({ state: 'stopped' });
  expect(stopped.scheduled.map((s: { name: string }) => s.name)).toContain('tickers');
  expect(stopped.month.reserved).toBeGreaterThan(1_000);
  await world.advance(DAY);
  const gone = await read('quota');
  expect(gone).toMatchObject({ month: { reserved: 0 }, day: { reserved: 0 }, scheduling: { state: 'none' } });
});
