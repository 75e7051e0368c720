/** Services of one database that keep the queue in different places. */
import { expect, onTestFinished, test } from 'vitest';
import type { Role } from '../../../src/background/health/service-status.ts';
import { describeSettings } from '../../../src/background/service/recorded-start.ts';
import { beginAudit, OWNER } from '../../../src/store/work/audit.ts';
import { renewInstance } from '../../../src/store/work/instance.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';

test('doctor names services with different queues, because each takes the chunks of the others for lost', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const now = Date.now();
  const record = async (owner: string, roles: readonly Role[], redisUrl: string | null) => {
    const env = redisUrl === null ? {} : { REDIS_URL: redisUrl };
    const settings = { ...describeSettings(env, 'salt'), [OWNER]: owner };
    await renewInstance(database.sql, { owner, roles, startedAt: now, heartbeatAt: now + 60_000 });
    await beginAudit(database.sql, { at: now, actor: 'me@here', command: 'service', settings });
  };
  const doctor = async () => {
    const { out } = await runCommand(['doctor', '--json'], { env: { DATABASE_URL: database.url } });
    return (JSON.parse(out) as { name: string }[]).filter(({ name }) => name === 'queue');
  };
  await record('a:1', ['scheduler'], 'redis://:secret@redis:6379/0');
  await record('b:2', ['worker'], 'redis://:secret@10.0.0.1/');
  // It sends no requests, and needs no queue.
  await record('c:3', ['http'], null);
  expect(await doctor()).toEqual([]);
  await record('d:4', ['worker'], null);
  await record('e:5', ['worker'], 'redis://redis:6379/1');
  expect(await doctor()).toEqual([
    {
      ...{ name: 'queue', state: 'warn' },
      found:
        'the queue is in Redis, database 0 for a:1, b:2; in Postgres for d:4; in Redis, database 1 for e:5: each takes the chunks of the others for lost, and requests them again',
      fix: 'set the same REDIS_URL for all services of this database, or leave it out everywhere, and restart them',
    },
  ]);
});
