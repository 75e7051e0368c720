/** The beginning of a command's backfill: what it wants is recorded, and that it is running. */
import { type WantedSeries, wantSeries } from '../../store/candle/series.ts';
import { startBackfill } from '../../store/work/backfill.ts';
import type { BackfillDeps, BackfillOptions } from './backfill.ts';
import { recountWaiting } from './recount.ts';

/** Resolves to its id. From now on its slots are its own: those that wait for a service count them no more. */
export async function startCommand(deps: BackfillDeps, options: BackfillOptions): Promise<number> {
  const { sql, owner } = deps;
  const { target, spec, planned, startedAt, requestedBy = null } = options;
  const asked: WantedSeries = { ...target, priority: 0 };
  await wantSeries(sql, asked);
  const { coinIds, interval, quote, span } = target;
  const plannedRequests = planned.cost.requests;
  const started = { requestedAt: startedAt, startedAt, spec, coinIds, interval, quote, span, plannedRequests };
  const id = await startBackfill(sql, { ...started, owner, requestedBy });
  await recountWaiting({ ...deps, now: startedAt }, id);
  return id;
}
