/**
 * Rebuilds the keys (the primary-key indexes) of partitions that a backfill has left half empty. A backfill stores the newest rows first. For
 * rows in descending order, a b-tree splits its pages in the middle: 46 bytes a candle instead of 32 (measured; see test/bench/store.bench.ts).
 */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../clock.ts';
import { type CandleInterval, INTERVALS } from '../../core/interval.ts';
import type { Sql } from '../connection/connect.ts';
import { CAN_WAIT } from '../connection/lock.ts';

type Compaction = { readonly partitions: number; readonly bytesSaved: number };

/** A smaller key is not worth a rebuild. */
const LEAST_BYTES = 8 * 1024 * 1024;
/** A key with fewer bytes a candle is not rebuilt. A full key takes 31.5. */
const MOST_BYTES_PER_ROW = 38;

/** How often it checks whether other transactions are busy. */
const LOOK_MS = 20;

/** A rebuild waits for transactions that write, and for older ones that read, but for none of them longer than this. */
const LONGEST_WAIT_MS = 1_000;
/** How often it checks whether the rebuild waits. */
const STEP_MS = 100;

/**
 * Rebuilds one partition after the other. It neither blocks readers and writers nor waits for them long: it leaves a partition that others
 * use to a later run. Ends as soon as the signal is aborted. May be killed at any time: the next run drops the leftovers of an interrupted
 * rebuild. A role that does not own the tables changes nothing. `calmMs` is how long to wait, before each rebuild, for a moment in
 * which no other session is busy.
 */
export async function compactKeys(
  sql: Sql,
  interval: CandleInterval,
  signal: AbortSignal,
  calmMs = 0,
): Promise<Compaction> {
  const work = { sql, signal };
  const keys = await sql<{ schema: string; table: string; key: string; full: boolean }[]>`
    select n.nspname as schema, t.relname as table, i.relname as key,
      -- Row counts only grow, so an index that was full enough at the last count still is.
      t.reltuples > 0 and pg_relation_size(i.oid) < ${MOST_BYTES_PER_ROW} * t.reltuples as full
    from pg_partition_tree('market.candle') p
    join pg_class t on t.oid = p.relid
    join pg_namespace n on n.oid = t.relnamespace
    join pg_index x on x.indrelid = t.oid and x.indisprimary
    join pg_class i on i.oid = x.indexrelid
    where p.isleaf and t.relname like ${`candle\\_${interval}\\_%`} and pg_has_role(t.relowner, 'member')
      and pg_relation_size(i.oid) > ${LEAST_BYTES}
    order by t.relname`;
  let partitions = 0;
  let bytesSaved = 0;
  for (const { schema, table, key, full } of keys) {
    if (signal.aborted) break;
    try {
      await dropLeftovers(work, schema, table);
      if (full) continue;
      await withoutWaiting(work, `analyze ${schema}."${table}"`);
      const before = await sizeOf(sql, schema, table, key);
      if (before.bytes < MOST_BYTES_PER_ROW * before.rows) continue;
      // Otherwise the rebuild might wait at its end, be cancelled, and leave an invalid index behind.
      if (!(await isCalm(work, calmMs))) break;
      await withoutWaiting(work, `reindex index concurrently ${schema}."${key}"`);
      partitions++;
      bytesSaved += Math.max(0, before.bytes - (await sizeOf(sql, schema, table, key)).bytes);
    } catch (error) {
      if (!isCancelled(error)) throw error;
      await dropLeftovers(work, schema, table).catch((again: unknown) => {
        // The other transaction still blocks it: the next run drops the leftovers.
        if (!isCancelled(again)) throw again;
      });
      break;
    }
  }
  return { partitions, bytesSaved };
}

/** How long a service waits, before each rebuild, for a moment in which no other session is busy. */
const CALM_MS = 10_000;

/** Rebuilds the keys of all intervals while a service writes. */
export async function compactAllKeys(sql: Sql, signal: AbortSignal): Promise<Compaction> {
  let all: Compaction = { partitions: 0, bytesSaved: 0 };
  for (const interval of INTERVALS) {
    const { partitions, bytesSaved } = await compactKeys(sql, interval, signal, CALM_MS);
    all = { partitions: all.partitions + partitions, bytesSaved: all.bytesSaved + bytesSaved };
  }
  return all;
}

type Work = { readonly sql: Sql; readonly signal: AbortSignal };

/** Is there a moment within `calmMs` in which no other session is busy? */
async function isCalm({ sql, signal }: Work, calmMs: number): Promise<boolean> {
  for (let waited = 0; await othersAreBusy(sql); waited += LOOK_MS) {
    if (waited >= calmMs || signal.aborted) return false;
    await systemClock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
  return true;
}

/** Does any other session hold a snapshot or write? */
async function othersAreBusy(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ busy: boolean }[]>`
    select exists (select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      and (backend_xmin is not null or backend_xid is not null)) as busy`;
  return row!.busy;
}

/**
 * Runs the statement, and cancels it on the server when the signal is aborted, or when it has waited for a lock too long. Only waiting
 * counts: the rebuild of a large key may take long.
 */
async function withoutWaiting({ sql, signal }: Work, statement: string): Promise<void> {
  const over = new AbortController();
  const named = `/* ${randomUUID()} */ ${statement}${CAN_WAIT}`;
  const running = sql.unsafe(named).then(
    () => over.abort(),
    (error: unknown) => {
      over.abort();
      throw error;
    },
  );
  running.catch(() => undefined);
  for (let waited = 0; !over.signal.aborted; ) {
    await systemClock.sleep(STEP_MS, over.signal).catch(() => undefined);
    if (over.signal.aborted) break;
    const [row] = await sql<{ pid: number; waits: boolean }[]>`
      select pid, wait_event_type is not distinct from 'Lock' as waits from pg_stat_activity
      where datname = current_database() and query = ${named} and state = 'active'`;
    if (row === undefined) continue;
    waited = row.waits ? waited + STEP_MS : 0;
    if (signal.aborted || waited >= LONGEST_WAIT_MS) await sql`select pg_cancel_backend(${row.pid})`;
  }
  await running;
}

/** True when `withoutWaiting` cancelled the statement, usually because another transaction blocked it for too long. */
function isCancelled(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014';
}

async function sizeOf(sql: Sql, schema: string, table: string, key: string): Promise<{ bytes: number; rows: number }> {
  const [row] = await sql<{ bytes: number; rows: number }[]>`
    select pg_relation_size(format('%I.%I', ${schema}::text, ${key}::text)::regclass) as bytes,
      greatest(reltuples, 1)::float8 as rows
    from pg_class where oid = format('%I.%I', ${schema}::text, ${table}::text)::regclass`;
  return row!;
}

/** Drops invalid indexes of a killed rebuild: Postgres never uses them, but updates them with every write. */
async function dropLeftovers(work: Work, schema: string, table: string): Promise<void> {
  const left = await work.sql<{ name: string }[]>`
    select i.relname as name from pg_index x join pg_class i on i.oid = x.indexrelid
    where x.indrelid = format('%I.%I', ${schema}::text, ${table}::text)::regclass and not x.indisvalid
      and i.relname ~ '_cc(new|old)[0-9]*$'`;
  for (const { name } of left) await withoutWaiting(work, `drop index concurrently if exists ${schema}."${name}"`);
}
