/** Records a backfill for the service to run. */
import type { App } from '../../app.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import { recountWaiting } from '../../ingest/backfill/recount.ts';
import type { HistoryLimit } from '../../ingest/limits/history-limit.ts';
import type { LearnedLimits } from '../../ingest/limits/learned-limits.ts';
import { queueBackfill } from '../../store/backfill/backfill-queue.ts';
import { wantSeries } from '../../store/candle/series.ts';

export type Recorded = {
  readonly id: number;
  /** Its own requests, without those for slots that belong to backfills before it. */
  readonly requests: number;
  readonly othersSlots: number;
};

type Planned = {
  readonly target: Parameters<typeof planBackfill>[0]['target'];
  readonly plan: Plan;
  readonly historyLimit: HistoryLimit;
  readonly historyLimits: LearnedLimits;
};

type Terms = {
  /** The request, in the words of the command. */
  readonly spec: Readonly<Record<string, unknown>>;
  readonly priority: number;
  /** Who requested it. */
  readonly requestedBy: string;
};

export async function recordBackfill(
  { config, database: { sql }, clock }: App,
  { target, plan, historyLimit, historyLimits }: Planned,
  { spec, priority, requestedBy }: Terms,
): Promise<Recorded> {
  const { coinIds, interval, quote, span } = target;
  const now = clock.now();
  const place = { id: null, priority };
  const recorded = (await sql.begin(async (tx) => {
    await wantSeries(tx, { ...target, priority: 0 });
    const own = await planBackfill({ sql: tx, target, now, requestedSince: now, plan, historyLimit, place });
    const plannedRequests = own.cost.requests;
    const requested = { requestedAt: now, requestedBy, coinIds, interval, quote, span };
    const id = await queueBackfill(tx, { spec, priority, ...requested, plannedRequests });
    return { id, requests: plannedRequests, othersSlots: own.othersSlots };
  })) as Recorded;
  await recountWaiting({ sql, now, plan, historyLimits, keep: config.keep.candles }, recorded.id);
  return recorded;
}
