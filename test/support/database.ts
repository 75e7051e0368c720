/** Creates migrated databases in a few tens of milliseconds, as clones of the template that the run has made. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { createClient, type Database, openDatabase, type Sql } from '../../src/store/connection/connect.ts';

export type TestDatabase = Database & {
  /** Closes the connections and removes the database, even while other processes are connected to it. */
  drop(): Promise<void>;
};

/** A clone of the migrated template. Call `drop` in `afterAll` (or `afterEach`). */
export async function createTestDatabase(options: { readonly max?: number } = {}): Promise<TestDatabase> {
  const { template } = inject('testDatabase');
  return createDatabase(options, template);
}

/** A database without migrations. */
export async function createEmptyDatabase(options: { readonly max?: number } = {}): Promise<TestDatabase> {
  return createDatabase(options, 'template0');
}

/** A filled database of which each test gets a copy. */
export type FilledDatabase = {
  copy(options?: { readonly max?: number }): Promise<TestDatabase>;
  drop(): Promise<void>;
};

/** Fills a database once, instead of once for each test. Call `drop` in `afterAll`. */
export async function fillDatabase(fill: (database: TestDatabase) => Promise<void>): Promise<FilledDatabase> {
  const database = await createTestDatabase({ max: 4 });
  try {
    await fill(database);
    // Postgres does not copy a database with connections.
    await database.close();
  } catch (error) {
    await database.drop();
    throw error;
  }
  const name = new URL(database.url).pathname.slice(1);
  return { copy: (options = {}) => createDatabase(options, name), drop: database.drop };
}

/** A superuser's address on the run's server, for tests that need more than one database. */
export function testAdminUrl(): string {
  return inject('testDatabase').adminUrl;
}

/** The run's Redis, or null when there is none (the run has reported it; in CI it has failed). Each suite should use its own key prefix. */
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

/** Stays open until the worker ends: a session for each statement would cost a third of the time of creating and dropping a database. */
let admin: Sql | null = null;

async function asAdmin(adminUrl: string, statement: string): Promise<void> {
  admin ??= createClient({ url: adminUrl, max: 4, applicationName: 'chandler test admin' });
  await admin.unsafe(statement);
}
