/** Facts about the database from its own catalogue: versions, sizes, connections. It counts no rows. */
import type { Sql } from '../../store/connection/connect.ts';

export type SystemFacts = {
  /** The version that the server reports: `18.4`. */
  readonly postgres: string;
  /** Name of the last migration applied. */
  readonly migration: string;
  readonly bytes: number;
  readonly mostConnections: number;
  /** Connections to this database, by program. */
  readonly connections: readonly { readonly program: string; readonly total: number; readonly active: number }[];
  /**
   * The largest first, with all partitions of a table together. Tables that another session locks or waits to lock are left out: reading the size
   * would have to wait.
   */
  readonly tables: readonly {
    readonly name: string;
    /** Includes its indexes. */
    readonly bytes: number;
    readonly indexBytes: number;
    /** The last estimate of the server; null: there is none. */
    readonly rows: number | null;
  }[];
};

const MOST_TABLES = 15;

export async function readSystemFacts(sql: Sql): Promise<SystemFacts> {
  const [[server], connections, tables] = await Promise.all([
    sql<Pick<SystemFacts, 'postgres' | 'migration' | 'bytes' | 'mostConnections'>[]>`
      select current_setting('server_version') as postgres, pg_database_size(current_database()) as bytes,
        (select name from ops.migration order by created_at desc limit 1) as migration,
        current_setting('max_connections')::int as most_connections`,
    sql<SystemFacts['connections'][number][]>`
      select coalesce(nullif(application_name, ''), 'unnamed') as program, count(*)::int as total,
        count(*) filter (where state <> 'idle')::int as active
      from pg_stat_activity where datname = current_database() and backend_type = 'client backend' group by 1 order by 2 desc, 1 limit 20`,
    sql<SystemFacts['tables'][number][]>`
      select n.nspname || '.' || r.relname as name, sum(pg_total_relation_size(t.oid)) as bytes, sum(pg_indexes_size(t.oid)) as index_bytes,
        sum(t.reltuples) filter (where t.reltuples >= 0) as rows
      from (
        select c.oid, c.reltuples, case when c.relispartition then pg_partition_root(c.oid) else c.oid end as root
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'm') and n.nspname in ('market', 'ops', 'bullmq')
          and not exists (select from pg_locks l where l.relation = c.oid and l.mode = 'AccessExclusiveLock'
            and l.database = (select oid from pg_database where datname = current_database()))
      ) t join pg_class r on r.oid = root join pg_namespace n on n.oid = r.relnamespace group by 1 order by 2 desc limit ${MOST_TABLES}`,
  ]);
  return { ...server!, connections, tables };
}
