/** The tables of a database as Postgres describes them, so that two databases can be compared. */
import type { SqlOrTransaction } from '../../src/store/connection/connect.ts';

/**
 * One line for each table, column, constraint and index of the schemas market and ops, sorted. Leaves out partitioned tables and their
 * partitions, which drizzle cannot describe, and `ops.migration`, which drizzle itself makes.
 */
export async function tableDefinitions(sql: SqlOrTransaction): Promise<readonly string[]> {
  const rows = await sql<{ line: string }[]>`
    with described as (
      select oid, oid::regclass::text as name from pg_class
      where relnamespace in ('market'::regnamespace, 'ops'::regnamespace)
        and relkind = 'r' and not relispartition and oid is distinct from to_regclass('ops.migration')
    )
    select 'table ' || name as line from described
    union all
    select concat_ws(' ', name || '.' || attname, format_type(atttypid, atttypmod), case when attnotnull then 'not null' end,
        'default ' || pg_get_expr(d.adbin, d.adrelid), 'identity ' || nullif(attidentity::text, ''))
      from described join pg_attribute a on a.attrelid = oid and attnum > 0 and not attisdropped
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    union all
    -- Not-null constraints are in the columns.
    select name || ' constraint ' || conname || ' ' || pg_get_constraintdef(c.oid)
      from described join pg_constraint c on conrelid = described.oid and contype in ('p', 'u', 'f', 'c')
    union all
    select pg_get_indexdef(indexrelid)
      from described join pg_index i on indrelid = described.oid
      where not exists (select from pg_constraint where conindid = indexrelid and conrelid = indrelid)
    order by 1`;
  return rows.map((row) => row.line);
}
