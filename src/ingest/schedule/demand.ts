/** What the schedules of an account will request. From it follow the reservation, and what is left for the freshness of tracked series. */
import type { Instant } from '../../clock.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import { MINUTE } from '../../core/interval.ts';
import { type FreshnessBudget, freshnessBudget, HEADROOM } from '../../quota/achievable-ages.ts';
import { perDayOf } from '../../quota/coming-requests.ts';
import { forecast } from '../../quota/forecast.ts';
import type { Quota, QuotaState, Reserved } from '../../quota/quota.ts';
import { refreshesToday } from '../../quota/refresh-order.ts';
import { nothingReserved, reservedAt } from '../../quota/reservation.ts';
import { readRefusedIntervals } from '../../store/candle/refusal.ts';
import {
  type CatalogueDemand,
  type CatalogueKind,
  demandOf,
  readComingItems,
} from '../../store/catalogue/catalogue-item.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { SpenderRow } from '../../store/quota/quota.ts';
import { type ComingRefreshes, readComingRefreshes } from '../../store/tracking/tracked-series.ts';
import { readCounted } from '../../store/work/counted.ts';
import { readRunningSchedules } from '../../store/work/instance.ts';
import { latestRuns } from '../../store/work/schedule-run.ts';
import { isAnyCounting } from '../../views/operations/series-counts.ts';
import { hasManySeries } from '../../views/operations/series-filter.ts';
import { readRefusedKinds } from '../catalogue/catalogue-outcome.ts';
import { CATALOGUE_PLAN } from '../catalogue/catalogue-plan.ts';
import { FRESHNESS } from '../queue/chunk-job.ts';
import { averageNeeds, type ComingWork, comingNeeds, type KnownWork, needOfFreshness } from './needs.ts';
import type { Schedule } from './schedule-plan.ts';
import { SCHEDULE_NAMES } from './schedules.ts';
import { type Scheduling, schedulingOf } from './scheduling.ts';

/** What the schedules will actually request. */
export type Demand = {
  /** Requests a day for the freshness of tracked series, on average. */
  readonly freshnessPerDay: number;
  /** The wanted part of the catalogue. */
  readonly catalogue: CatalogueDemand;
  /** Kinds of the catalogue that the upstream refuses to this account, and until when Chandler does not request them. */
  readonly refused: Readonly<Partial<Record<CatalogueKind, Instant>>>;
  /** Which services run the schedules of this account. */
  readonly scheduling: Scheduling;
  /** What is due, and when. */
  readonly work: KnownWork;
  readonly state: QuotaState;
  readonly spenders: readonly SpenderRow[];
};

type DemandQuery = {
  readonly accountId: string;
  readonly plan: PlanName;
  readonly now: Instant;
  /** The account's quota. */
  readonly quota: Pick<Quota, 'state' | 'spenders'>;
  /** What is due, if the caller knows it; it may have been counted some time ago. */
  readonly coming?: ComingWork | undefined;
};

/** A service saves what is due under this name. Another format of `ComingWork` needs another name, because services of several versions share it. */
export const COMING_WORK = 'coming work, with ages';

/** The precision of due times where there are many series: a schedule hardly ever runs more often. */
const COUNTED_WITHIN_MS = 10 * MINUTE;

/** Counts what is due. It reads each series. */
export async function countComingWork(
  sql: SqlOrTransaction,
  now: Instant,
  withinMs = COUNTED_WITHIN_MS,
): Promise<ComingWork> {
  const [items, refreshes] = await Promise.all([
    readComingItems(sql, now, CATALOGUE_PLAN),
    readComingRefreshes(sql, { now, withinMs }),
  ]);
  return { readAt: now, items, refreshes };
}

/**
 * What is due. Where there are many series, this is the last count of a service, of any age: callers subtract what was due since then, and permits,
 * which need this each minute, do not wait for a count. If no service counts, this counts now.
 */
export async function readComingWork(sql: SqlOrTransaction, now: Instant): Promise<ComingWork> {
  const last = (await isAnyCounting(sql, now)) ? await readCounted<ComingWork>(sql, COMING_WORK) : null;
  if (last !== null) return last.answer;
  return countComingWork(sql, now, (await hasManySeries(sql)) ? COUNTED_WITHIN_MS : 0);
}

export async function readScheduling(
  sql: SqlOrTransaction,
  { accountId, now }: Pick<DemandQuery, 'accountId' | 'now'>,
): Promise<Scheduling> {
  return schedulingOf(await readRunningSchedules(sql, { accountId, now }), now);
}

export async function readDemand(sql: SqlOrTransaction, query: DemandQuery): Promise<Demand> {
  const { accountId, plan, now, quota } = query;
  // First and alone: when the database hangs, this blocks only one connection.
  const state = await quota.state();
  const [spenders, refused, scheduling, runs, coming, refusedIntervals] = await Promise.all([
    quota.spenders(),
    readRefusedKinds(sql, { accountId, plan, now }),
    readScheduling(sql, { accountId, now }),
    latestRuns(sql, SCHEDULE_NAMES),
    query.coming ?? readComingWork(sql, now),
    readRefusedIntervals(sql, plan),
  ]);
  return {
    freshnessPerDay: perDayOf(coming.refreshes),
    catalogue: demandOf(coming.items),
    refused,
    scheduling,
    work: { ...coming, runs, refusedIntervals },
    state,
    spenders,
  };
}

/**
 * Returns the requests reserved for the schedules from an instant until the end of its windows; none while no service runs them. `plan`, `quota`,
 * `schedule`, the metrics, the ETAs and the ledger all use this function.
 */
export function reservationsOf(schedules: readonly Schedule[], demand: Demand): (at: Instant) => Reserved {
  const { scheduling, work, spenders } = demand;
  if (scheduling.kind === 'none') return nothingReserved;
  const freshness = schedules.find(({ name }) => name === FRESHNESS);
  const budget = freshnessBudgetOf(schedules, demand);
  const spentToday = spentOnFreshness(spenders);
  const needs = [
    ...comingNeeds(schedules, work),
    ...(freshness === undefined ? [] : needOfFreshness(freshness, work, { budget, spentToday })),
  ];
  return (at) => reservedAt(at, needs);
}

/** The same for a plan that the account does not have: nothing is known about what would be due under it. */
export function averageReservations(schedules: readonly Schedule[], { kind }: Scheduling): (at: Instant) => Reserved {
  const needs = kind === 'none' ? [] : averageNeeds(schedules);
  return (at) => reservedAt(at, needs);
}

/**
 * Requests available for the freshness of tracked series: what the other schedules leave. They count even if no service runs now, because the ages
 * are planned before a service starts.
 */
export function freshnessBudgetOf(
  schedules: readonly Schedule[],
  { work, state, spenders }: Pick<Demand, 'work' | 'state' | 'spenders'>,
): FreshnessBudget {
  const needs = comingNeeds(schedules, work);
  const { refreshes } = work;
  const { now } = state;
  const nextAt = schedules.find(({ name }) => name === FRESHNESS)?.cadence?.next(now) ?? now;
  const backfills = spenders.filter((spender) => spender.class === 'backfill');
  return freshnessBudget({
    state,
    reserved: (at) => reservedAt(at, needs),
    backfillSpent: backfills.reduce((sum, { month }) => sum + month, 0),
    spentToday: Math.max(0, spentOnFreshness(spenders) - firstRequests(refreshes)),
    coming: refreshesToday(refreshes, { now, nextAt }),
  });
}

/** The same as a monthly average, for schedules of which only the cadence is known, in a month without any usage yet. */
export function sustainedFreshness(
  schedules: readonly Schedule[],
  { now, month, day, rate }: QuotaState,
): Pick<FreshnessBudget, 'planned' | 'mostPerDay'> {
  const needs = averageNeeds(schedules.filter(({ name }) => name !== FRESHNESS));
  const limits = { perMonth: month.limit, perDay: day.limit, perSecond: rate.limit };
  const reserved = (at: Instant) => reservedAt(at, needs);
  const { perDay } = forecast({ requests: 0, limits, spent: { day: 0, month: 0 }, now, reserved });
  if (perDay === null) return { planned: null, mostPerDay: null };
  return { planned: perDay * HEADROOM, mostPerDay: day.limit === null ? null : perDay };
}

/** Series that were refreshed for the first time today: these requests are not planned. */
function firstRequests(refreshes: readonly ComingRefreshes[]): number {
  return refreshes.reduce((sum, { dueAt, isNew }) => (dueAt === null ? sum : sum + isNew), 0);
}

export function spentOnFreshness(spenders: readonly SpenderRow[]): number {
  return spenders.find((one) => one.class === 'scheduled' && one.name === FRESHNESS)?.day ?? 0;
}
