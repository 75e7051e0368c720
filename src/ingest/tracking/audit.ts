/**
 * The audit of gaps. Missing candles of tracked series that are too old for freshness become backfills of the service, one for each interval, quote
 * and span. The audit excludes slots that already belong to another backfill. It sends no requests itself.
 */
import type { Clock, Instant } from '../../clock.ts';
import { type Plan, rowsPerRequest } from '../../contract/plan/plans.ts';
import { ALL_INTERVALS, ceilToGrid, DAY, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import { keptPart, type Retention } from '../../core/settings/retention-settings.ts';
import type { Span } from '../../core/span.ts';
import { queueBackfill } from '../../store/backfill/backfill-queue.ts';
import { type HistoryGroup, lockHistory, readHistoryGroups } from '../../store/backfill/history.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { planBackfill } from '../backfill/plan.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';

/** Lower than the priority of backfills that a person requested. */
export const HISTORY_PRIORITY = -10;
/** The requester that `ops.backfill.requested_by` names. */
export const AUDIT = 'the audit of gaps';
/** After a backfill that could not fetch everything, the next one waits this long. */
const RETRY_MS = DAY;

export type AuditDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly plan: Plan;
  readonly historyLimits: LearnedLimits;
  /** How long candles are kept. Older ones are not requested, because they would be deleted again. */
  readonly keep?: Partial<Retention['candles']>;
};

/** A backfill of the past that was queued. */
export type QueuedHistory = HistoryGroup & { readonly id: number; readonly requests: number; readonly slots: number };

/**
 * Resolves to the backfills that it queued. It is safe at any time: of two audits at once, the second finds what the first queued. `track add` and
 * the cancellation of a backfill call it without waiting for the schedule. `of`: only the past of these series, within this span.
 */
export async function auditGaps(
  { sql, clock, plan, historyLimits, keep = {} }: AuditDeps,
  of: HistoryGroup | null = null,
): Promise<QueuedHistory[]> {
  await historyLimits.reload();
  return sql.begin(async (tx) => {
    await lockHistory(tx);
    const now = clock.now();
    const groups = await readHistoryGroups(tx, { reach: pastOf(plan, keep, now), now, endedSince: now - RETRY_MS, of });
    const queued: QueuedHistory[] = [];
    for (const group of groups) {
      const historyLimit = historyLimits.of(group.interval);
      const { cost } = await planBackfill({ sql: tx, target: group, now, requestedSince: now, plan, historyLimit });
      if (cost.requests === 0) continue;
      const id = await queueBackfill(tx, {
        ...group,
        requestedAt: now,
        spec: { history: `${group.interval} ${group.quote} ${new Date(group.span.from).toISOString()}` },
        plannedRequests: cost.requests,
        priority: HISTORY_PRIORITY,
        requestedBy: AUDIT,
      });
      queued.push({ ...group, id, requests: cost.requests, slots: cost.slots });
    }
    return queued;
  }) as Promise<QueuedHistory[]>;
}

/** The first refresh of a series fetches everything younger than this: one request holds it. */
export function refreshedFrom(plan: Plan, interval: Interval, now: Instant): Instant {
  return ceilToGrid(now, interval) - rowsPerRequest(plan, interval) * INTERVAL_MS[interval];
}

function pastOf(plan: Plan, keep: Partial<Retention['candles']>, now: Instant): ReadonlyMap<Interval, Span> {
  return new Map(
    ALL_INTERVALS.flatMap((interval) => {
      const to = refreshedFrom(plan, interval, now);
      const span = keptPart({ from: 0, to }, interval, keep, now);
      return span.from < span.to ? [[interval, span] as const] : [];
    }),
  );
}
