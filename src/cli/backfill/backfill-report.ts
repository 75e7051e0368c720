/** The result of a backfill, as values and as JSON: stored, revised, quarantined, refused and why, requests sent, gaps left. */
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import { toIso, withIso } from '../../core/format.ts';
import type { BackfillRun } from '../../ingest/backfill/backfill.ts';
import { type BackfillPlan, planBackfill } from '../../ingest/backfill/plan.ts';
import type { BackfillEnd } from '../../ingest/backfill/progress.ts';
import {
  DATABASE_IS_LOCKED,
  DATABASE_IS_UNAVAILABLE,
  DATABASE_STORES_NOTHING,
  type OutageReason,
  QUEUE_IS_UNAVAILABLE,
} from '../../ingest/request/outage-retry.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import type { RemainingSlots } from '../../views/operations/remaining-slots.ts';
import { finishByLimits, forecastOf, type PlanReport, type PlanReports, sum } from './plan-report.ts';

/** The result for one interval. */
export type BackfillReport = {
  readonly planned: PlanReport;
  readonly run: BackfillRun;
  /** The requests left, and when they can be done. Null unless the run was stopped before its end. */
  readonly rest: { readonly requests: number; readonly finishAt: Instant | null } | null;
};

export async function makeBackfillReport(app: App, planned: PlanReport, run: BackfillRun): Promise<BackfillReport> {
  return {
    planned,
    run,
    rest: run.end.kind === 'stopped' ? await nullWithoutDatabase(forecastRest(app, planned, run.end)) : null,
  };
}

/** Null when the database is unavailable. */
export function nullWithoutDatabase<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: unknown) => {
    if (!isDatabaseUnavailable(error)) throw error;
    return null;
  });
}

async function forecastRest(
  app: App,
  report: PlanReport,
  end: Extract<BackfillEnd, { kind: 'stopped' }>,
): Promise<BackfillReport['rest']> {
  const { session } = report;
  const lateUntil = end.reason === 'day is late' ? end.until : report.lateUntil;
  const now = app.clock.now();
  const { requests } = (await planMissing(app, report, now)).cost;
  const forecast = forecastOf({ ...report, lateUntil, now, quota: await session.quota.state() }, requests);
  return { requests, finishAt: finishByLimits(forecast, requests) };
}

/** The plan of what is still missing, without slots that were requested after `since` and got no final answer. */
function planMissing(
  { database: { sql }, clock }: App,
  { target, session }: Pick<PlanReport, 'target' | 'session'>,
  since: Instant,
): Promise<BackfillPlan> {
  const historyLimit = session.historyLimits.of(target.interval);
  return planBackfill({ sql, target, now: clock.now(), requestedSince: since, plan: session.plan, historyLimit });
}

/** The counts of the database, or of this process when the database was unavailable. */
export function countsOf({ run }: BackfillReport) {
  return run.totals ?? run.seen;
}

/** Slots that the same command can request again: the upstream answered them, but not finally. Null when there are none. */
export function retryableOf(
  left: readonly RemainingSlots[],
): { readonly slots: number; readonly from: Instant } | null {
  const again = left.flatMap(({ fate, nextAskAt, slots }) =>
    fate === 'later' && nextAskAt !== null ? [{ slots, from: nextAskAt }] : [],
  );
  if (again.length === 0) return null;
  return { slots: sum(again, ({ slots }) => slots), from: Math.min(...again.map(({ from }) => from)) };
}

/** The text when an outage is over. Nobody knows beforehand when that will be. */
const RECOVERED: Readonly<Record<OutageReason, string>> = {
  [DATABASE_IS_UNAVAILABLE]: 'the database recovered',
  [DATABASE_STORES_NOTHING]: 'the database stores again',
  [DATABASE_IS_LOCKED]: 'the lock of the database was released',
  [QUEUE_IS_UNAVAILABLE]: 'the queue recovered',
};

export function recoveryOf(reason: OutageReason): string {
  return RECOVERED[reason];
}

export function isOutage(reason: string): reason is OutageReason {
  return Object.hasOwn(RECOVERED, reason);
}

/**
 * For several intervals: the sums under the same names, `id` of the first and `end` of the last, each interval separately under
 * `intervals`, and under `notStarted` those that did not run because an earlier one ended early.
 */
export function backfillsAsJson(reports: readonly BackfillReport[], notStarted: PlanReports): Record<string, unknown> {
  const last = reports.at(-1)!;
  const totals = reports.map(({ run }) => run.totals).filter((one) => one !== null);
  const left = reports.some(({ run }) => run.left === null) ? null : reports.flatMap(({ run }) => run.left!);
  const retryable = retryableOf(left ?? []);
  const isKnown = totals.length === reports.length;
  return {
    id: reports[0]!.run.id,
    ...endAsJson(last),
    requests: sum(reports, (report) => countsOf(report).requests),
    requestsPlanned: plannedRequests(reports, notStarted),
    catalogueRequests: sum(reports, ({ planned }) => planned.target.catalogueRequests),
    rows: isKnown ? sum(totals, ({ rows }) => rows) : null,
    stored: sum(reports, (report) => countsOf(report).stored),
    revised: sum(reports, (report) => countsOf(report).revised),
    quarantined: sum(reports, (report) => countsOf(report).quarantined),
    byOutcome: isKnown ? added(totals.flatMap(({ byOutcome }) => Object.entries(byOutcome))) : null,
    refused: reports.flatMap(({ run }) => [...run.refused].map(([reason, of]) => ({ reason, ...of }))),
    failed: reports.flatMap(({ run }) =>
      run.failed.map(({ coinId, span, message }) => ({ coinId, ...withIso(span, 'from', 'to'), message })),
    ),
    gaps: left && addedUp(left).map((one) => withIso(one, 'nextAskAt')),
    retryable: retryable && withIso(retryable, 'from'),
    tookMs: sum(reports, ({ run }) => run.tookMs),
    ...(reports.length + notStarted.length > 1 ? eachAsJson(reports, notStarted) : {}),
  };
}

/** The planned requests of the intervals that ran, and of those that did not run. */
export function plannedRequests(reports: readonly BackfillReport[], left: PlanReports): number {
  return sum([...reports.map(({ planned }) => planned), ...left], ({ plan }) => plan.cost.requests);
}

function eachAsJson(reports: readonly BackfillReport[], notStarted: PlanReports) {
  return {
    intervals: reports.map((report) => ({
      interval: report.planned.target.interval,
      ...backfillsAsJson([report], []),
    })),
    notStarted: notStarted.map(({ target }) => target.interval),
  };
}

function endAsJson({ run: { end }, rest }: BackfillReport): Record<string, unknown> {
  return {
    end: end.kind,
    ...(end.kind === 'stopped' ? { until: isOutage(end.reason) ? null : toIso(end.until), reason: end.reason } : {}),
    ...(end.kind === 'configurationError' ? { message: end.message } : {}),
    ...(rest === null ? {} : { requestsLeft: rest.requests, finishAt: toIso(rest.finishAt) }),
  };
}

/** What is left of several intervals together, by reason and fate. */
function addedUp(left: readonly RemainingSlots[]): RemainingSlots[] {
  const total = new Map<string, RemainingSlots>();
  for (const one of left) {
    const key = `${one.reason}, ${one.fate}`;
    const { slots, nextAskAt } = total.get(key) ?? { slots: 0, nextAskAt: null };
    const first =
      nextAskAt === null || one.nextAskAt === null ? (nextAskAt ?? one.nextAskAt) : Math.min(nextAskAt, one.nextAskAt);
    total.set(key, { ...one, slots: slots + one.slots, nextAskAt: first });
  }
  return [...total.values()];
}

function added(pairs: readonly (readonly [name: string, count: number])[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [name, count] of pairs) total[name] = (total[name] ?? 0) + count;
  return total;
}
