/** Who asked for what, and how far it is: what it did is counted from `ops.fetch`, never kept twice. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { leaseIsAlive } from './lease.ts';

export type BackfillState =
  | 'queued'
  | 'running'
  | 'paused'
  | 'done'
  | 'stopped'
  | 'interrupted'
  | 'failed'
  | 'cancelled';

/** Records the run and its series in one statement. Resolves to its id; it is running. */
export async function startBackfill(
  sql: SqlOrTransaction,
  backfill: {
    readonly requestedAt: Instant;
    readonly startedAt: Instant;
    /** What was typed, as JSON. */
    readonly spec: unknown;
    readonly span: Span;
    readonly interval: Interval;
    readonly quote: Quote;
    readonly plannedRequests: number;
    /** host:pid */
    readonly owner: string;
    /** `user@host` */
    readonly requestedBy?: string | null;
  },
): Promise<number> {
  const [row] = await sql<{ id: number }[]>`
    insert into ops.backfill (requested_at, started_at, state, spec, span, interval, quote, planned_requests, owner, heartbeat_at,
      requested_by)
    values (${backfill.requestedAt}, ${backfill.startedAt}, 'running',
      ${JSON.stringify(backfill.spec)}::text::jsonb, ${backfill.span},
      ${backfill.interval}::market.candle_interval, ${backfill.quote}, ${backfill.plannedRequests}, ${backfill.owner},
      ${backfill.startedAt}, ${backfill.requestedBy ?? null})
    returning id`;
  return row!.id;
}

/** Renews the lease of a run. Resolves to false when the run is no longer running, because another process ended it. */
export async function beat(sql: SqlOrTransaction, id: number, at: Instant): Promise<boolean> {
  const result = await sql`
    update ops.backfill set heartbeat_at = ${at} where id = ${id} and state = 'running'`;
  return result.count === 1;
}

/**
 * A run that was taken for dead (its owner slept, its clock differs) says that it lives: it is running again. Only an end that
 * the owner did not bring about itself can be undone. Resolves to whether it was.
 */
export async function reviveBackfill(sql: SqlOrTransaction, id: number, at: Instant): Promise<boolean> {
  const result = await sql`
    update ops.backfill set state = 'running', finished_at = null, heartbeat_at = ${at}
    where id = ${id} and state = 'interrupted'`;
  return result.count === 1;
}

/** Runs of owners that are known to be gone become `interrupted`, however lately they gave a sign of life; those of a service wait for another. */
export async function abandonRunsOf(sql: SqlOrTransaction, owners: readonly string[]): Promise<void> {
  await sql`
    update ops.backfill set state = case when is_detached then 'queued' else 'interrupted' end,
      finished_at = case when not is_detached then heartbeat_at end
    where state = 'running' and owner = any(${owners as string[]}::text[])`;
}

/** Who runs now, by the database. */
export async function runningOwners(sql: SqlOrTransaction): Promise<string[]> {
  const rows = await sql<{ owner: string }[]>`select distinct owner from ops.backfill where state = 'running'`;
  return rows.map((row) => row.owner);
}

/** Ends a running run; one that has ended already stays as it is. */
export async function finishBackfill(
  sql: SqlOrTransaction,
  id: number,
  state: 'done' | 'stopped' | 'interrupted' | 'failed',
  at: Instant,
): Promise<void> {
  await sql`
    update ops.backfill set state = ${state}, finished_at = ${at} where id = ${id} and state = 'running'`;
}

/**
 * Runs of commands whose lease has expired become `interrupted`: their process was killed, or cannot reach the database. A run of the
 * service stays as it is, for another service claims it. Resolves to their ids.
 */
export async function abandonExpired(sql: SqlOrTransaction, now: Instant): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    update ops.backfill set state = 'interrupted', finished_at = heartbeat_at
    where state = 'running' and not is_detached and not ${leaseIsAlive(sql, now)} returning id`;
  return rows.map((row) => row.id).sort((a, b) => a - b);
}

export type BackfillTotals = {
  readonly requests: number;
  readonly rows: number;
  readonly stored: number;
  readonly revised: number;
  readonly setAside: number;
  /** Requests by how they ended. */
  readonly byOutcome: Readonly<Record<string, number>>;
};

export async function backfillTotals(sql: SqlOrTransaction, id: number): Promise<BackfillTotals> {
  const groups = await sql<
    { outcome: string; requests: number; rows: number; stored: number; revised: number; setAside: number }[]
  >`
    select outcome, sum(requests)::bigint as requests, sum(rows)::bigint as rows, sum(stored)::bigint as stored,
      sum(revised)::bigint as revised, sum(set_aside)::bigint as set_aside
    from (
      select outcome, 1 as requests, rows, stored, revised, set_aside from ops.fetch where backfill_id = ${id}
      union all
      -- Those whose records were removed for their age.
      select outcome, requests, rows, stored, revised, set_aside from ops.backfill_past where backfill_id = ${id}
    ) of_backfill
    group by outcome order by outcome`;
  const sum = (name: 'requests' | 'rows' | 'stored' | 'revised' | 'setAside') =>
    groups.reduce((total, group) => total + group[name], 0);
  return {
    requests: sum('requests'),
    rows: sum('rows'),
    stored: sum('stored'),
    revised: sum('revised'),
    setAside: sum('setAside'),
    byOutcome: Object.fromEntries(groups.map((group) => [group.outcome, group.requests])),
  };
}
