/** `chandler backfill --detach`: records backfills for the service to run. */
import type { App } from '../../app.ts';
import { formatCounted } from '../../core/format.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import { recountWaiting } from '../../ingest/backfill/recount.ts';
import { queueBackfill } from '../../store/backfill/backfill-queue.ts';
import { wantSeries } from '../../store/candle/series.ts';
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
  const recorded: (Recorded & { readonly interval: string; readonly priority: number })[] = [];
  for (const report of due) {
    const { interval } = report.target;
    const one = await record(app, report, { spec: specOf(coins, options, interval), priority });
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

type Recorded = {
  readonly id: number;
  /** Its own: without the slots that belong to backfills before it. */
  readonly requests: number;
  readonly othersSlots: number;
};

async function record(
  { config, database: { sql }, clock }: App,
  { target, session, historyLimit }: PlanReport,
  terms: { readonly spec: Readonly<Record<string, unknown>>; readonly priority: number },
): Promise<Recorded> {
  const { coinIds, interval, quote, span } = target;
  const { plan, historyLimits } = session;
  const now = clock.now();
  const place = { id: null, priority: terms.priority };
  const recorded = (await sql.begin(async (tx) => {
    await wantSeries(tx, { ...target, priority: 0 });
    const own = await planBackfill({ sql: tx, target, now, askedSince: now, plan, historyLimit, place });
    const plannedRequests = own.cost.requests;
    const requested = { requestedAt: now, requestedBy: requesterName(), coinIds, interval, quote, span };
    const id = await queueBackfill(tx, { ...terms, ...requested, plannedRequests });
    return { id, requests: plannedRequests, othersSlots: own.othersSlots };
  })) as Recorded;
  await recountWaiting({ sql, now, plan, historyLimits, keep: config.keep.candles }, recorded.id);
  return recorded;
}
