/**
 * Drops old partitions. Each is first detached, without a lock that blocks others, and dropped when nobody reads it any more. May be killed at
 * any time: the next run goes on from there.
 */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { attachPartition, lockPartitions, type Partition, type Partitioned, readPartitionName } from './partition.ts';

export type DropOptions = {
  readonly signal?: AbortSignal;
  /** How long to wait for statements that read an old partition. Later statements no longer see it. */
  readonly waitMs?: number;
};

const WAIT_MS = 60_000;

type Found = Partition & { readonly state: 'attached' | 'half detached' | 'detached' };

/** What Postgres says when a lock, or the end of a statement, was waited for too long. */
const WAITED_TOO_LONG = ['55P03', '57014'];
/** What it says when another process is detaching the partition just now, or has detached or dropped it. */
const REMOVED_BY_ANOTHER = ['55000', '42P01'];
const NEXT_TIME: ReadonlySet<string> = new Set([...WAITED_TOO_LONG, ...REMOVED_BY_ANOTHER]);

export type OldRows = {
  /** Called ahead of each partition. Resolves to false: it must stay. */
  forget(partition: Partition): Promise<boolean>;
  /** Called when nobody can write into the partition any more. Has an answer about its time been stored since `forget`? */
  isNeeded(tx: SqlOrTransaction, partition: Partition): Promise<boolean>;
};

type Gone = {
  readonly dropped: readonly string[];
  readonly inUse: readonly string[];
  readonly refused: readonly string[];
};

/** Drops those that end before `before`. Of two processes that remove the same at once, one finds it gone. */
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
    // What is before a partition that stays would be forgotten with the next one.
    if (!(await forget(found))) return { dropped, inUse: [], refused: [name] };
    const [parent, partition] = [`market.${of.table}`, `market.${name}`];
    await sql.unsafe(`set statement_timeout = ${waitMs}; set lock_timeout = ${waitMs}`);
    try {
      // Waits for the statements that read the table now, and blocks none meanwhile.
      if (state === 'attached') await sql.unsafe(`alter table ${parent} detach partition ${partition} concurrently`);
      // An earlier run gave up waiting, or was killed while it waited.
      if (state === 'half detached') await sql.unsafe(`alter table ${parent} detach partition ${partition} finalize`);
      if (!(await dropUnlessNeeded(sql, of, found, isNeeded))) return { dropped, inUse: [name], refused: [] };
    } catch (error) {
      // Only one partition of a table can be half detached: the others wait for it.
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
 * An answer may have been stored after its slots were forgotten, or another process may have attached the detached table again, for such an answer.
 * Then the partition takes its place again, and the next run forgets what was answered.
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

/** Oldest first, but one that is half detached before all others. Tables that only look like partitions are none. */
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
