/** `chandler backfill --detach`: records backfills for the service to run. */
import type { App } from '../../app.ts';
import { type Recorded, recordBackfill } from '../../background/actions/record-backfill.ts';
import { formatCounted } from '../../core/format.ts';
import { liveInstances } from '../../store/work/instance.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { requesterName } from '../shell/owner.ts';
import { type BackfillCommandOptions, specOf } from './backfill-options.ts';
import { type PlanReports, plansAsJson } from './plan-report.ts';

/** Records each `due` interval as a separate backfill, and prints that. */
export async function detachBackfills(
  app: App,
  out: Output,
  { reports, due }: { readonly reports: PlanReports; readonly due: PlanReports },
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<void> {
  const { priority = 0 } = options;
  const recorded: (Recorded & { readonly interval: string; readonly priority: number })[] = [];
  for (const report of due) {
    const { interval } = report.target;
    const { target, historyLimit, session } = report;
    const { plan, historyLimits } = session;
    const terms = { spec: specOf(coins, options, interval), priority, requestedBy: requesterName() };
    const one = await recordBackfill(app, { target, plan, historyLimit, historyLimits }, terms);
    recorded.push({ interval, ...one, priority });
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
  for (const { id, requests, othersSlots } of recorded) {
    out.write(`\nBackfill ${id} is recorded; ${next}. chandler backfills list shows its progress.\n`);
    if (othersSlots === 0) continue;
    const left = `the ${formatCounted(requests, 'request')} for the rest`;
    out.write(
      `Backfills that go before it fetch ${formatCounted(othersSlots, 'slot')} of it already${requests === 0 ? '' : `; it sends ${left}`}.\n`,
    );
  }
}
