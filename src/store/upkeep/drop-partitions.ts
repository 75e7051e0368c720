/**
 * Drops old partitions. It first detaches each one without a lock that blocks others, and drops it when no statement reads it any more. May be
 * killed at any time: the next run continues.
 */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { CAN_WAIT } from '../connection/lock.ts';
import { attachPartition, lockPartitions, type Partition, type Partitioned, readPartitionName } from './partition.ts';

export type DropOptions = {
  readonly signal?: AbortSignal;
  /** Milliseconds to wait for statements that read an old partition. Later statements no longer see it. */
  readonly waitMs?: number;
};

const WAIT_MS = 60_000;

type Found = Partition & { readonly state: 'attached' | 'half detached' | 'detached' };

/** SQLSTATEs when the statement waited too long for a lock, or ran too long. */
const WAITED_TOO_LONG = ['55P03', '57014'];
/** SQLSTATEs when another process is detaching the partition, or has detached or dropped it. */
const REMOVED_BY_ANOTHER = ['55000', '42P01'];
const NEXT_TIME: ReadonlySet<string> = new Set([...WAITED_TOO_LONG, ...REMOVED_BY_ANOTHER]);

export type OldRows = {
  /** Called before each partition is detached. Resolves to false when the partition must stay. */
  forget(partition: Partition): Promise<boolean>;
  /** Called when no process can write into the partition any more. Has an answer about its time been stored since `forget`? */
  isNeeded(tx: SqlOrTransaction, partition: Partition): Promise<boolean>;
};

type Gone = {
  readonly dropped: readonly string[];
  readonly inUse: readonly string[];
  readonly refused: readonly string[];
};

/** Drops the partitions that end at or before `before`. If two processes remove the same partition at once, one of them finds it removed. */
export async function dropPartitions(
  sql: Sql,
  of: Partitioned,
  before: Instant,
  { signal, waitMs = WAIT_MS }: DropOptions,
  { forget, isNeeded }: OldRows,
): Promise<Gone> {
  const dropped: string[] = [];
  const old = (await findPartitions(sql, of)).filter((partition) => partition.to <= before);
  for (const found of old) {
    const { name, state } = found;
    if (signal?.aborted) break;
    // If a partition stays, the later ones must stay, too: `forget` of a later one would forget its time as well.
    if (!(await forget(found))) return { dropped, inUse: [], refused: [name] };
    const [parent, partition] = [`market.${of.table}`, `market.${name}`];
    await sql.unsafe(`set statement_timeout = ${waitMs}; set lock_timeout = ${waitMs}`);
    try {
      // Waits for the statements that read the table now, and blocks no other statement.
      if (state === 'attached')
        await sql.unsafe(`alter table ${parent} detach partition ${partition} concurrently${CAN_WAIT}`);
      // An earlier run stopped waiting, or was killed during the wait.
      if (state === 'half detached')
        await sql.unsafe(`alter table ${parent} detach partition ${partition} finalize${CAN_WAIT}`);
      if (!(await dropUnlessNeeded(sql, of, found, isNeeded))) return { dropped, inUse: [name], refused: [] };
    } catch (error) {
      // Only one partition of a table can be half detached, so the others must wait for it.
      if (NEXT_TIME.has((error as { code?: string }).code ?? '')) return { dropped, inUse: [name], refused: [] };
      throw error;
    } finally {
      await sql.unsafe('reset statement_timeout; reset lock_timeout');
    }
    dropped.push(name);
  }
  return { dropped, inUse: [], refused: [] };
}

/**
 * Drops a detached partition, unless an answer was stored after its slots were forgotten. In that case it attaches the partition again, or another
 * process has done so for the answer already; the next run forgets these slots. Resolves to true when the partition was dropped.
 */
async function dropUnlessNeeded(
  sql: Sql,
  of: Partitioned,
  partition: Partition,
  isNeeded: OldRows['isNeeded'],
): Promise<boolean> {
  return (await sql.begin(async (tx) => {
    await lockPartitions(tx, of);
    const attached = await tx`
      select from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where c.relname = ${partition.name} and c.relnamespace = 'market'::regnamespace`;
    if (attached.length > 0) return false;
    if (await isNeeded(tx, partition)) {
      await attachPartition(tx, of, partition);
      return false;
    }
    await tx.unsafe(`drop table market.${partition.name}`);
    return true;
  })) as boolean;
}

/** The partitions, oldest first, but a half detached one before all others. Other tables with similar names are left out. */
async function findPartitions(sql: Sql, of: Partitioned): Promise<Found[]> {
  const rows = await sql<{ name: string; state: Found['state'] }[]>`
    select c.relname as name,
      case when i.inhrelid is null then 'detached' when i.inhdetachpending then 'half detached' else 'attached' end as state
    from pg_class c
    left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = ${`market.${of.table}`}::text::regclass
    where c.relnamespace = 'market'::regnamespace and c.relkind = 'r' and starts_with(c.relname, ${`${of.table}_`})`;
  const found = rows.flatMap(({ name, state }) => {
    const partition = readPartitionName(of, name);
    return partition === null ? [] : [{ ...partition, state }];
  });
  const first = (partition: Found) => (partition.state === 'half detached' ? 0 : 1);
  return found.sort((a, b) => first(a) - first(b) || a.from - b.from);
}
