/** Backfills: what each one requests and for whom, and its progress. A trigger on `ops.fetch` counts the requests of each backfill. */
import { and, inArray, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { type BackfillState, backfill } from '../schema/requests.ts';
import { leaseIsAlive } from '../work/lease.ts';
import { isAdvanced } from './backfill-finish.ts';
import { wakeBackfillsAfterOwner } from './slot-owner.ts';

export type { BackfillState };

type Row = Readonly<typeof backfill.$inferInsert>;

type StartedBackfill = Pick<
  Row,
  'requestedAt' | 'spec' | 'span' | 'interval' | 'quote' | 'plannedRequests' | 'requestedBy' | 'coinIds'
> & {
  readonly startedAt: Instant;
  /** `host:pid`. */
  readonly owner: string;
};

/** Records a backfill of a command, which is running. Resolves to its id. */
export async function startBackfill(sql: SqlOrTransaction, started: StartedBackfill): Promise<number> {
  const [row] = await tables(sql)
    .insert(backfill)
    .values({ ...started, state: 'running', heartbeatAt: started.startedAt })
    .returning({ id: backfill.id });
  return row!.id;
}

/** Renews the lease of a run, and records its progress. Resolves to false when another process has ended the run. */
export async function renewRun(
  sql: SqlOrTransaction,
  id: number,
  at: Instant,
  known: Parameters<typeof isAdvanced>[1] | null = null,
): Promise<boolean> {
  const { count } = await sql`
    update ops.backfill set heartbeat_at = ${at} ${known === null ? sql`` : sql`, ${isAdvanced(sql, known)}`}
    where id = ${id} and state = 'running'`;
  return count === 1;
}

/**
 * Makes a run running again whose process was wrongly considered dead, because it was suspended or its clock differs. Only an end that the
 * owner did not cause itself can be undone. Resolves to true if it was undone.
 */
export async function reviveBackfill(sql: SqlOrTransaction, id: number, at: Instant): Promise<boolean> {
  const count = await updateRows(
    sql,
    backfill,
    { id, state: 'interrupted' },
    { state: 'running', finishedAt: null, heartbeatAt: at },
  );
  return count === 1;
}

/** Ends the runs of owners that are known to be gone, even with a live lease. They become `interrupted`, or `queued` if a service ran them. */
export async function abandonRunsOf(sql: SqlOrTransaction, owners: readonly string[]): Promise<void> {
  await tables(sql)
    .update(backfill)
    .set({
      state: raw`case when is_detached then 'queued' else 'interrupted' end`,
      finishedAt: raw`case when not is_detached then heartbeat_at end`,
    })
    .where(and(matches(backfill, { state: 'running' }), inArray(backfill.owner, [...owners])));
}

/** The owners of the backfills that the database has as running. */
export async function runningOwners(sql: SqlOrTransaction): Promise<string[]> {
  const rows = await tables(sql)
    .selectDistinct({ owner: backfill.owner })
    .from(backfill)
    .where(matches(backfill, { state: 'running' }));
  return rows.map((row) => row.owner!);
}

/** Ends a running backfill. A backfill that has ended already does not change. */
export async function finishBackfill(
  sql: SqlOrTransaction,
  id: number,
  state: 'done' | 'stopped' | 'interrupted' | 'failed',
  at: Instant,
): Promise<void> {
  await withFreshPlans(sql, async (tx) => {
    await updateRows(tx, backfill, { id, state: 'running' }, { state, finishedAt: at, chunks: null });
    await wakeBackfillsAfterOwner(tx);
  });
}

/**
 * Marks runs of commands with an expired lease as `interrupted`: their process was killed, or cannot reach the database. A run of the
 * service does not change, because another service claims it. Resolves to the ids of the changed runs.
 */
export async function abandonExpired(sql: SqlOrTransaction, now: Instant): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    update ops.backfill set state = 'interrupted', finished_at = heartbeat_at
    where state = 'running' and not is_detached and not ${leaseIsAlive(sql, now)} returning id`;
  if (rows.length > 0) await wakeBackfillsAfterOwner(sql);
  return rows.map((row) => row.id).sort((a, b) => a - b);
}

const COUNTS = ['requests', 'rows', 'stored', 'revised', 'quarantined'] as const;
type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;

export type BackfillTotals = Counts & {
  /** The number of requests by outcome. */
  readonly byOutcome: Readonly<Record<string, number>>;
};

export async function backfillTotals(sql: SqlOrTransaction, id: number): Promise<BackfillTotals> {
  const groups = await sql<(Counts & { readonly outcome: string })[]>`
    select outcome, sum(requests)::bigint as requests, sum(rows)::bigint as rows, sum(stored)::bigint as stored,
      sum(revised)::bigint as revised, sum(quarantined)::bigint as quarantined
    from ops.fetch_totals where backfill_id = ${id} group by outcome order by outcome`;
  const sum = (name: keyof Counts) => groups.reduce((total, group) => total + group[name], 0);
  const sums = Object.fromEntries(COUNTS.map((name) => [name, sum(name)])) as Counts;
  return { ...sums, byOutcome: Object.fromEntries(groups.map((group) => [group.outcome, group.requests])) };
}
