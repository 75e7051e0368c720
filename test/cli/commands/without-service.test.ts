/** Schedules belong to a service. A user who runs none may use the whole quota, however small it is. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createJumpingClock } from '../../support/jumping-clock.ts';

const clock = createJumpingClock({ speed: 1, startAt: Date.UTC(2026, 10, 3, 12) });
/** Far less than the list of coins alone needs in a month. */
const TINY = { CHANDLER_PLAN: 'enterprise', CHANDLER_MONTHLY_REQUESTS: '20' };

let server: Listening;
let database: TestDatabase;
beforeAll(async () => {
  const onError = (error: unknown) => {
    throw error;
  };
  const { fetch } = createSimulator({ market: 'made-up', clock, unlimited: true, onError });
  server = await listen(fetch, { host: '127.0.0.1', port: 0 });
});
afterAll(() => server.close());
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

const chandler = (...argv: string[]) =>
  runCommand(argv, {
    clock,
    env: { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${server.url}/v1`, ...TINY },
  });

test('a one-off backfill may use the whole month when the schedules would need more', async () => {
  const { code, out, err } = await chandler('backfill', 'btc-bitcoin', '--start', '-30d', '--end', '-5d');
  expect(err).not.toContain('error');
  expect(code).toBe(0);
  expect(out).toContain('\nDone: nothing left to fetch.\n');
  const quota = JSON.parse((await chandler('quota', '--json')).out);
  expect(quota).toMatchObject({
    month: { limit: 20, reserved: 0, left: 20 - quota.month.spent },
    scheduling: { state: 'none', seenAt: null },
  });
  const plan = JSON.parse((await chandler('plan', 'eth-ethereum', '--start', '-30d', '--json')).out);
  expect(plan).toMatchObject({ quotaLeft: quota.month.left, quotaReserved: 0 });
  expect((await chandler('plan', 'eth-ethereum', '--start', '-30d')).out).toMatch(
    /^ {2}quota left +\d+ this month \(no service runs: nothing is reserved\)$/m,
  );
});

test('a service, and the commands about its schedules, say that the schedules do not fit the month', async () => {
  const arithmetic = /the schedules alone need \d+ requests in .*, but the limit is 20 \(plan enterprise\)/;
  const service = await chandler('service', '--role', 'scheduler');
  expect(service.code).toBe(2);
  expect(service.err).toMatch(arithmetic);
  const schedule = await chandler('schedule');
  expect(schedule.code).toBe(2);
  expect(schedule.err).toMatch(arithmetic);
});
