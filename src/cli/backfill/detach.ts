/** `chandler backfill --detach`: records what is wanted, for the service to work off. */
import type { App } from '../../app.ts';
import { wantSeries } from '../../store/candle/series.ts';
import { queueBackfill } from '../../store/work/backfill-queue.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { requesterName } from '../shell/owner.ts';
import type { PlanReport } from './plan-report.ts';

export type Detached = {
  readonly id: number;
  readonly priority: number;
  /** A service is there that will take it over. */
  readonly isServed: boolean;
};

export async function detach(
  { database: { sql }, clock }: App,
  { target, plan }: Pick<PlanReport, 'target' | 'plan'>,
  { spec, priority }: { readonly spec: Readonly<Record<string, unknown>>; readonly priority: number },
): Promise<Detached> {
  const now = clock.now();
  const requestedBy = requesterName();
  const { coinIds, interval, quote, span } = target;
  const id = await sql.begin(async (tx) => {
    await wantSeries(tx, { ...target, priority: 0 });
    const plannedRequests = plan.cost.requests;
    return queueBackfill(tx, {
      requestedAt: now,
      spec,
      coinIds,
      interval,
      quote,
      span,
      plannedRequests,
      priority,
      requestedBy,
    });
  });
  const services = await liveInstances(sql, now);
  return { id, priority, isServed: services.some(({ roles }) => roles.includes('worker')) };
}

/** What is said of it. */
export function describeDetached({ id, isServed }: Detached): string {
  const next = isServed
    ? 'the service works it off'
    : 'no service is running: start one with chandler service, and it works it off';
  return `Backfill ${id} is recorded; ${next}. chandler backfills list shows how far it is.\n`;
}
