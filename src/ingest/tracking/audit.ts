/**
 * The audit of gaps: missing candles of the tracked series that lie too far back for freshness become a backfill of the service, one for
 * each interval, quote and start. It sends no requests itself.
 */
import type { Clock } from '../../clock.ts';
import { type Plan, rowsPerRequest } from '../../contract/plan/plans.ts';
import { ceilToGrid, DAY, INTERVAL_MS } from '../../core/interval.ts';
import { type Keep, keptPart } from '../../core/settings/retention-settings.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { isHistoryPending, queueBackfill, readHistoryGroups } from '../../store/work/backfill-queue.ts';
import { planBackfill } from '../backfill/plan.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';

/** Lower than backfills that a person requested. */
export const HISTORY_PRIORITY = -10;
/** After a backfill that could not fetch everything, the next one waits this long. */
const RETRY_MS = DAY;

/** Resolves to the ids of the backfills that it queued. Safe at any time: of two audits at once, the second finds what the first queued. */
export async function auditGaps({
  sql,
  clock,
  plan,
  historyLimits,
  keep = {},
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly plan: Plan;
  readonly historyLimits: LearnedLimits;
  /** How long candles are kept; older ones would be removed again. */
  readonly keep?: Partial<Keep['candles']>;
}): Promise<readonly number[]> {
  await historyLimits.reload();
  const queued: number[] = [];
  for (const { interval, quote, since, coinIds } of await readHistoryGroups(sql)) {
    const now = clock.now();
    const to = ceilToGrid(now, interval) - rowsPerRequest(plan, interval) * INTERVAL_MS[interval];
    const span = keptPart({ from: ceilToGrid(since, interval), to }, interval, keep, now);
    if (span.from >= to) continue;
    if (await isHistoryPending(sql, { interval, quote, coinIds, from: span.from }, now - RETRY_MS)) continue;
    const target = { coinIds, interval, quote, span };
    const history = `${interval} ${quote} ${new Date(span.from).toISOString()}`;
    const { cost } = await planBackfill({
      sql,
      target,
      now,
      askedSince: now,
      plan,
      historyLimit: historyLimits.of(interval),
    });
    if (cost.requests === 0) continue;
    queued.push(
      await queueBackfill(sql, {
        ...target,
        requestedAt: now,
        spec: { history },
        plannedRequests: cost.requests,
        priority: HISTORY_PRIORITY,
        requestedBy: 'the audit of gaps',
      }),
    );
  }
  return queued;
}
