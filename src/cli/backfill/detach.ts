/** `chandler backfill --detach`: records backfills for the service to run. */
import type { App } from '../../app.ts';
import { wantSeries } from '../../store/candle/series.ts';
import { queueBackfill } from '../../store/work/backfill-queue.ts';
import { liveInstances } from '../../store/work/instance.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { requesterName } from '../shell/owner.ts';
import { type BackfillCommandOptions, specOf } from './backfill-options.ts';
import { type PlanReport, type PlanReports, plansAsJson } from './plan-report.ts';

/** Records each interval that is `due` as a backfill of its own, and says so. */
export async function detachBackfills(
  app: App,
  out: Output,
  { reports, due }: { readonly reports: PlanReports; readonly due: PlanReports },
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<void> {
  const { priority = 0 } = options;
  const recorded: { readonly interval: string; readonly id: number; readonly priority: number }[] = [];
  for (const report of due) {
    const { interval } = report.target;
    const id = await record(app, report, { spec: specOf(coins, options, interval), priority });
    recorded.push({ interval, id, priority });
  }
  const services = await liveInstances(app.database.sql, app.clock.now());
  const isServed = services.some(({ roles }) => roles.includes('worker'));
  if (options.json) {
    const intervals = recorded.map((one) => ({ ...one, isServed }));
    const backfill = {
      state: 'queued',
      id: recorded[0]!.id,
      priority,
      isServed,
      ...(recorded.length === 1 ? {} : { intervals }),
    };
    printJson(out, { plan: plansAsJson(reports), backfill });
    return;
  }
  const next = isServed ? 'the service runs it' : 'no service is running: start one with chandler service to run it';
  for (const { id } of recorded) {
    out.write(`\nBackfill ${id} is recorded; ${next}. chandler backfills list shows its progress.\n`);
  }
}

async function record(
  { database: { sql }, clock }: App,
  { target, plan }: PlanReport,
  terms: { readonly spec: Readonly<Record<string, unknown>>; readonly priority: number },
): Promise<number> {
  const { coinIds, interval, quote, span } = target;
  return sql.begin(async (tx) => {
    await wantSeries(tx, { ...target, priority: 0 });
    return queueBackfill(tx, {
      ...terms,
      requestedAt: clock.now(),
      requestedBy: requesterName(),
      coinIds,
      interval,
      quote,
      span,
      plannedRequests: plan.cost.requests,
    });
  });
}
