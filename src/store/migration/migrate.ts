/** Migrates a database to the schema of this build. Refuses a database that a newer build has already migrated. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import { createClient, type Database, type Sql, type SqlOrTransaction } from '../connection/connect.ts';
import { explainWithHolder, takeLock } from '../connection/lock.ts';
import { explainDatabaseError, StoreError } from '../connection/store-error.ts';
import { refuseOldMigrations } from './old-migrations.ts';
import {
  readOwnership,
  refuseChange,
  refuseEncoding,
  refuseForeign,
  refuseUnusable,
  type SchemaOwnership,
} from './schema-ownership.ts';

/** `when` orders migrations: drizzle applies those that are later than the latest applied one. */
type JournalEntry = { readonly tag: string; readonly when: number };

// The number of steps up is the same from src/ and from dist/.
const FOLDER = fileURLToPath(new URL('../../../migrations', import.meta.url));

/**
 * Applies the missing migrations in one transaction, in one process at a time. Safe to run twice.
 * Returns the names of the migrations that it applied.
 * @throws StoreError, and changes nothing, when another build made the database, when the schemas are not Chandler's, or when
 * the user may not create or change them.
 */
export async function migrate({ sql, url }: Pick<Database, 'sql' | 'url'>): Promise<readonly string[]> {
  const journal = readJournal();
  try {
    const seen = await missingOf(sql, journal);
    const isDone = seen.missing.length === 0 && !isUnfinished(seen.applied, journal);
    // If there is nothing to change, the user does not need the right to change the schema.
    if (isDone && seen.ownership.ops?.owned === false) return [];
    if (!isDone) {
      refuseEncoding(seen.ownership);
      refuseChange(seen.ownership);
      await prepareTables(sql);
    }
    return (await sql.begin(async (tx) => {
      // This session is idle while the migrations run on a connection of their own.
      await tx`select set_config('idle_in_transaction_session_timeout', '0', true)`;
      await takeLock(tx, 'migrations');
      const { missing } = await missingOf(tx, journal);
      if (missing.length > 0)
        await runMigrations(url).catch((error: unknown) => {
          throw explainDatabaseError(error, url) ?? explainMigration(error, journal);
        });
      // Drizzle stores a hash and a time. The name is for the reader, and for older builds that open this database.
      await tx`
        update ops.migration m set name = j.tag
        from unnest(${journal.map((e) => e.tag)}::text[], ${journal.map((e) => e.when)}::bigint[]) j(tag, at)
        where m.created_at = j.at and m.name is distinct from j.tag`;
      await tx`select ops.admit_analyst(), ops.admit_server(), ops.admit_no_harm(), ops.admit_sql(), ops.keep_utc()`;
      return missing;
    })) as readonly string[];
  } catch (error) {
    throw (await explainWithHolder(error, { sql, url })) ?? error;
  }
}

async function missingOf(sql: SqlOrTransaction, journal: readonly JournalEntry[]) {
  const ownership = await readOwnership(sql);
  const applied = await appliedMigrations(sql, ownership);
  refuseOtherBuilds(applied, journal);
  const known = new Set(applied.map((row) => row.when));
  return { ownership, applied, missing: journal.filter((entry) => !known.has(entry.when)).map((entry) => entry.tag) };
}

/** Errors when two sessions create the same thing at once, although both use `if not exists`. 42710 is about the row type of a table. */
const MADE_MEANWHILE = new Set(['23505', '42P06', '42P07', '42701', '42710']);
/** More than can be needed: each failure means that another process has created one of these few things, which can happen only once. */
const MOST_ATTEMPTS = 20;

/** Creates what the first migration needs: drizzle's table, as drizzle would create it but with a name per migration, and the table of locks. */
async function prepareTables(sql: Sql): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await sql`create schema if not exists ops`;
      await sql`create table if not exists ops.migration (id serial primary key, hash text not null, created_at bigint)`;
      await sql`alter table ops.migration add column if not exists name text`;
      await sql`comment on column ops.migration.name is 'Name of the migration.'`;
      await sql`create table if not exists ops.lock (name text primary key)`;
      return;
    } catch (error) {
      const isMadeMeanwhile = MADE_MEANWHILE.has((error as { readonly code?: string }).code ?? '');
      if (!isMadeMeanwhile || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

/** Runs drizzle on a client of its own, because it changes how its client reads dates. Drizzle is loaded only when needed, which is rare. */
async function runMigrations(url: string): Promise<void> {
  const [{ drizzle }, migrator] = await Promise.all([
    import('drizzle-orm/postgres-js'),
    import('drizzle-orm/postgres-js/migrator'),
  ]);
  const client = createClient({ url, max: 1, columns: 'as named' });
  try {
    await migrator.migrate(drizzle(client), {
      migrationsFolder: FOLDER,
      migrationsSchema: 'ops',
      migrationsTable: 'migration',
    });
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** Explains a statement of a migration that Postgres rejects: names the migration and the reason. All migrations of the run are then undone. */
function explainMigration(error: unknown, journal: readonly JournalEntry[]): unknown {
  if (!(error instanceof DrizzleQueryError) || !(error.cause instanceof Error)) return error;
  const { query, cause } = error;
  const failed = journal.find(({ tag }) => readFileSync(`${FOLDER}/${tag}.sql`, 'utf8').includes(query));
  const name = failed === undefined ? '' : ` ${failed.tag}`;
  return new StoreError(
    `the migration${name} fails, so nothing was changed: ${cause.message}`,
    'remove what stands in its way in the schemas market and ops, and run: chandler migrate',
    error,
  );
}

/**
 * True when this database contains nothing of ours yet. Also true when all migrations are applied, but their names and the rights are not written:
 * the process that applied them was killed, or is about to write both. @throws StoreError when the schemas are not Chandler's.
 */
export async function isUnmigrated({ sql, url }: Pick<Database, 'sql' | 'url'>): Promise<boolean> {
  try {
    const ownership = await readOwnership(sql);
    refuseForeign(ownership);
    if (!ownership.ours) return true;
    return isUnfinished(await appliedMigrations(sql, ownership), readJournal());
  } catch (error) {
    throw (await explainWithHolder(error, { sql, url })) ?? error;
  }
}

/** @throws StoreError when the database is not migrated, or only in part, or by another build, or when this user may not read it. */
export async function checkSchema({ sql, url }: Pick<Database, 'sql' | 'url'>): Promise<void> {
  const journal = readJournal();
  let applied: Applied[];
  try {
    applied = await appliedMigrations(sql, await readOwnership(sql));
  } catch (error) {
    throw (await explainWithHolder(error, { sql, url })) ?? error;
  }
  refuseOtherBuilds(applied, journal);
  const missing = journal.find((entry) => !applied.some((row) => row.when === entry.when));
  if (isUnfinished(applied, journal))
    throw new StoreError(
      'the last migration is still under way, or was cut short',
      'wait a moment, or run: chandler migrate',
    );
  if (!missing) return;
  const state = applied.length === 0 ? 'this database is empty' : `this database lacks migration ${missing.tag}`;
  throw new StoreError(state, 'run: chandler migrate');
}

/** Names and rights are written after the migrations, in one transaction. So if the names are missing, the rights are missing too. */
function isUnfinished(applied: readonly Applied[], journal: readonly JournalEntry[]): boolean {
  const unnamed = new Set(applied.filter(({ name }) => name === null).map(({ when }) => when));
  return applied.length === journal.length && journal.some(({ when }) => unnamed.has(when));
}

export type Applied = { readonly when: number; readonly name: string | null };

/** Checks that this build can migrate a database to which these migrations were applied. @throws StoreError about `what` when it cannot */
export function checkMigrations(applied: readonly Applied[], what: string): void {
  refuseOtherBuilds(applied, readJournal(), what);
}

async function appliedMigrations(sql: SqlOrTransaction, ownership: SchemaOwnership): Promise<Applied[]> {
  refuseForeign(ownership);
  refuseUnusable(ownership);
  if (!ownership.ours) return [];
  const [column] = await sql<{ named: boolean }[]>`
    select exists (
      select from pg_attribute where attrelid = 'ops.migration'::regclass and attname = 'name' and not attisdropped
    ) as named`;
  return sql<Applied[]>`
    select created_at as when, ${column!.named ? sql`name` : sql`null`} as name from ops.migration order by created_at`;
}

function refuseOtherBuilds(
  applied: readonly Applied[],
  journal: readonly JournalEntry[],
  what = 'this database',
): void {
  refuseOldMigrations(applied.map((row) => row.when));
  const known = new Set(journal.map((entry) => entry.when));
  const newer = applied.findLast((row) => !known.has(row.when));
  if (!newer) return;
  const name = newer.name ?? String(applied.indexOf(newer)).padStart(4, '0');
  throw new StoreError(`${what} was migrated by a newer chandler (migration ${name})`, 'upgrade chandler');
}

function readJournal(): readonly JournalEntry[] {
  const journal: { entries: JournalEntry[] } = JSON.parse(readFileSync(`${FOLDER}/meta/_journal.json`, 'utf8'));
  return journal.entries;
}
