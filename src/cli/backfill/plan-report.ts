/** The cost of a backfill and when it will be done, as values and as JSON: under the present plan, and under every other plan. */
import type { Instant } from '../../clock.ts';
import { PLAN_NAMES, type PlanName } from '../../contract/plan/plans.ts';
import { toIso } from '../../core/format.ts';
import { isPriceInterval, type PriceInterval, widthOf } from '../../core/interval.ts';
import type { BackfillPlan, PlanCost } from '../../ingest/backfill/plan.ts';
import { expectedDepth, type HistoryLimit } from '../../ingest/limits/history-limit.ts';
import { lastDayOf } from '../../ingest/limits/last-day.ts';
import type { Scheduling } from '../../ingest/schedule/scheduling.ts';
import type { Session } from '../../ingest/session.ts';
import { type Forecast, forecast, forecastFrom } from '../../quota/forecast.ts';
import type { Limits, QuotaState, Reserved } from '../../quota/quota.ts';
import type { ResolvedTarget } from '../input/target.ts';
import type { TrackedDaily } from './tracked-daily.ts';

/** The plan of one interval. */
export type PlanReport = {
  readonly target: ResolvedTarget;
  readonly plan: BackfillPlan;
  /** Prices of the same coins and span, if the plan gives no candles, or only the last full day of daily ones. Otherwise null. */
  readonly prices: PricesInstead | null;
  /** Set if the plan gives only the last full day of daily candles. Null when it gives more, or when no coin is active. */
  readonly trackedDaily: TrackedDaily | null;
  /** When Chandler requests again, if the plan gives only the last full day and the upstream has not moved on to it yet. Otherwise null. */
  readonly lateUntil: Instant | null;
  /** The requests that the left-out coins would cost. */
  readonly requestsOfLeftOut: number;
  readonly session: Pick<Session, 'plan' | 'planSource' | 'limits' | 'accountId' | 'historyLimits' | 'quota'>;
  readonly historyLimit: HistoryLimit;
  readonly quota: QuotaState;
  /** Who runs the schedules. Chandler reserves nothing for schedules that nobody runs. */
  readonly scheduling: Scheduling;
  readonly reserved: (at: Instant) => Reserved;
  readonly now: Instant;
  /** Variables that override limits of the present plan. */
  readonly overrides: readonly string[];
  /** The documented limits of a plan for this kind of account, and the part of them that its schedules reserve. */
  readonly termsOf: (plan: PlanName) => Terms;
};
/** Prices as a replacement for candles. */
export type PricesInstead = {
  readonly interval: PriceInterval;
  readonly cost: PlanCost;
  /** How far back the plan gives them, in milliseconds. Null when there is no limit. */
  readonly depthMs: number | null;
  readonly command: string;
};

/** Whether this plan gives only the last full day of daily candles. */
export function isOfLastDay({
  historyLimit,
  target,
  now,
}: Pick<PlanReport, 'historyLimit' | 'target' | 'now'>): boolean {
  return lastDayOf(expectedDepth(historyLimit), target.interval, now) !== null;
}

function heldAfterAsJson({ after, everyDays, thisMonth }: TrackedDaily) {
  return { ...after, everyDays, everyDaysThisMonth: (thisMonth ?? { everyDays }).everyDays };
}

/** The plans of one or several intervals of the same coins; never empty. */
export type PlanReports = readonly PlanReport[];

type Terms = { readonly limits: Limits; readonly reserved: (at: Instant) => Reserved };
type Budgeted = Pick<PlanReport, 'quota' | 'reserved' | 'now'>;

export function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}

/** How many requests a backfill may still send in the window that is used up first. Null without limits. */
export function quotaLeft(report: Budgeted): number | null {
  return bindingWindow(report)?.left ?? null;
}

/** The window that is used up first, the requests that a backfill may still send in it, and those reserved for the schedules. */
export function bindingWindow({ quota, reserved, now }: Budgeted) {
  const windows = (['day', 'month'] as const).flatMap((name) => {
    const { limit, spent } = quota[name];
    const forSchedules = reserved(now)[name];
    return limit === null ? [] : [{ name, forSchedules, left: Math.max(0, limit - spent - forSchedules) }];
  });
  return windows.sort((a, b) => a.left - b.left)[0] ?? null;
}

/** When so many requests of this account will be done, counted from `report.now`. */
export function forecastOf(report: PlanReport, requests: number): Forecast {
  const { quota, session, reserved } = report;
  const now = Math.max(report.now, report.lateUntil ?? 0);
  return forecastFrom({ ...quota, now }, { requests, limits: session.limits, reserved });
}

/** The cost under a plan, and when it would be done. A different plan means a new account, which has not used any quota yet. */
export function costUnder(reports: PlanReports, name: PlanName) {
  const [first] = reports;
  const { session, termsOf, now } = first!;
  const isPresent = name === session.plan.name;
  const costs = reports.map(({ plan }) => (isPresent ? plan.cost : plan.underPlans[name]));
  const requests = sum(costs, (cost) => cost.requests);
  const terms = isPresent ? { limits: session.limits, reserved: first!.reserved } : termsOf(name);
  const done = isPresent
    ? forecastOf(first!, requests)
    : forecast({ requests, ...terms, spent: { day: 0, month: 0 }, now });
  return {
    isPresent,
    limits: terms.limits,
    requests,
    slots: sum(costs, (cost) => cost.slots),
    refusedSlots: sum(costs, (cost) => cost.refusedSlots),
    forecast: done,
  };
}

export const NO_LIMIT = 'no limit delays it';
export const NO_BUDGET = 'the quota leaves nothing for a backfill';

/** Why no finish can be forecast. Null when it can. Without limits it depends on how fast the upstream answers. */
export function explainNoFinish({ finishAt, bindingWindow }: Forecast, requests: number): string | null {
  if (finishAt === null) return NO_BUDGET;
  return requests > 0 && bindingWindow === null ? NO_LIMIT : null;
}

/** When the limits allow it to be done. Null when that is never, or when no limit delays it. */
export function finishByLimits(forecast: Forecast, requests: number): Instant | null {
  return explainNoFinish(forecast, requests) === null ? forecast.finishAt : null;
}

/** For several intervals: the sums under the same names, and each interval separately under `intervals`. */
export function plansAsJson(reports: PlanReports): Record<string, unknown> {
  const [first] = reports;
  const { session, overrides } = first!;
  const targets = reports.map(({ target }) => target);
  const only = reports.length === 1 ? first! : null;
  const cost = costUnder(reports, session.plan.name);
  return {
    account: session.accountId,
    plan: session.plan.name,
    coins: first!.target.coinIds.length,
    coinsWithGaps: Math.max(...reports.map(({ plan }) => plan.coinsWithGaps)),
    interval: targets.map(({ interval }) => interval).join(','),
    quote: first!.target.quote,
    from: toIso(Math.min(...targets.map(({ span }) => span.from))),
    to: toIso(Math.max(...targets.map(({ span }) => span.to))),
    notKeptBefore: only === null || only.target.keptMs === null ? null : toIso(only.target.span.from),
    catalogueRequests: sum(targets, ({ catalogueRequests }) => catalogueRequests),
    ...costAsJson(cost),
    leftOut: { coins: first!.target.leftOut.length, requests: sum(reports, (report) => report.requestsOfLeftOut) },
    slotsWaiting: sum(reports, ({ plan }) => plan.waitingSlots),
    slotsRefused: sum(reports, ({ plan }) => plan.refusedSlots),
    historyLimit: only === null ? null : historyLimitAsJson(only),
    endpoint: only === null ? null : endpointOf(only),
    heldAfter: only?.trackedDaily ? heldAfterAsJson(only.trackedDaily) : null,
    lateUntil: only === null ? null : toIso(only.lateUntil),
    prices: only === null ? null : pricesAsJson(only),
    quotaLeft: quotaLeft(first!),
    quotaReserved: bindingWindow(first!)?.forSchedules ?? null,
    overrides,
    plans: PLAN_NAMES.map((name) => ({ plan: name, ...costAsJson(costUnder(reports, name)) })),
    ...(only === null ? { intervals: reports.map((report) => plansAsJson([report])) } : {}),
  };
}

function endpointOf(report: PlanReport): string {
  if (isPriceInterval(report.target.interval)) return 'tickers/historical';
  return isOfLastDay(report) ? 'ohlcv/latest' : 'ohlcv/historical';
}

function pricesAsJson({ prices }: PlanReport) {
  if (prices === null) return null;
  const { requests, slots, refusedSlots } = prices.cost;
  return {
    interval: widthOf(prices.interval),
    requests,
    rowsExpected: slots,
    slotsBeyondPlan: refusedSlots,
    command: prices.command,
  };
}

function costAsJson({ requests, slots, refusedSlots, forecast }: ReturnType<typeof costUnder>) {
  return {
    requests,
    rowsExpected: slots,
    slotsBeyondPlan: refusedSlots,
    finishAt: toIso(finishByLimits(forecast, requests)),
    noFinishBecause: explainNoFinish(forecast, requests),
  };
}

function historyLimitAsJson({ historyLimit, plan }: PlanReport) {
  return {
    kind: historyLimit.kind,
    depthMs: expectedDepth(historyLimit),
    probe: plan.probe,
    requestsIfOpen: plan.costIfOpen.requests,
  };
}

/** The most requests that a backfill may send, because documented history limits may turn out not to exist. */
export function mostRequests(reports: PlanReports): number {
  return sum(reports, ({ plan }) => Math.max(plan.cost.requests, plan.costIfOpen.requests));
}
