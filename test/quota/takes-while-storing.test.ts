/** The ledger as a command uses it: a request is counted at once, however busy the pool is. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type App, openApp } from '../../src/app.ts';
import { quotaOf } from '../../src/budget.ts';
import { systemClock } from '../../src/clock.ts';
import { parseConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let app: App;
beforeEach(async () => {
  database = await createTestDatabase();
  const config = parseConfig({ DATABASE_URL: database.url });
  if ('problems' in config) throw new Error(config.problems.join('\n'));
  const log = createLog({ level: 'silent', write: () => undefined });
  app = await openApp(config.ok, { clock: systemClock, log, schema: 'require', connections: 1 });
});
afterEach(async () => {
  await app.close();
  await database.drop();
});

test('a take, and the look at tracked series that it needs, wait for no connection that stores answers', async () => {
  const limits = { perMonth: 20_000, perDay: null, perSecond: 10 };
  const quota = quotaOf(app, { accountId: 'free@test', limits, plan: 'free' });
  const storing = await app.database.sql.reserve();
  try {
    const take = quota.take({ class: 'backfill', name: 'backfill 1' });
    const soon = systemClock.sleep(10_000).then(() => ({ kind: 'it waits for the pool' }));
    expect(await Promise.race([take, soon])).toMatchObject({ kind: 'granted' });
  } finally {
    storing.release();
  }
});
