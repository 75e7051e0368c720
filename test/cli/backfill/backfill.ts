/** Backfills and plans against a simulated upstream, at noon. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createJumpingClock } from '../../support/jumping-clock.ts';
import { schedulerSeen } from '../../support/scheduler-seen.ts';

// Noon, so that no quota window ends while a test runs.
export const clock = createJumpingClock({ speed: 1, startAt: Date.UTC(2026, 10, 3, 12) });
/** A service ran recently, so its schedules have their reservation. */
export const scheduled = () =>
  schedulerSeen(database, { accountId: `anonymous@${new URL(server.url).host}`, at: clock.now() });
export const chandler = (argv: readonly string[], more: Record<string, string>, columns?: number) =>
  runCommand(argv, { env: { ...env, ...more }, clock, columns });

let server: Listening;
export let database: TestDatabase;
export let env: Record<string, string>;

export const onError = (error: unknown) => {
  throw error;
};

export function useUpstream(): void {
  beforeAll(async () => {
    server = await listen(createSimulator({ market: 'made-up', clock, unlimited: true, onError }).fetch, {
      host: '127.0.0.1',
      port: 0,
    });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    database = await createTestDatabase();
    env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${server.url}/v1` };
  });
  afterEach(() => database.drop());
}
