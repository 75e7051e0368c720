/** A warehouse whose log of changes is read, and a simulated upstream. */
import { hostname, userInfo } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine } from '../../../src/cli/shell/audited.ts';
import { systemClock } from '../../../src/clock.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

export const ME = `${userInfo().username}@${hostname()}`;

export let database: TestDatabase;
let upstream: Listening;

export function useWarehouse(): void {
  beforeEach(async () => {
    const onError = (error: unknown) => {
      throw error;
    };
    const simulator = createSimulator({ market: 'made-up', coins: 3, clock: systemClock, unlimited: true, onError });
    upstream = await listen(simulator.fetch, { host: '127.0.0.1', port: 0 });
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await database.drop();
    await upstream.close();
  });
}

/** Replaces the current database by another. */
export function goOnIn(next: TestDatabase): void {
  database = next;
}

export const env = () => ({
  DATABASE_URL: database.url,
  CHANDLER_BASE_URL: `${upstream.url}/v1`,
  CHANDLER_PLAN: 'enterprise',
});
export const chandler = (...argv: string[]) => runCommand(argv, { env: env() });
export const log = async (...argv: string[]) => JSON.parse((await chandler('log', '--json', ...argv)).out);

export const commands = async () =>
  (await log()).map(({ command, message }: { command: string; message: string | null }) => [command, message]);
/** One track rule and an empty log. */
export const begin = async () => {
  await chandler('track', 'add', 'btc-bitcoin', '--interval', '24h');
  await database.sql`delete from ops.audit`;
};

export function testChanges(statements: readonly string[]): void {
  test('that changes something is recorded', async () => {
    for (const statement of statements) {
      expect(await chandler('sql', statement), statement).toMatchObject({ code: 0, err: '' });
      expect(await commands(), statement).toEqual([[commandLine(['sql', statement]), null]]);
      expect(await log()).toMatchObject([{ actor: ME, endedAt: expect.any(String) }]);
      await database.sql`drop table if exists market.mine`;
      await begin();
    }
  });
}
