/** What an operator is told: whole services, a clock that the test moves, and a real webhook. */
import { expect, test } from 'vitest';
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

/** `at`: on the clock of the test. */
type Line = { readonly at: number; readonly msg: string; readonly [field: string]: unknown };

const lines = (): Line[] =>
  world.services().flatMap((service) =>
    service.lines.map((line) => {
      const [, at, json] = /^(\S+) (.*)$/s.exec(line)!;
      return { ...JSON.parse(json!), at: Date.parse(at!) };
    }),
  );
test('a database that is down is reported while it is down, by one of all services, and once when it is back', async () => {
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
  await mendDatabase(one);
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

test('a key that is refused in the middle of work stops the work, and is reported at once; another key resolves it', async () => {
  let isRevoked = false;
  await open({
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
  // After 1, 4, 16 … minutes, and not once for every schedule.
  expect(world.asked.length - before).toBeLessThanOrEqual(8);
  expect(hook.texts()).toHaveLength(1);
  await service.stop();
  await world.start('two', { env: { CHANDLER_API_KEY: 'better' } });
  await until(() => hook.texts().length > 1, 5);
  expect(hook.texts()[1]).toMatch(/^Resolved: the upstream accepts the key again/);
});

test('the log of an outage has a line for each cause and minute, with a count, and times that a person can read', async () => {
  await create({ CHANDLER_SCHEDULE_GLOBAL: '* * * * *', CHANDLER_SCHEDULE_EXCHANGES: '* * * * *' });
  await world.start('one');
  await world.untilListed();
  world.upstream = 'broken';
  await minutes(8);
  world.upstream = 'up';
  const failed = lines().filter(({ cause }) => cause !== undefined);
  // Schedules that fail for the same reason share one line.
  const causes = new Set(failed.map(({ msg, cause }) => `${msg}: ${cause}`));
  expect(causes).toContain('schedule failed and will be retried: upstream.test answered 502: a web page');
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
