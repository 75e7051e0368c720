/** What a restore asks of the database it fills, and what it changes there beside pg_restore. */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { account } from '../schema/accounts.ts';
import { instance } from '../schema/service.ts';
import { hasAuditLog } from '../work/audit.ts';
import { BACKED_UP } from './source.ts';

/** What this database has already of the schemas of a backup. */
export type Occupation = {
  readonly database: string;
  /** Schemas that hold something. */
  readonly taken: readonly string[];
  /** Schemas that somebody has made, and that hold nothing. */
  readonly empty: readonly string[];
  /** Of a warehouse: its series; null: there is none. */
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

/** Those of these roles that the server lacks. */
export async function missingRoles(sql: SqlOrTransaction, names: readonly string[]): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select name from unnest(${[...names]}::text[]) name where not exists (select from pg_roles where rolname = name) order by 1`;
  return rows.map(({ name }) => name);
}

/** A role that owns nothing and cannot log in: rights are granted to it. */
export async function makeRole(sql: SqlOrTransaction, name: string): Promise<void> {
  await sql`create role ${sql(name)} nologin`;
}

/** So that the first statements on the restored tables are planned for their real sizes. */
export async function analyzeAll(sql: SqlOrTransaction): Promise<void> {
  const rows = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = any(${[...BACKED_UP]}::text[]) order by 1`;
  for (const { name } of rows) await sql.unsafe(`analyze ${name}`);
}

/** When upstream last told about an account is forgotten: requests were sent since, so the next session asks first. */
export async function forgetAccountChecks(sql: Sql): Promise<void> {
  await tables(sql).update(account).set({ checkedAt: null });
}

export type UnprovedRestore = { readonly at: Instant; readonly actor: string; readonly command: string };

/** The last restore into this database, when it has loaded everything, and was killed or failed before its proof; null: there is no such one. */
export async function readUnprovedRestore(sql: SqlOrTransaction): Promise<UnprovedRestore | null> {
  if (!(await hasAuditLog(sql))) return null;
  const [row] = await sql<(UnprovedRestore & { isProved: boolean })[]>`
    select at, actor, command, ended_at is not null and (message is null or message ~ '^ended with exit code ') as is_proved
    from ops.audit where command ~ '^restore ' order by id desc limit 1`;
  return row === undefined || row.isProved ? null : row;
}

const RAN_AT_BACKUP = 'had not ended when the backup was made';

/** A restore that was done, and when the backup that it loaded was begun; null: its log does not say. */
export type Restore = { readonly at: Instant; readonly backupAt: Instant | null };

/** The last restore after `at` of a backup from before `at`: what was stored at that time is not here. Null: the log has none. */
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

/** The commands that ran when the backup was made, the backup itself among them: nothing here will ever say how they ended. */
export async function endCommandsOfBackup(sql: SqlOrTransaction, now: Instant): Promise<void> {
  await sql`update ops.audit set ended_at = ${now}, message = ${RAN_AT_BACKUP} where ended_at is null`;
}

/** The services of the house that was backed up do not run on this database. */
export async function forgetInstances(sql: Sql): Promise<void> {
  await tables(sql).delete(instance);
}
