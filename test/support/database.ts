/** A migrated database of its own for whoever asks, in a few tens of milliseconds: a clone of the run's template. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { createClient, type Database, openDatabase } from '../../src/store/connection/connect.ts';

export type TestDatabase = Database & {
  /** Closes the connections and removes the database; also while other processes are still connected to it. */
  drop(): Promise<void>;
};

/** A clone of the migrated template. Call `drop` in `afterAll` (or `afterEach`). */
export async function createTestDatabase(options: { readonly max?: number } = {}): Promise<TestDatabase> {
  const { template } = inject('testDatabase');
  return createDatabase(options, template);
}

/** A database in which nothing has been migrated yet. */
export async function createEmptyDatabase(options: { readonly max?: number } = {}): Promise<TestDatabase> {
  return createDatabase(options, 'template0');
}

/** What tests begin with that each change their own copy of it. */
export type FilledDatabase = {
  copy(options?: { readonly max?: number }): Promise<TestDatabase>;
  drop(): Promise<void>;
};

/** Filled once, instead of once for each test. Call `drop` in `afterAll`. */
export async function fillDatabase(fill: (database: TestDatabase) => Promise<void>): Promise<FilledDatabase> {
  const database = await createTestDatabase({ max: 4 });
  try {
    await fill(database);
    // Postgres copies no database that somebody is connected to.
    await database.close();
  } catch (error) {
    await database.drop();
    throw error;
  }
  const name = new URL(database.url).pathname.slice(1);
  return { copy: (options = {}) => createDatabase(options, name), drop: database.drop };
}

/** A superuser's address on the run's server, for what needs more than one database. */
export function testAdminUrl(): string {
  return inject('testDatabase').adminUrl;
}

/** The run's Redis, or null when there is none here (the run has said so; in CI it has failed). Each suite should use a key prefix of its own. */
export function testRedisUrl(): string | null {
  return inject('testRedisUrl');
}

async function createDatabase({ max = 10 }: { readonly max?: number }, template: string): Promise<TestDatabase> {
  const { adminUrl, strategy } = inject('testDatabase');
  const name = `chandler_test_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
  await asAdmin(adminUrl, `create database ${name} template ${template} strategy ${strategy}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const database = await openDatabase({ url: url.href, max, applicationName: 'chandler test' });
  return {
    ...database,
    drop: async () => {
      await database.close();
      await asAdmin(adminUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

async function asAdmin(adminUrl: string, statement: string): Promise<void> {
  const sql = createClient({ url: adminUrl, max: 1 });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
