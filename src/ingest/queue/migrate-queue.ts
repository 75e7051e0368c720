/** The tables of BullMQ on Postgres. */
import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations, SchemaMigrationRequiredError } from 'bullmq';
import type pg from 'pg';

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
