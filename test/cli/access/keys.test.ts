import { afterEach, beforeEach, expect, test } from 'vitest';
import { prefixOf } from '../../../src/core/caller/api-key.ts';
import { DAY } from '../../../src/core/interval.ts';
import { createMeteredAccess } from '../../../src/service/access/metered-access.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

const NOON = Date.UTC(2026, 10, 3, 12);
let database: TestDatabase;
let clock: VirtualClock;
beforeEach(async () => {
  database = await createTestDatabase();
  clock = createVirtualClock(NOON);
});
afterEach(() => database.drop());

const keys = (...argv: string[]) => runCommand(['keys', ...argv], { env: { DATABASE_URL: database.url }, clock });
const json = async (...argv: string[]) => JSON.parse((await keys(...argv, '--json')).out);

/** The status that the service returns to a caller with this key. */
async function statusOf(key: string): Promise<number> {
  const onError = (error: Error) => {
    throw error;
  };
  const access = createMeteredAccess({ sql: database.sql, clock, limits: true, onError });
  const answer = await access.admit({ key, scheme: 'bearer', address: '192.0.2.1' }, 'data');
  await access.close();
  return answer.kind === 'admitted' ? 200 : answer.status;
}

test('a key is shown once and accepted, and nothing in the database reveals it', async () => {
  const { code, out } = await keys('create', '--plan', 'pro', '--name', 'Grafana of the desk', '--expires', '90d');
  expect(code).toBe(0);
  const key =
    /^(chandler_\w{8}_\w{32})\n\nCopy the key now: Chandler stores only its hash and cannot show it again\./.exec(
      out,
    )![1]!;
  expect(await statusOf(key)).toBe(200);
  const rows = await database.sql<{ row: string }[]>`select k::text as row from ops.api_key k`;
  expect(rows).toHaveLength(1);
  expect(rows[0]!.row).not.toContain(key.slice(-32));
  const list = await keys('list');
  expect(list.out).toContain(prefixOf(key)!);
  expect(list.out).not.toContain(key);
  expect(await json('list')).toEqual([
    {
      prefix: prefixOf(key),
      name: 'Grafana of the desk',
      plan: 'pro',
      isOperator: false,
      requestsPerMonth: null,
      requestsPerSecond: null,
      createdAt: '2026-11-03T12:00:00Z',
      expiresAt: '2027-02-01T12:00:00Z',
      revokedAt: null,
      replacedBy: null,
      thisMonth: 1,
      leased: 0,
      lastSeenAt: '2026-11-03T12:00:00Z',
    },
  ]);
  clock.advance(90 * DAY);
  expect(await statusOf(key)).toBe(403);
  expect((await keys('list')).out).toBe('There are no valid keys; create one with chandler keys create.\n');
  expect((await keys('list', '--all')).out).toContain('expired 2027-02-01 12:00Z');
});

test('the list shows used requests apart from those that a process has leased', async () => {
  const { key } = await json('create', '--plan', 'pro');
  const onError = (error: Error) => {
    throw error;
  };
  const access = createMeteredAccess({ sql: database.sql, clock, limits: true, onError });
  const use = async () => {
    const [{ thisMonth, leased }] = await json('list');
    return { thisMonth, leased };
  };
  const ask = () => access.admit({ key, scheme: 'bearer', address: '192.0.2.1' }, 'data');
  for (let i = 0; i < 3; i++) await ask();
  // Four were leased at once, and none was reported as used yet. A caller that asks for its own use gets it from the process that counts.
  expect(await use()).toEqual({ thisMonth: 0, leased: 4 });
  const made = async () => (await access.account({ key, scheme: 'bearer', address: '192.0.2.1' }))!.usage.current_month;
  expect(await made()).toMatchObject({ requests_made: 3, requests_left: 999_997 });
  await until(() => clock.sleepers() === 1);
  clock.advance(5_000);
  await expect.poll(use).toEqual({ thisMonth: 3, leased: 1 });
  expect(await made()).toMatchObject({ requests_made: 3 });
  expect((await keys('list')).out).toMatch(/this month +leased +limit +created[\s\S]* 3 +1 +1,000,000 /);
  await ask();
  await access.close();
  expect(await use()).toEqual({ thisMonth: 4, leased: 0 });
  // A month later nothing is used or leased.
  clock.advance(31 * DAY);
  expect(await use()).toEqual({ thisMonth: 0, leased: 0 });
});

test('a revoked key is refused, and list --all still shows it', async () => {
  const { key, prefix } = await json('create', '--plan', 'free');
  // A whole key that was pasted is recognised, but not printed.
  const revoked = await keys('revoke', key);
  expect(revoked).toMatchObject({ code: 0, out: `${prefix} is revoked.\n` });
  expect(await statusOf(key)).toBe(403);
  expect(await json('list')).toEqual([]);
  expect(await json('list', '--all')).toMatchObject([{ prefix, revokedAt: '2026-11-03T12:00:00Z' }]);
  const again = await keys('revoke', prefix);
  expect(again.code).toBe(1);
  expect(again.err).toContain(`${prefix} was already revoked, 2026-11-03 12:00Z`);
});

test('the key of an operator has no limits unless a plan is given, and stays an operator’s when it is rotated', async () => {
  const first = await json('create', '--operator', '--name', 'ada');
  expect(first).toMatchObject({ name: 'ada', plan: 'unlimited', isOperator: true });
  expect(await json('rotate', first.prefix)).toMatchObject({ name: 'ada', isOperator: true });
  expect(await json('create', '--operator', '--plan', 'free')).toMatchObject({ plan: 'free', isOperator: true });
  expect((await keys('list')).out).toMatch(/ada +unlimited +operator /);
});

test('rotate replaces a key by one with the same terms, at once or after a while', async () => {
  const first = await json('create', '--plan', 'starter', '--name', 'desk', '--monthly-requests', '5000');
  const second = await json('rotate', first.prefix, '--keep', '1d');
  expect(second).toMatchObject({ name: 'desk', plan: 'starter', requestsPerMonth: 5000, expiresAt: null });
  expect([await statusOf(first.key), await statusOf(second.key)]).toEqual([200, 200]);
  expect(await json('list')).toMatchObject([
    { prefix: first.prefix, replacedBy: second.prefix },
    { prefix: second.prefix },
  ]);
  // One holder has one count, whichever of the two keys is sent.
  expect(await json('list')).toMatchObject([{ thisMonth: 2 }, { thisMonth: 2 }]);
  clock.advance(DAY);
  expect([await statusOf(first.key), await statusOf(second.key)]).toEqual([403, 200]);
  const third = await json('rotate', second.prefix);
  expect([await statusOf(second.key), await statusOf(third.key)]).toEqual([403, 200]);
  expect(await json('list')).toMatchObject([{ prefix: third.prefix, thisMonth: 4 }]);
  const followed = await keys('rotate', second.prefix);
  expect(followed).toMatchObject({ code: 1 });
  expect(followed.err).toContain(`${second.prefix} was replaced by ${third.prefix}; rotate that one`);
  await keys('revoke', third.prefix);
  const gone = await keys('rotate', third.prefix);
  expect(gone).toMatchObject({ code: 1 });
  expect(gone.err).toContain('was revoked 2026-11-04 12:00Z; create a new one with chandler keys create');
});

test.each([
  [['create'], /Choose the plan whose limits apply: --plan free \| .*; or --operator/],
  [['create', '--plan', 'por'], /did you mean pro\?/],
  [['create', '--plan', 'pro', '--name', ' '], /one line of 1 to 100 characters/],
  [
    ['create', '--plan', 'pro', '--expires', '2026-01-01'],
    /'--expires <when>' .* It must lie in the future; 2026-01-01 is 2026-01-01 00:00Z/,
  ],
  [
    ['create', '--plan', 'pro', '--expires', 'soon'],
    /'--expires <when>' argument 'soon' is invalid\. A time is a date/,
  ],
  [
    ['create', '--plan', 'pro', '--expires', '5x'],
    /'--expires <when>' argument '5x' is invalid\. A duration is a number with its unit/,
  ],
  [['create', '--plan', 'pro', '--monthly-requests', '0'], /whole number above 0/],
  [['create', '--plan', 'pro', '--requests-per-second', '-3'], /whole number above 0/],
  [['revoke', 'my key'], /Name a key by its first part, like chandler_1a2B3c4D/],
  [['revoke', 'chandler_00000000'], /There is no key chandler_00000000; chandler keys list --all shows all keys\./],
  [['rotate', 'chandler_00000000'], /There is no key chandler_00000000/],
  [['rotate', 'chandler_00000000', '--keep', '3'], /write 3s, 3m or 3h/],
])('keys %j is refused', async (argv, problem) => {
  const { code, err, out } = await keys(...argv);
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(problem);
});
