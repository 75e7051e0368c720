/** The start of a command's backfill. It records what the backfill wants, and that it is running. */
import type { Instant } from '../../clock.ts';
import { startBackfill } from '../../store/backfill/backfill.ts';
import { type WantedSeries, wantSeries } from '../../store/candle/series.ts';
import type { BackfillPlan, BackfillTarget } from './plan.ts';
import { type RecountDeps, recountWaiting } from './recount.ts';

export type CommandStart = {
  readonly target: BackfillTarget;
  /** The request as the user made it. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** `user@host`. */
  readonly requestedBy?: string;
  readonly planned: BackfillPlan;
  readonly startedAt: Instant;
};

/** Resolves to the id of the backfill. From now on the backfill owns its slots: backfills that wait for a service no longer count them. */
export async function startCommand(
  deps: Omit<RecountDeps, 'now'> & { readonly owner: string },
  { target, spec, planned, startedAt, requestedBy }: CommandStart,
): Promise<number> {
  const { sql, owner } = deps;
  const wanted: WantedSeries = { ...target, priority: 0 };
  await wantSeries(sql, wanted);
  const { coinIds, interval, quote, span } = target;
  const plannedRequests = planned.cost.requests;
  const started = { requestedAt: startedAt, startedAt, spec, coinIds, interval, quote, span, plannedRequests };
  const id = await startBackfill(sql, { ...started, owner, requestedBy: requestedBy ?? null });
  await recountWaiting({ ...deps, now: startedAt }, id);
  return id;
}
