/** The tables of BullMQ on Postgres. */
import {
  assertSchemaCompatibility,
  createPostgresBackend,
  LATEST_SCHEMA_VERSION,
  runMigrations,
  SchemaMigrationRequiredError,
} from 'bullmq';
import type pg from 'pg';
import { pausing } from './pausing.ts';

/** Migrates the tables to this version of BullMQ, if needed only: a migration begins with an advisory lock, which any database user could hold. */
export async function migrateQueue(client: pg.PoolClient): Promise<void> {
  if (!(await isMigrated(client))) await runMigrations(client);
}

async function isMigrated(client: pg.PoolClient): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client)) >= LATEST_SCHEMA_VERSION;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false;
    throw error;
  }
}

/**
 * For queues and workers whose tables `migrateQueue` has already migrated. BullMQ alone would check the tables again for each queue and worker, and
 * would never forget a failed check. A worker that is created while the database is away, or the pool is full, would then request jobs without a
 * pause, and no timer of the process would fire any more.
 */
export const createMigratedBackend: typeof createPostgresBackend = (...args) => {
  const backend = pausing(createPostgresBackend)(...args);
  backend.connection.waitUntilReady = async () => undefined;
  return backend;
};
