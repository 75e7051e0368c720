/** What a backfill will cost and when it is done, as values and as JSON: under this plan, and under every other. */
import type { Instant } from '../../clock.ts';
import { PLAN_NAMES, type PlanName } from '../../contract/plan/plans.ts';
import type { BackfillPlan } from '../../ingest/backfill/plan.ts';
import type { Wall } from '../../ingest/limits/history-limit.ts';
import { expectedDepth } from '../../ingest/limits/history-limit.ts';
import type { Session } from '../../ingest/session.ts';
import { type Forecast, forecast, forecastFrom } from '../../quota/forecast.ts';
import type { Limits, QuotaState, SetAside } from '../../quota/quota.ts';
import type { ResolvedTarget } from '../input/target.ts';
import { toIso } from '../output/json.ts';

export type PlanReport = {
  readonly target: ResolvedTarget;
  readonly plan: BackfillPlan;
  readonly session: Pick<Session, 'plan' | 'planSource' | 'limits' | 'accountId' | 'walls' | 'quota'>;
  readonly wall: Wall;
  readonly quota: QuotaState;
  readonly setAside: (at: Instant) => SetAside;
  readonly now: Instant;
  /** Variables that replace limits of this account's plan. */
  readonly overrides: readonly string[];
  /** What each plan allows this kind of account, by the documents, and what its schedules need of it. */
  readonly termsOf: (plan: PlanName) => Terms;
};

type Terms = { readonly limits: Limits; readonly setAside: (at: Instant) => SetAside };
type Budgeted = Pick<PlanReport, 'quota' | 'setAside' | 'now'>;

/** What a backfill may still spend in the window that binds first; null without limits. */
export function quotaLeft(report: Budgeted): number | null {
  return bindingWindow(report)?.left ?? null;
}

/** The window that binds first, what a backfill may still spend in it, and what is set aside there. */
export function bindingWindow({ quota, setAside, now }: Budgeted) {
  const windows = (['day', 'month'] as const).flatMap((name) => {
    const { limit, spent } = quota[name];
    const aside = setAside(now)[name];
    return limit === null ? [] : [{ name, aside, left: Math.max(0, limit - spent - aside) }];
  });
  return windows.sort((a, b) => a.left - b.left)[0] ?? null;
}

/** When `requests` of this account are done, from `report.now` on. */
export function forecastOf(report: PlanReport, requests: number): Forecast {
  return forecastUnder(report, requests, { limits: report.session.limits, setAside: report.setAside }, false);
}

/** The same under other terms; `fresh`: as an account of which nothing is spent yet. */
export function forecastUnder(
  report: PlanReport,
  requests: number,
  { limits, setAside }: Terms,
  fresh: boolean,
): Forecast {
  const { quota, now } = report;
  // Another plan is a new account: nothing of its month is spent yet, and nobody holds it.
  if (fresh) return forecast({ requests, limits, spent: { day: 0, month: 0 }, now, setAside });
  return forecastFrom({ ...quota, now }, { requests, limits, setAside });
}

export const NO_LIMIT = 'no limit slows it';
export const NO_BUDGET = 'the budget leaves nothing for a backfill';

/** Why there is no instant to name: what is asked as fast as it is answered is not known beforehand; null when there is one. */
export function whyNoFinish({ finishAt, bindingWindow }: Forecast, requests: number): string | null {
  if (finishAt === null) return NO_BUDGET;
  return requests > 0 && bindingWindow === null ? NO_LIMIT : null;
}

/** When it is done by the limits; null when that is never, or they say nothing about it. */
export function finishByLimits(forecast: Forecast, requests: number): Instant | null {
  return whyNoFinish(forecast, requests) === null ? forecast.finishAt : null;
}

export function planAsJson(report: PlanReport): Record<string, unknown> {
  const { target, plan, session, wall, termsOf } = report;
  const mine: Terms = { limits: session.limits, setAside: report.setAside };
  const done = (requests: number, terms: Terms, fresh: boolean) => {
    const forecast = forecastUnder(report, requests, terms, fresh);
    return { finishAt: toIso(finishByLimits(forecast, requests)), noFinishBecause: whyNoFinish(forecast, requests) };
  };
  return {
    account: session.accountId,
    plan: session.plan.name,
    coins: target.coinIds.length,
    coinsWithGaps: plan.coinsWithGaps,
    interval: target.interval,
    quote: target.quote,
    from: toIso(target.span.from),
    to: toIso(target.span.to),
    notKeptBefore: target.keptMs === null ? null : toIso(target.span.from),
    catalogueRequests: target.catalogueRequests,
    requests: plan.cost.requests,
    rowsExpected: plan.cost.slots,
    slotsBeyondPlan: plan.cost.refusedSlots,
    slotsWaiting: plan.waitingSlots,
    slotsRefused: plan.refusedSlots,
    wall: {
      kind: wall.kind,
      depthMs: expectedDepth(wall),
      probe: plan.probe,
      requestsIfOpen: plan.costIfOpen.requests,
    },
    quotaLeft: quotaLeft(report),
    ...done(plan.cost.requests, mine, false),
    overrides: report.overrides,
    plans: PLAN_NAMES.map((name) => {
      const isMine = name === session.plan.name;
      const cost = isMine ? plan.cost : plan.underPlans[name];
      return {
        plan: name,
        requests: cost.requests,
        rowsExpected: cost.slots,
        slotsBeyondPlan: cost.refusedSlots,
        ...done(cost.requests, isMine ? mine : termsOf(name), !isMine),
      };
    }),
  };
}
