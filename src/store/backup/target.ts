/** What a restore checks in its target database, and what it changes there besides pg_restore. */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { account } from '../schema/accounts.ts';
import { instance } from '../schema/service.ts';
import { hasAuditLog } from '../work/audit.ts';
import { BACKED_UP } from './source.ts';

/** The schemas of a backup that this database has already. */
type Occupation = {
  readonly database: string;
  /** Schemas with any object. */
  readonly taken: readonly string[];
  /** Schemas that exist without any object. */
  readonly empty: readonly string[];
  /** The number of series of the warehouse; null when there is no warehouse. */
  readonly warehouse: { readonly series: number } | null;
};

export async function readOccupation(sql: SqlOrTransaction): Promise<Occupation> {
  const schemas = await sql<{ name: string; isEmpty: boolean }[]>`
    select n.nspname as name, not exists (select from pg_class c where c.relnamespace = n.oid)
      and not exists (select from pg_proc p where p.pronamespace = n.oid)
      and not exists (select from pg_type t where t.typnamespace = n.oid) as is_empty
    from pg_namespace n where n.nspname = any(${[...BACKED_UP]}::text[]) order by 1`;
  const [found] = await sql<{ database: string; isReadable: boolean }[]>`
    select current_database() as database, coalesce(has_table_privilege(to_regclass('market.series'), 'select')
      and has_table_privilege(to_regclass('ops.fetch'), 'select'), false) as is_readable`;
  const names = (isEmpty: boolean) => schemas.filter((schema) => schema.isEmpty === isEmpty).map(({ name }) => name);
  const [warehouse = null] = found!.isReadable
    ? await sql<NonNullable<Occupation['warehouse']>[]>`
        select count(*) as series from market.series`
    : [];
  return { database: found!.database, taken: names(false), empty: names(true), warehouse };
}

/** The roles of `names` that the server does not have. */
export async function missingRoles(sql: SqlOrTransaction, names: readonly string[]): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select name from unnest(${[...names]}::text[]) name where not exists (select from pg_roles where rolname = name) order by 1`;
  return rows.map(({ name }) => name);
}

/** Creates a role that owns nothing and cannot log in. The restore grants rights to it. */
export async function makeRole(sql: SqlOrTransaction, name: string): Promise<void> {
  await sql`create role ${sql(name)} nologin`;
}

/** Analyzes all tables, so that Postgres plans the first statements on the restored tables for their real sizes. */
export async function analyzeAll(sql: SqlOrTransaction): Promise<void> {
  const rows = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = any(${[...BACKED_UP]}::text[]) order by 1`;
  for (const { name } of rows) await sql.unsafe(`analyze ${name}`);
}

/** Deletes when each account was last checked: requests were sent since the backup, so the next session must first check it. */
export async function forgetAccountChecks(sql: Sql): Promise<void> {
  await tables(sql).update(account).set({ checkedAt: null });
}

type UnprovedRestore = { readonly at: Instant; readonly actor: string; readonly command: string };

/** The last restore into this database, if it loaded everything but was killed or failed before its proof; else null. */
export async function readUnprovedRestore(sql: SqlOrTransaction): Promise<UnprovedRestore | null> {
  if (!(await hasAuditLog(sql))) return null;
  const [row] = await sql<(UnprovedRestore & { isProved: boolean })[]>`
    select at, actor, command, ended_at is not null and (message is null or message ~ '^ended with exit code ') as is_proved
    from ops.audit where command ~ '^restore ' order by id desc limit 1`;
  return row === undefined || row.isProved ? null : row;
}

const RAN_AT_BACKUP = 'had not ended when the backup was made';

/** A completed restore, and when its backup was begun; null when the log does not contain that. */
export type Restore = { readonly at: Instant; readonly backupAt: Instant | null };

/** The last restore after `at` of a backup from before `at`: data stored at that time is missing here. Null when the log has none. */
export async function readRestoreOver(sql: SqlOrTransaction, at: Instant): Promise<Restore | null> {
  if (!(await hasAuditLog(sql))) return null;
  const [row] = await sql<Restore[]>`
    select r.at, b.at as backup_at from ops.audit r
    left join lateral (
      select at from ops.audit b where b.id < r.id and b.command ~ '^backup ' and b.message = ${RAN_AT_BACKUP} order by b.id desc limit 1
    ) b on true
    where r.command ~ '^restore ' and r.ended_at is not null and r.at > ${at}::timestamptz and coalesce(b.at < ${at}::timestamptz, true)
    order by r.id desc limit 1`;
  return row ?? null;
}

/** Ends the log entries of commands that ran during the backup, and of the backup itself: this database can never record their end. */
export async function endCommandsOfBackup(sql: SqlOrTransaction, now: Instant): Promise<void> {
  await sql`update ops.audit set ended_at = ${now}, message = ${RAN_AT_BACKUP} where ended_at is null`;
}

/** Deletes the services of the database that was backed up, because they do not run on this one. */
export async function forgetInstances(sql: Sql): Promise<void> {
  await tables(sql).delete(instance);
}
