/** What an operator should know is read while the database may fail. */
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openApp } from '../../../src/app.ts';
import { readOperatorState } from '../../../src/background/operator/operator-state.ts';
import { systemClock } from '../../../src/clock.ts';
import { parseConfig } from '../../../src/config.ts';
import { createLog } from '../../../src/log.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

test('a database that fails meanwhile rejects the read, and nothing else: another rejection would end the process', async () => {
  const config = parseConfig({ DATABASE_URL: database.url, CHANDLER_ATTEST_DIR: tmpdir() });
  if (!('ok' in config)) throw new Error(config.problems.join('\n'));
  const log = createLog({ level: 'silent', write: () => undefined });
  const app = await openApp(config.ok, { clock: systemClock, log, schema: 'require' });
  onTestFinished(() => app.close());
  await readOperatorState(app, systemClock.now());
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  onTestFinished(() => void process.off('unhandledRejection', onUnhandled));
  await database.sql`alter table ops.watch rename to watch_gone`;
  await expect(readOperatorState(app, systemClock.now())).rejects.toThrow('ops.watch');
  // Node reports an unhandled rejection after the promises of this turn.
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});
