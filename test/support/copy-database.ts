/** A dump and restore without pg_dump: the one on this machine may be older than the server, and then it refuses. */
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { TestDatabase } from './database.ts';

/** The tables of our schemas that a dump has. The queue is left out: a plan creates its jobs anew. */
const OURS = `n.nspname in ('market', 'ops')`;

/** Replaces all rows of `to`, a migrated database, by those of `from`, table by table, and makes missing partitions. */
export async function copyDatabase(from: TestDatabase, to: TestDatabase): Promise<void> {
  const [source, target] = [new pg.Client(from.url), new pg.Client(to.url)];
  await Promise.all([source.connect(), target.connect()]);
  try {
    await source.query('begin isolation level repeatable read read only');
    // Like pg_restore, which loads rows before triggers and foreign keys exist.
    await target.query('begin; set local session_replication_role = replica');
    await makePartitions(source, target);
    const tables = await tablesOf(source);
    await target.query(`truncate ${tables.map(({ name }) => name).join(', ')} cascade`);
    for (const { name, columns } of tables) {
      const list = `${name} (${columns})`;
      await pipeline(
        source.query(copyTo(`copy ${list} to stdout (format binary)`)),
        target.query(copyFrom(`copy ${list} from stdin (format binary)`)),
      );
    }
    await copySequences(source, target);
    await target.query('commit');
  } finally {
    await Promise.all([source.end(), target.end()]);
  }
}

/** The tables that hold rows, and their columns except generated ones. */
async function tablesOf(client: pg.Client): Promise<{ name: string; columns: string }[]> {
  const { rows } = await client.query(`
    select c.oid::regclass::text as name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    where ${OURS} and c.relkind = 'r' group by c.oid order by c.oid`);
  return rows;
}

async function makePartitions(source: pg.Client, target: pg.Client): Promise<void> {
  const { rows } = await source.query<{ name: string; parent: string; bounds: string }>(`
    select c.oid::regclass::text as name, i.inhparent::regclass::text as parent, pg_get_expr(c.relpartbound, c.oid) as bounds
    from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_inherits i on i.inhrelid = c.oid
    where ${OURS} and c.relkind = 'r' and c.relispartition order by c.oid`);
  for (const { name, parent, bounds } of rows)
    await target.query(`create table if not exists ${name} partition of ${parent} ${bounds}`);
}

async function copySequences(source: pg.Client, target: pg.Client): Promise<void> {
  const { rows } = await source.query<{ name: string; last: string }>(`
    select format('%I.%I', n.schemaname, n.sequencename) as name, n.last_value as last from pg_sequences n
    where n.schemaname in ('market', 'ops') and n.last_value is not null`);
  for (const { name, last } of rows) await target.query('select setval($1, $2)', [name, last]);
}
