/** The progress of a backfill, the state of its chunks, and its forecast: the process that runs it records them. */
import { z } from 'zod';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import type { backfill, StoredChunks } from '../schema/requests.ts';
import { leaseIsAlive } from '../work/lease.ts';

export type { StoredChunks };

const basis = z.object({
  /** When the forecast was made, and its range then. */
  madeAt: z.number(),
  from: z.number(),
  to: z.number(),
  /** Requests left for this backfill. */
  left: z.number(),
  /** Requests of other backfills that are sent before this one is done, by their ids; only the largest. */
  others: z.record(z.string(), z.number()),
  /** Milliseconds from one request to the next. */
  gapMs: z.number(),
  /** Requests for each chunk: more than one if some fail. */
  perChunk: z.number(),
  /** The backfill cannot be done before `until`, because all requests wait, or this backfill, or one of its chunks. */
  hold: z.object({ until: z.number(), reason: z.string() }).nullable(),
  /** The longest quota window that must end before the backfill is done. */
  window: z.enum(['second', 'day', 'month']).nullable(),
});

/** The inputs of a forecast. */
export type FinishBasis = z.infer<typeof basis>;

/** When a backfill will be done. */
export type BackfillFinish = {
  /** Null when unknown. */
  readonly at: Instant | null;
  /** The range of `at`. */
  readonly from: Instant | null;
  readonly to: Instant | null;
  /** Why the forecast last left its range, and when. */
  readonly change: string | null;
  readonly changedAt: Instant | null;
  /** The inputs of the forecast that last left its range, or of the first forecast. */
  readonly basis: FinishBasis | null;
};

export const UNKNOWN_FINISH: BackfillFinish = {
  at: null,
  from: null,
  to: null,
  change: null,
  changedAt: null,
  basis: null,
};

/** Null when there is none, or when another version of Chandler wrote it. */
function readBasis(stored: unknown): FinishBasis | null {
  return basis.safeParse(stored).data ?? null;
}

/** The greatest progress of a backfill that has not ended. */
export const MOST_DONE = 0.999;

/**
 * The columns with the progress of a backfill. If a later plan finds more work, `planned_requests` grows, and `progress` stays until the new
 * fraction exceeds it. `progress` stays below 1 until the backfill is over. If all missing slots belonged to other backfills, the stored
 * `left_requests` was 0; this does not count as progress.
 */
export function isAdvanced(
  sql: SqlOrTransaction,
  { leftRequests, chunks }: { readonly leftRequests: number; readonly chunks: StoredChunks | null },
) {
  const part = (left: ReturnType<typeof sql>) => sql`1 - ${left}::float8 / greatest(${left}, planned_requests, 1)`;
  return sql`left_requests = ${leftRequests}, planned_requests = greatest(planned_requests, ${leftRequests}),
    progress = greatest(progress, least(${MOST_DONE}, greatest(${part(sql`${leftRequests}::int`)}, ${part(sql`nullif(left_requests, 0)`)})))
    ${chunks === null ? sql`` : sql`, chunks = ${JSON.stringify(chunks)}::text::jsonb`}`;
}

/** The columns of a forecast. */
export function isForecast(sql: SqlOrTransaction, { at, from, to, change, changedAt, basis }: BackfillFinish) {
  return sql`finish_at = ${at}, finish_from = ${from}, finish_to = ${to}, finish_change = ${change}, finish_changed_at = ${changedAt},
    finish_basis = ${basis === null ? null : JSON.stringify(basis)}::text::jsonb`;
}

/** The columns without a forecast, for the query builder. */
export const NO_FORECAST = {
  finishAt: null,
  finishFrom: null,
  finishTo: null,
  finishChange: null,
  finishChangedAt: null,
  finishBasis: null,
};

export type OpenBackfill = {
  readonly id: number;
  readonly priority: number;
  readonly isRunning: boolean;
  /** True when a service runs it, or will; false when a command runs it. */
  readonly isDetached: boolean;
  readonly left: number;
  /** The end of its wait; null when it does not wait. */
  readonly waitUntil: Instant | null;
  /** Why it waits. */
  readonly message: string | null;
  readonly finish: BackfillFinish;
};

/**
 * The open backfills in the order in which they run: highest priority first, running before queued. Backfills of commands are included while
 * their process is alive, because they share queue and quota.
 */
export async function readOpenBackfills(sql: SqlOrTransaction, now: Instant): Promise<readonly OpenBackfill[]> {
  const rows = await sql<(Omit<OpenBackfill, 'finish'> & FinishColumns)[]>`
    select id, priority, state = 'running' as is_running, is_detached, wait_until, message,
      coalesce(left_requests, planned_requests) as left,
      finish_at, finish_from, finish_to, finish_change, finish_changed_at, finish_basis
    from ops.backfill b
    where state in ('queued', 'running') and (is_detached or ${leaseIsAlive(sql, now)})
    order by priority desc, state desc, id`;
  return rows.map(({ finishAt, finishFrom, finishTo, finishChange, finishChangedAt, finishBasis, ...row }) => ({
    ...row,
    finish: {
      at: finishAt,
      from: finishFrom,
      to: finishTo,
      change: finishChange,
      changedAt: finishChangedAt,
      basis: readBasis(finishBasis),
    },
  }));
}

type FinishColumns = Pick<
  typeof backfill.$inferSelect,
  'finishAt' | 'finishFrom' | 'finishTo' | 'finishChange' | 'finishChangedAt' | 'finishBasis'
>;

/** Saves the forecasts of queued backfills. A backfill that has begun meanwhile saves its own. */
export async function saveFinishes(
  sql: SqlOrTransaction,
  finishes: readonly { readonly id: number; readonly finish: BackfillFinish }[],
): Promise<void> {
  const all = finishes.map(({ finish }) => finish);
  await sql`
    update ops.backfill b set finish_at = f.at, finish_from = f.early, finish_to = f.late, finish_change = f.change,
      finish_changed_at = f.changed_at, finish_basis = f.basis::jsonb
    from unnest(${finishes.map(({ id }) => id)}::int[], ${all.map(({ at }) => at)}::timestamptz[],
      ${all.map(({ from }) => from)}::timestamptz[], ${all.map(({ to }) => to)}::timestamptz[],
      ${all.map(({ change }) => change)}::text[], ${all.map(({ changedAt }) => changedAt)}::timestamptz[],
      ${all.map(({ basis }) => basis && JSON.stringify(basis))}::text[]
    ) as f(id, at, early, late, change, changed_at, basis)
    where b.id = f.id and b.state = 'queued' and (b.finish_at, b.finish_to) is distinct from (f.at, f.late)`;
}
