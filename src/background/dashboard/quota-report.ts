/** The quota as its page shows it: the facts of `chandler quota`, `schedule` and `plan`, in one read. */
import type { App } from '../../app.ts';
import { type Budget, schedulesOf } from '../../budget.ts';
import { effectiveLimits } from '../../config.ts';
import { documentedDepth, PLAN_NAMES, type PlanName, planOf } from '../../contract/plan/plans.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../../core/calendar.ts';
import { formatRate } from '../../core/format.ts';
import type { Interval } from '../../core/interval.ts';
import type { PlanLine, QuotaReport, QuotaWindow, ScheduleLine } from '../../dashboard/parts/reports.ts';
import { averageReservations, type Demand, readDemand } from '../../ingest/schedule/demand.ts';
import type { ComingWork } from '../../ingest/schedule/needs.ts';
import { requestsIn, type Schedule } from '../../ingest/schedule/schedule-plan.ts';
import { forecast, forecastFrom } from '../../quota/forecast.ts';
import type { QuotaState } from '../../quota/quota.ts';
import { latestRuns } from '../../store/work/schedule-run.ts';
import { readBackfills } from '../../views/backfills/backfills.ts';
import { hasManySeries } from '../../views/operations/series-filter.ts';
import { describeHoles, readHolesReport } from '../operator/holes.ts';
import { describeLast, describeProblem } from '../operator/schedule-runs.ts';
import { describeScheduling } from '../operator/scheduling.ts';
import { readSpenders } from '../operator/spenders.ts';
import { readHolds } from './holds.ts';
import { forecastOf, requestsOfOpen } from './window-forecast.ts';

/** Says how Chandler knows the plan of the account. */
export const PLAN_SOURCES = {
  configured: 'as configured',
  account: 'as the upstream reports',
  assumed: 'assumed, not confirmed yet',
};

/** What the schedules will request under the plan of the account, for `readQuotaReport`. */
export function readDemandOf(
  { clock, database: { sql } }: App,
  { accountId, plan, quota }: Pick<Budget, 'accountId' | 'plan' | 'quota'>,
  coming: ComingWork,
): Promise<Demand> {
  return readDemand(sql, { accountId, plan, now: clock.now(), quota, coming });
}

export async function readQuotaReport(app: App, budget: Budget, demand: Demand): Promise<QuotaReport> {
  const { sql } = app.database;
  const { accountId, plan, planSource, quota, schedules } = budget;
  const now = app.clock.now();
  const [{ state, holds }, spenders, runs, backfills, holes] = await Promise.all([
    readHolds(app, budget),
    readSpenders(app, quota),
    latestRuns(
      sql,
      schedules.map(({ name }) => name),
    ),
    readBackfills(sql, { all: false }),
    // With very many series, the read would take too long while a visitor waits.
    hasManySeries(sql).then((isMany) => (isMany ? null : readHolesReport(app, budget))),
  ]);
  const openRequests = requestsOfOpen(backfills, state.now);
  const openIntervals = [...new Set(backfills.flatMap(({ state, interval }) => (state === 'paused' ? [] : interval)))];
  return {
    accountId,
    plan,
    planSource: PLAN_SOURCES[planSource],
    windows: windowsOf(budget, state, openRequests),
    holds,
    notes: [
      describeRate(state),
      describeScheduling(budget.scheduling, now),
      holes === null ? null : describeHoles(holes, now),
    ].filter((note) => note !== null),
    spenders,
    schedules: schedules.map((schedule) => lineOf(schedule, runs, now)),
    plans: PLAN_NAMES.map((name) => planLine(app, { name, budget, demand, openRequests, openIntervals, state })),
    openRequests,
  };
}

function windowsOf({ reserved }: Budget, state: QuotaState, open: number): QuotaWindow[] {
  const { now, rate } = state;
  const reservations = reserved(now);
  return (['month', 'day'] as const).map((name) => {
    const { start, reset, spent, limit } = state[name];
    const window = { start, reset, spent, limit, reserved: reservations[name] };
    return { name, ...window, forecast: forecastOf({ ...window, now, open, perSecond: rate.limit, day: state.day }) };
  });
}

export function describeRate({ rate: { limit, now } }: QuotaState): string {
  if (limit === null) return 'Rate: unlimited.';
  const isSlowed = now !== null && now < limit;
  const slowed = isSlowed ? `, now ${formatRate(now)} because the upstream answered "too many requests"` : '';
  return `Rate: at most ${formatRate(limit)}${slowed}.`;
}

function lineOf(schedule: Schedule, runs: Awaited<ReturnType<typeof latestRuns>>, now: number): ScheduleLine {
  const { name, fetches, cadence, requests } = schedule;
  const run = runs.find((one) => one.schedule === name);
  return {
    name,
    fetches,
    cron: cadence?.cron ?? null,
    perRun: Math.ceil(requests),
    perDay: requestsIn([schedule], dayStart(now), dayReset(now)),
    perMonth: requestsIn([schedule], monthStart(now), monthReset(now)),
    lastRun: describeLast(run, now),
    next: cadence?.next(now) ?? null,
    problem: describeProblem(run, now),
  };
}

type PlanTerms = {
  readonly name: PlanName;
  readonly budget: Budget;
  readonly demand: Demand;
  readonly openRequests: number;
  readonly openIntervals: readonly Interval[];
  readonly state: QuotaState;
};

/** A different plan means a new account, which has not used any quota yet. For the present plan, the spent requests count. */
function planLine({ config }: App, { name, budget, demand, openRequests, openIntervals, state }: PlanTerms): PlanLine {
  const { now } = state;
  const isPresent = name === budget.plan;
  const limits = isPresent ? budget.limits : effectiveLimits(name, { ...config, limits: {} });
  const { freshnessPerDay, catalogue, scheduling } = demand;
  const schedules = isPresent ? budget.schedules : schedulesOf(config, name, limits, { freshnessPerDay, catalogue });
  const ofSchedules = requestsIn(schedules, monthStart(now), monthReset(now));
  const plan = planOf(name);
  const requests = openRequests;
  const { finishAt, bindingWindow } = isPresent
    ? forecastFrom(state, { requests, limits, reserved: budget.reserved })
    : forecast({
        ...{ requests, limits, now, reserved: averageReservations(schedules, scheduling) },
        spent: { day: 0, month: 0 },
      });
  const spent = isPresent ? state.month.spent : 0;
  const kept = isPresent ? budget.reserved(now).month : ofSchedules;
  const perMonth = isPresent ? state.month.limit : limits.perMonth;
  const isPossible = openIntervals.every((interval) => documentedDepth(plan, interval) !== 0);
  return {
    ...{ name, isPresent, ...limits, perMonth },
    schedules: ofSchedules,
    spent,
    left: perMonth === null ? null : Math.max(0, perMonth - spent - kept),
    historyMs: documentedDepth(plan, '24h'),
    intervals: plan.intervals,
    backfillsDone: !isPossible
      ? 'not possible'
      : finishAt === null
        ? 'never'
        : bindingWindow === null
          ? 'no limit delays them'
          : finishAt,
  };
}
