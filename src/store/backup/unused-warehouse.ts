/** A warehouse without data: a service or a plan created its schema in an empty database. A restore may remove it. */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { readOwnership } from '../migration/schema-ownership.ts';
import { leaseIsAlive } from '../work/lease.ts';
import { BACKED_UP } from './source.ts';

/** Tables that Chandler fills as soon as a process starts. A row in any other table is data that somebody may want to keep. */
const TABLES_WITHOUT_DATA: ReadonlySet<string> = new Set([
  'ops.migration',
  'ops.lock',
  'ops.version',
  'ops.watch',
  'ops.counted',
  'ops.audit',
  'ops.instance',
  'ops.schedule_run',
  'ops.lake',
  // The ledger: `ops.fetch` contains the spent requests, too.
  'ops.account',
  'ops.quota',
  'ops.quota_spent',
]);

/** Conditions for the rows that count. A request without an answer, for example to an upstream that is down, contains no data. */
const ROWS_WITH_DATA = new Map([['ops.fetch', 'status is not null']]);

/** The names of the tables with rows that count. This user must be able to read all tables. */
async function readHoldings(sql: SqlOrTransaction): Promise<string[]> {
  const parts = (await tablesOf(sql, ['r', 'm', 'f']))
    .filter(({ name }) => !TABLES_WITHOUT_DATA.has(name))
    .map(({ name, quoted }) => {
      const where = ROWS_WITH_DATA.has(name) ? ` where ${ROWS_WITH_DATA.get(name)!}` : '';
      return `select '${name.replaceAll("'", "''")}' as name where exists (select from ${quoted}${where})`;
    });
  if (parts.length === 0) return [];
  const rows = await sql.unsafe<{ name: string }[]>(`${parts.join(' union all ')} order by 1`);
  return rows.map(({ name }) => name);
}

/** `kinds` are values of `pg_class.relkind`. */
async function tablesOf(sql: SqlOrTransaction, kinds: readonly string[]) {
  return sql<{ name: string; quoted: string }[]>`
    select n.nspname || '.' || c.relname as name, format('%I.%I', n.nspname, c.relname) as quoted
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any(${[...BACKED_UP]}::text[]) and c.relkind::text = any(${[...kinds]}::text[]) order by 1`;
}

/** May this user drop the schemas and create them again? */
async function mayReplace(sql: SqlOrTransaction): Promise<boolean> {
  const { ours, mayCreate, market, ops } = await readOwnership(sql);
  return ours && mayCreate && market?.owned === true && ops?.owned === true;
}

/** The services that run on this warehouse now. */
async function readUsers(sql: SqlOrTransaction, now: Instant): Promise<string[]> {
  const [there] = await sql<{ is: boolean }[]>`select to_regclass('ops.instance') is not null as is`;
  if (!there!.is) return [];
  const rows = await sql<{ owner: string }[]>`
    select owner from ops.instance where ${leaseIsAlive(sql, now)} order by owner`;
  return rows.map(({ owner }) => owner);
}

/** Why a restore must not remove a warehouse. */
export type ReasonToKeep =
  | { readonly why: 'holds'; readonly tables: readonly string[] }
  | { readonly why: 'used by'; readonly owners: readonly string[] }
  /** This user may not remove it, or something outside its schemas depends on it. */
  | { readonly why: 'rights' | 'dependents' };

/** Null when a restore may remove the warehouse. */
export async function reasonToKeep(sql: SqlOrTransaction, now: Instant): Promise<ReasonToKeep | null> {
  if (!(await mayReplace(sql))) return { why: 'rights' };
  const tables = await readHoldings(sql);
  if (tables.length > 0) return { why: 'holds', tables };
  const owners = await readUsers(sql, now);
  return owners.length > 0 ? { why: 'used by', owners } : null;
}

/** How long `removeUnused` waits for sessions that use a table. */
const LOCK_TIMEOUT = '10s';

/** Locks all tables and drops both schemas, unless there is a reason not to. Resolves to that reason, else to null. */
export async function removeUnused(sql: Sql, now: Instant): Promise<ReasonToKeep | null> {
  let keeps: ReasonToKeep | null = null;
  const refused = new Error('the warehouse stays');
  await sql
    .begin(async (tx) => {
      await tx`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;
      const names = (await tablesOf(tx, ['r', 'p'])).map(({ quoted }) => quoted);
      await tx.unsafe(`lock table ${names.join(', ')} in access exclusive mode`);
      keeps = await reasonToKeep(tx, now);
      if (keeps !== null) throw refused;
      const before = await countOutside(tx);
      await tx.unsafe(`drop schema ${BACKED_UP.join(', ')} cascade`);
      // `cascade` also drops views, defaults and keys of others, without an error.
      if ((await countOutside(tx)) !== before) keeps = { why: 'dependents' };
      if (keeps !== null) throw refused;
    })
    .catch((error: unknown) => {
      if (error !== refused) throw error;
    });
  return keeps;
}

/** The number of objects in other schemas that could depend on ours. */
async function countOutside(sql: SqlOrTransaction): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    with outside as (
      select oid from pg_namespace where nspname <> all(${[...BACKED_UP]}::text[]) and nspname !~ '^pg_(toast|temp)'
    ), relation as (select c.oid from pg_class c join outside n on n.oid = c.relnamespace)
    select (select count(*) from relation)
      + (select count(*) from pg_attribute join relation on oid = attrelid where not attisdropped)
      + (select count(*) from pg_attrdef join relation r on r.oid = adrelid)
      + (select count(*) from pg_trigger join relation r on r.oid = tgrelid)
      + (select count(*) from pg_policy join relation r on r.oid = polrelid)
      + (select count(*) from pg_rewrite join relation r on r.oid = ev_class)
      + (select count(*) from pg_constraint c join outside n on n.oid = c.connamespace)
      + (select count(*) from pg_proc p join outside n on n.oid = p.pronamespace)
      + (select count(*) from pg_type t join outside n on n.oid = t.typnamespace) as count`;
  return row!.count;
}
