/**
 * One Postgres (and one Redis, if available) for the whole run: `TEST_DATABASE_URL` / `TEST_REDIS_URL`, else a container if Docker answers,
 * else the embedded server / a Redis on the PATH. Workers get the addresses through vitest's `inject`.
 */
import { randomUUID } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { openQueueHost } from '../../src/ingest/queue/chunk-queue.ts';
import { openDatabase } from '../../src/store/connection/connect.ts';
import { ensureDatabase } from '../../src/store/embedded/embedded.ts';
import { migrate } from '../../src/store/migration/migrate.ts';
import { startPostgres } from './postgres-server.ts';
import { startRedis } from './redis-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's address; `testDatabase.template` on it is migrated and is only cloned. */
    testDatabase: { readonly adminUrl: string; readonly template: string; readonly strategy: CloneStrategy };
    /** Null when there is no Redis. */
    testRedisUrl: string | null;
  }
}

/** Copying files takes less than half the work, but starts with a checkpoint. If that waits for a disk, all tests wait for it. */
export type CloneStrategy = 'file_copy' | 'wal_log';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Redis first: if it is required and missing, nothing else has been started yet.
  const redis = await startRedis();
  const postgres = await startPostgres({ isDurable: project.name === 'bench' }).catch(async (error: unknown) => {
    await redis?.stop();
    throw error;
  });
  const template = `chandler_template_${randomUUID().slice(0, 8)}`;
  const stop = async () => {
    await postgres.dropDatabase(template);
    await Promise.all([postgres.stop(), redis?.stop()]);
  };
  let strategy: CloneStrategy;
  try {
    const url = await ensureDatabase(postgres.adminUrl, template);
    const database = await openDatabase({ url, max: 2 });
    try {
      await migrate(database);
      // The first queue on a database creates tables. In the template that happens once, instead of once per test.
      const queues = await openQueueHost({ engine: { kind: 'postgres', url }, onError: () => undefined });
      await queues.close();
      const [row] = await database.sql<{ fsync: string }[]>`select current_setting('fsync') as fsync`;
      strategy = row?.fsync === 'off' ? 'file_copy' : 'wal_log';
    } finally {
      await database.close();
    }
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('testDatabase', { adminUrl: postgres.adminUrl, template, strategy });
  project.provide('testRedisUrl', redis?.url ?? null);
  return stop;
}
