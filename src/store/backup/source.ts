/** What a backup reads from the database besides pg_dump: the server's version, one shared snapshot, and the sizes of the tables. */
import { INTERVALS } from '../../core/interval.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { holdPartitions } from '../upkeep/partition.ts';

export type ServerVersion = {
  /** As the server reports it: `18.4`. */
  readonly version: string;
  readonly major: number;
};

/** The schemas of a backup. The queue is in another schema, and is not needed: the next plan finds its chunks. */
export const BACKED_UP = ['market', 'ops'] as const;

export async function readServerVersion(sql: SqlOrTransaction): Promise<ServerVersion> {
  const [row] = await sql<ServerVersion[]>`
    select split_part(current_setting('server_version'), ' ', 1) as version,
      current_setting('server_version_num')::int / 10000 as major`;
  return row!;
}

/**
 * Runs `work` with the name of an exported snapshot: every session that uses it sees the database as it is now, until `work` ends. Retention
 * removes no candles during that time.
 */
export async function withSnapshot<T>(
  sql: Sql,
  work: (tx: SqlOrTransaction, snapshot: string) => Promise<T>,
): Promise<T> {
  return (await sql.begin('isolation level repeatable read read only', async (tx) => {
    await holdPartitions(tx, INTERVALS);
    // The server may limit idle sessions, and this one waits for pg_dump.
    await tx`select set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`;
    const [row] = await tx<{ snapshot: string }[]>`select pg_export_snapshot() as snapshot`;
    return work(tx, row!.snapshot);
  })) as T;
}

export type TableSize = { readonly name: string; readonly bytes: number };

/** The tables that store rows (not partitioned parents), with the names that pg_dump uses. */
export async function readTableSizes(sql: SqlOrTransaction): Promise<TableSize[]> {
  return sql<TableSize[]>`
    select n.nspname || '.' || c.relname as name, pg_table_size(c.oid) as bytes
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname = any(${[...BACKED_UP]}::text[]) order by 1`;
}

/** The schema of the queue on Postgres. */
const QUEUE = 'bullmq';

/** Schemas of others in the same database that have tables or views. A backup does not include them. */
export async function readOtherSchemas(sql: SqlOrTransaction): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select n.nspname as name from pg_namespace n
    where n.nspname <> all(${[...BACKED_UP, QUEUE, 'information_schema']}::text[]) and n.nspname !~ '^pg_'
      and exists (
        select from pg_class c where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm', 'f')
          and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      )
    order by 1`;
  return rows.map(({ name }) => name);
}
