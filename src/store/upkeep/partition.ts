/**
 * The partitions of `market.candle` (a year each for wide candles, a quarter for 1h, a month for shorter intervals) and of
 * `market.ticker_history` (a month). They are created when first needed, and ahead of time. `retention.ts` removes them.
 *
 * A new partition is created as a separate table and then attached. Attaching takes a lock on the parent that blocks neither readers
 * nor writers, and scans nothing, because the new table is empty. (`create table … partition of` would block both.)
 */
import type { Instant } from '../../clock.ts';
import { periodOfMonths } from '../../core/calendar.ts';
import { type CandleInterval, INTERVALS, type Interval, isCandleInterval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';

/** A table in the schema `market` that is partitioned by time. The name of a partition consists of the table's name and its start. */
export type Partitioned = { readonly table: string; readonly months: 1 | 3 | 12 };
export type Partition = { readonly name: string; readonly from: Instant; readonly to: Instant };

const MONTHS_EACH: Readonly<Record<CandleInterval, Partitioned['months']>> = {
  '5m': 1,
  '15m': 1,
  '30m': 1,
  '1h': 3,
  '6h': 12,
  '12h': 12,
  '24h': 12,
};

export const TICKER_HISTORY: Partitioned = { table: 'ticker_history', months: 1 };

export function candlesOf(interval: CandleInterval): Partitioned {
  return { table: `candle_${interval}`, months: MONTHS_EACH[interval] };
}

/** A span that needs more partitions than this is an error. */
const MOST = 2_000;

/** Until the transaction ends, no other process creates or drops partitions of this table. */
export function lockPartitions(tx: SqlOrTransaction, { table }: Partitioned) {
  return takeLock(tx, `partitions of ${table}`);
}

/**
 * Until the transaction ends, no process removes partitions of candles of these intervals; a snapshot alone does not protect a table from being
 * dropped. Call it before the first query of a transaction with one snapshot, because that query takes the snapshot. Only retention waits for
 * this lock.
 */
export async function holdPartitions(tx: SqlOrTransaction, intervals: readonly Interval[]): Promise<void> {
  const tables = intervals.filter(isCandleInterval).map((interval) => `only market.${candlesOf(interval).table}`);
  if (tables.length > 0) await tx.unsafe(`lock table ${tables.join(', ')} in access share mode`);
}

/** Creates the missing partitions of candles that `span` needs. */
export function ensurePartitions(sql: Sql, interval: CandleInterval, span: Span): Promise<void> {
  return ensurePartitionsOf(sql, candlesOf(interval), span);
}

/** Creates the missing partitions that `span` needs. Safe for any number of callers at once; blocks no reader or writer. */
export async function ensurePartitionsOf(sql: Sql, of: Partitioned, span: Span): Promise<void> {
  const needed = partitionsOf(of, span);
  if ((await missing(sql, of, needed)).length === 0) return;
  await sql.begin(async (tx) => {
    await lockPartitions(tx, of);
    // Checked again under the lock, because another process may have created them during the wait.
    for (const partition of await missing(tx, of, needed)) {
      const { name, exists, isHalfDetached } = partition;
      // Retention stopped waiting for a reader, or was killed. Postgres attaches the table again only when it is detached completely.
      if (isHalfDetached) await tx.unsafe(`alter table market.${of.table} detach partition market.${name} finalize`);
      // If the table exists, a killed retention detached it. It is attached again with all its rows.
      if (!exists) {
        await tx.unsafe(`
          create table market.${name} (like market.${of.table} including all);
          comment on table market.${name} is 'One partition of market.${of.table}, by time.'`);
      }
      await attachPartition(tx, of, partition);
    }
  });
}

/** Attaches a table as a partition. The caller must hold `lockPartitions`. */
export async function attachPartition(tx: SqlOrTransaction, { table }: Partitioned, { name, from, to }: Partition) {
  const bounds = `from ('${new Date(from).toISOString()}') to ('${new Date(to).toISOString()}')`;
  await tx.unsafe(`alter table market.${table} attach partition market.${name} for values ${bounds}`);
}

/** Partitions are created this long before they are needed. */
const AHEAD_MS = 7 * 24 * 60 * 60_000;

/** Creates the partitions for the next days: of tickers, and of candles for each interval with a series that is wanted from now on. */
export async function ensurePartitionsAhead(sql: Sql, now: Instant): Promise<void> {
  const tracked = await sql<{ interval: CandleInterval }[]>`
    select distinct interval from market.series where upper(wanted) is null or upper(wanted) > ${now}`;
  const span = { from: now, to: now + AHEAD_MS };
  await ensurePartitionsOf(sql, TICKER_HISTORY, span);
  for (const interval of INTERVALS) {
    if (tracked.some((row) => row.interval === interval)) await ensurePartitions(sql, interval, span);
  }
}

/** Ensures that the partitions for the span exist, then runs `write`. */
type PartitionKeeper = <T>(interval: CandleInterval, span: Span, write: () => Promise<T>) => Promise<T>;

/**
 * Like `ensurePartitions`, but remembers the partitions it has seen, for a caller that writes into the same few again and again. Callers
 * that need a partition that is being created wait here, not with a connection each for the server's lock.
 *
 * A remembered partition may be gone: retention has removed it, or a failover to a lagging standby lost it. Then it is created again.
 */
export function createPartitionKeeper(sql: Sql): PartitionKeeper {
  const seen = new Set<string>();
  const making = new Map<string, Promise<void>>();
  const make = async (interval: CandleInterval, { name, from, to }: Partition) => {
    try {
      await ensurePartitions(sql, interval, { from, to });
      seen.add(name);
    } finally {
      making.delete(name);
    }
  };
  const ensure = async (interval: CandleInterval, needed: readonly Partition[]) => {
    for (const partition of needed) {
      const { name } = partition;
      if (seen.has(name)) continue;
      if (!making.has(name)) making.set(name, make(interval, partition));
      await making.get(name);
    }
  };
  return async (interval, span, write) => {
    const needed = partitionsOf(candlesOf(interval), span);
    await ensure(interval, needed);
    try {
      return await write();
    } catch (error) {
      if (!isPartitionMissing(error)) throw error;
      for (const { name } of needed) seen.delete(name);
      await ensure(interval, needed);
      return write();
    }
  };
}

/** Did the write fail because no partition fits the row? Postgres has no SQLSTATE of its own for that. */
function isPartitionMissing(error: unknown): boolean {
  const { code, routine } = error as { readonly code?: unknown; readonly routine?: unknown };
  return code === '23514' && routine === 'ExecFindPartition';
}

/** @throws RangeError when `span` is open-ended or absurdly long */
function partitionsOf(of: Partitioned, span: Span): Partition[] {
  if (span.from >= span.to) return [];
  if (!Number.isFinite(span.from)) throw new RangeError('a span without a beginning has no first partition');
  const out: Partition[] = [];
  for (let at = span.from; at < span.to; at = out.at(-1)!.to) {
    if (out.length === MOST)
      throw new RangeError(`the span ${span.from} to ${span.to} needs more than ${MOST} partitions`);
    out.push(partitionAt(of, at));
  }
  return out;
}

function partitionAt({ table, months }: Partitioned, at: Instant): Partition {
  const { year, month, from, to } = periodOfMonths(at, months);
  const suffix = { 12: '', 3: `q${month / 3 + 1}`, 1: `m${String(month + 1).padStart(2, '0')}` }[months];
  return { name: `${table}_${year}${suffix}`, from, to };
}

/** The partition with this name; null when the name is not one of a partition of `of`. */
export function readPartitionName(of: Partitioned, name: string): Partition | null {
  const [, year, part] = /^(\d{4})(?:[qm](\d\d?))?$/.exec(name.slice(of.table.length + 1)) ?? [];
  if (year === undefined) return null;
  const partition = partitionAt(of, Date.UTC(Number(year), (Number(part ?? 1) - 1) * of.months));
  return partition.name === name ? partition : null;
}

type Missing = Partition & { readonly exists: boolean; readonly isHalfDetached: boolean };

/** The partitions that are missing. `exists` is true when the table exists but is not attached, or is half detached. */
async function missing(
  sql: SqlOrTransaction,
  { table }: Partitioned,
  partitions: readonly Partition[],
): Promise<Missing[]> {
  // Reads pg_class instead of to_regclass(), which may use a cache that is older than our lock.
  const rows = await sql<Pick<Missing, 'name' | 'exists' | 'isHalfDetached'>[]>`
    select name, c.oid is not null as exists,
      exists (select from pg_inherits i where i.inhrelid = c.oid and i.inhdetachpending) as is_half_detached
    from unnest(${partitions.map((p) => p.name)}::text[]) name
    left join pg_class c on c.relname = name and c.relnamespace = 'market'::regnamespace
    where not exists (
      select from pg_inherits i
      join pg_class parent on parent.oid = i.inhparent and parent.relnamespace = 'market'::regnamespace
      where i.inhrelid = c.oid and parent.relname = ${table} and not i.inhdetachpending
    )`;
  const found = new Map(rows.map((row) => [row.name, row]));
  return partitions.flatMap((p) => (found.has(p.name) ? [{ ...p, ...found.get(p.name)! }] : []));
}
