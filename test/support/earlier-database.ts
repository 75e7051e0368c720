/** A database as the previous build leaves it: all migrations except the newest are applied. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { createClient } from '../../src/store/connection/connect.ts';
import { createEmptyDatabase, type TestDatabase } from './database.ts';

const MIGRATIONS = new URL('../../migrations', import.meta.url);

/** Call `drop` of the database. `newest`: the name of the migration that is not applied. */
export async function createEarlierDatabase(): Promise<{ readonly database: TestDatabase; readonly newest: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'chandler-migrations-'));
  const database = await createEmptyDatabase();
  const client = createClient({ url: database.url, max: 1, columns: 'as named' });
  try {
    cpSync(MIGRATIONS, folder, { recursive: true });
    const file = path.join(folder, 'meta', '_journal.json');
    const journal = JSON.parse(readFileSync(file, 'utf8')) as { entries: { tag: string }[] };
    const newest = journal.entries.pop()!.tag;
    writeFileSync(file, JSON.stringify(journal));
    // What exists before the first migration (src/store/migration/migrate.ts).
    await client`create schema ops`;
    await client`create table ops.lock (name text primary key)`;
    await migrate(drizzle(client), {
      migrationsFolder: folder,
      migrationsSchema: 'ops',
      migrationsTable: 'migration',
    });
    return { database, newest };
  } catch (error) {
    await database.drop();
    throw error;
  } finally {
    await client.end({ timeout: 5 });
    rmSync(folder, { recursive: true, force: true });
  }
}
