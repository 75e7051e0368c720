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

/** Brings them to this version. Migrating begins with an advisory lock, which anybody who may log in could hold: not where nothing is to do. */
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
 * For queues and workers on tables that `migrateQueue` has brought to this version. By itself, BullMQ looks at the tables again for each queue and
 * worker, and remembers for ever when it could not: a worker that is made while the database is away, or the pool is full, then asks for
 * jobs again and again without a pause, and no timer of the process fires any more.
 */
export const createMigratedBackend: typeof createPostgresBackend = (...args) => {
  const backend = pausing(createPostgresBackend)(...args);
  backend.connection.waitUntilReady = async () => undefined;
  return backend;
};
