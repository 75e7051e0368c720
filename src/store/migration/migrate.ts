/** Brings a database to the schema this build knows, and refuses one that a newer build has already changed. */
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
  refuseForeign,
  refuseUnusable,
  type SchemaOwnership,
} from './schema-ownership.ts';

/** `when` orders migrations: drizzle applies those later than the latest one applied. */
type JournalEntry = { readonly tag: string; readonly when: number };

// The same number of steps up from src/ and from dist/.
const FOLDER = fileURLToPath(new URL('../../../migrations', import.meta.url));

/**
 * Applies what is missing, in one transaction, one process at a time. Safe to run twice.
 * Returns the names of the migrations applied now.
 * @throws StoreError, and changes nothing, when another build made the database, the schemas are somebody else's, or the
 * user may not make or change them.
 */
export async function migrate({ sql, url }: Pick<Database, 'sql' | 'url'>): Promise<readonly string[]> {
  const journal = readJournal();
  try {
    const seen = await missingOf(sql, journal);
    const isDone = seen.missing.length === 0 && !isUnfinished(seen.applied, journal);
    // A user that may not change the schema need not, when there is nothing to change.
    if (isDone && seen.ownership.ops?.owned === false) return [];
    if (!isDone) {
      refuseChange(seen.ownership);
      await prepareTables(sql);
    }
    return (await sql.begin(async (tx) => {
      // This one waits for the migrations, which have a connection of their own.
      await tx`select set_config('idle_in_transaction_session_timeout', '0', true)`;
      await takeLock(tx, 'migrations');
      const { missing } = await missingOf(tx, journal);
      if (missing.length > 0)
        await runMigrations(url).catch((error: unknown) => {
          throw explainDatabaseError(error, url) ?? explainMigration(error, journal);
        });
      // Drizzle keeps a hash and a time; the name is for the reader, and for older builds that meet this database.
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

/** What two sessions get that make the same thing at once, although each says `if not exists`; 42710 names the row type of a table. */
const MADE_MEANWHILE = new Set(['23505', '42P06', '42P07', '42701', '42710']);
/** Other processes can make each of these few things only once. */
const MOST_ATTEMPTS = 20;

/** What must be there before the first migration: drizzle's table, as drizzle would make it, with a name for each migration; and our locks. */
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

/** By drizzle, on a client of its own: it changes how its client reads dates. Loaded when needed, which is seldom. */
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

/** A statement of a migration that Postgres refuses: all of them are undone then. The migration's name, and Postgres' reason. */
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
 * True when there is nothing of ours in this database yet. Also true when all migrations are applied, but not their names and the rights: the process
 * that applied them was killed, or is about to write both. @throws StoreError when the schemas there are somebody else's.
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

/** @throws StoreError when the database was not migrated yet, only in part, by another build, or this user may not read it. */
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

/** Names and rights are written after the migrations, in one transaction: where the names are missing, so are the rights. */
function isUnfinished(applied: readonly Applied[], journal: readonly JournalEntry[]): boolean {
  const unnamed = new Set(applied.filter(({ name }) => name === null).map(({ when }) => when));
  return applied.length === journal.length && journal.some(({ when }) => unnamed.has(when));
}

export type Applied = { readonly when: number; readonly name: string | null };

/** Can this build bring what these migrations have made to its schema? @throws StoreError about `what` when it cannot */
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
