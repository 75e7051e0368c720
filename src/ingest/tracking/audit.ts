/**
 * The audit of gaps: what is missing of the tracked series behind their newest end, which freshness does not reach, becomes a
 * backfill for the service, one for each kind of series; it asks nothing itself.
 */
import type { Clock } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { ceilToGrid, DAY, INTERVAL_MS } from '../../core/interval.ts';
import { type Keep, keptPart } from '../../core/settings/retention-settings.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { isHistoryPending, queueBackfill, readHistoryGroups } from '../../store/work/backfill-queue.ts';
import { planBackfill } from '../backfill/plan.ts';
import type { Walls } from '../limits/learned-limits.ts';

/** After what somebody asked for by hand. */
export const HISTORY_PRIORITY = -10;
/** What could not be had is tried again so much later. */
const AGAIN_MS = DAY;

/** Resolves to the numbers of the backfills that it queued. Safe at any time; of two at once the second finds what the first queued. */
export async function auditGaps({
  sql,
  clock,
  plan,
  walls,
  keep = {},
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly plan: Plan;
  readonly walls: Walls;
  /** How long candles are kept: what is older would be removed again. */
  readonly keep?: Partial<Keep['candles']>;
}): Promise<readonly number[]> {
  await walls.reload();
  const queued: number[] = [];
  for (const { interval, quote, since, coinIds } of await readHistoryGroups(sql)) {
    const now = clock.now();
    const to = ceilToGrid(now, interval) - plan.candlesPerRequest * INTERVAL_MS[interval];
    const span = keptPart({ from: ceilToGrid(since, interval), to }, interval, keep, now);
    if (span.from >= to) continue;
    if (await isHistoryPending(sql, { interval, quote, coinIds, from: span.from }, now - AGAIN_MS)) continue;
    const target = { coinIds, interval, quote, span };
    const history = `${interval} ${quote} ${new Date(span.from).toISOString()}`;
    const { cost } = await planBackfill({ sql, target, now, askedSince: now, plan, wall: walls.of(interval) });
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
