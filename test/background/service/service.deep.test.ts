/** The service as its operator starts it: what it reports while the queue, the database or a lock keeps it from its work. */
import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { accountIdOf } from '../../../src/ingest/request/account.ts';
import { testRedisUrl } from '../../support/database.ts';
import { createRelay } from '../../support/relay.ts';
import { schedulerSeen } from '../../support/scheduler-seen.ts';
import { setScene, testAway, testStartedWhileDown, useServer } from './service.ts';

useServer();

describe('the service', { concurrent: true }, () => {
  testAway('http', 'the database');
  if (testRedisUrl() !== null) testAway('all', 'the queue');

  testStartedWhileDown('the database');

  test('names the session that holds a lock for which it waits, and is not ready until then', async (context) => {
    const { database, start } = await setScene(context);
    const service = start();
    await service.line(/^ready/);
    const stands = (status: number) =>
      vi.waitFor(async () => expect(await service.get('/ready')).toMatchObject({ status }), { timeout: 60_000 });
    await stands(200);
    const pid = await database.sql.begin(async (tx) => {
      const [me] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await tx`lock table ops.backfill in access exclusive mode`;
      await stands(503);
      return me!.pid;
    });
    const { msg } = await service.line(/^a lock in the database/);
    expect(msg).toContain(`session ${pid} (user '`);
    expect(msg).toContain(`select pg_terminate_backend(${pid})`);
    await stands(200);
    expect(await service.line(/^a lock in the database recovered/)).toBeDefined();
  });

  test('with the role http alone reports the quota from the database, and no quota while the plan is unknown', async (context) => {
    const { database, env, start } = await setScene(context);
    const accountId = accountIdOf(null, env.CHANDLER_BASE_URL!);
    await database.sql`
      insert into ops.quota (account_id, month_start, month_spent, limited_until, limited_message)
      values (${accountId}, date_trunc('month', now()), 1234, now() + interval '1 hour', 'too many requests')`;
    // Another process of the account has the scheduler, or had it until a moment ago.
    await schedulerSeen(database, { accountId, at: systemClock.now() });
    const http = start(['--role', 'http'], { CHANDLER_MONTHLY_REQUESTS: '5000' });
    await http.line(/^ready/);
    const { text } = await http.get('/metrics');
    expect(text).toMatch(/^chandler_quota_limit_requests\{window="month"\} 5000$/m);
    expect(text).toMatch(/^chandler_quota_left_requests\{window="month"\} 3766$/m);
    expect(text).toMatch(/^chandler_quota_reserved_requests\{window="month"\} [1-9]/m);
    expect(text).toMatch(/^chandler_hold_until_timestamp_seconds [1-9]/m);
    expect(text).toMatch(/^chandler_pace_requests_per_second [1-9]/m);
    // There is a key, and its plan has not been requested yet.
    const unknown = start(['--role', 'http'], { CHANDLER_API_KEY: 'nobody-knows', CHANDLER_PLAN: '' });
    await unknown.line(/^ready/);
    const nothing = (await unknown.get('/metrics')).text;
    expect(nothing).toMatch(/^chandler_revisions 0$/m);
    expect(nothing).not.toMatch(/^chandler_(hold|pace|quota|queue)_/m);
  });

  test.runIf(testRedisUrl() !== null)('reports what the database knows while Redis is unavailable', async (context) => {
    const { start } = await setScene(context);
    const relay = await createRelay(testRedisUrl()!);
    try {
      const service = start([], { REDIS_URL: relay.url });
      await service.line(/^ready/);
      expect((await service.get('/metrics')).text).toMatch(/^chandler_queue_jobs\{queue="backfill"\}/m);
      relay.cut();
      // The service serves a result for a second after it was read.
      await vi.waitFor(async () => expect((await service.get('/metrics')).text).not.toMatch(/^chandler_queue_jobs/m), {
        timeout: 60_000,
      });
      const { text } = await service.get('/metrics');
      expect(text).toMatch(/^chandler_quota_left_requests\{window="month"\} \d/m);
      expect(text).toMatch(/^chandler_revisions 0$/m);
      await service.stop();
    } finally {
      await relay.close();
    }
  });
});
