/** The quota of the configured account: its limits, its schedules and its ledger. */
import type { App } from './app.ts';
import { type Instant, systemClock } from './clock.ts';
import { type Config, candlesPerRequest, effectiveLimits } from './config.ts';
import { type PlanName, planOf } from './contract/plan/plans.ts';
import { readLearnedLimits } from './ingest/limits/learned-limits.ts';
import { CONFIRM_HOLES } from './ingest/queue/chunk-job.ts';
import { accountIdOf } from './ingest/request/account.ts';
import { needsOf, refuseOverspending, type Schedule, schedulePlan } from './ingest/schedule/schedule-plan.ts';
import { type FreshnessBudget, freshnessBudget } from './quota/achievable-ages.ts';
import { type HoleAllowance, holeAllowance } from './quota/hole-allowance.ts';
import { createQuota } from './quota/ledger.ts';
import type { Limits, Quota, QuotaState, Reserved } from './quota/quota.ts';
import { reservedAt } from './quota/reservation.ts';
import { type CatalogueDemand, readCatalogueDemand } from './store/catalogue/catalogue-item.ts';
import type { SqlOrTransaction } from './store/connection/connect.ts';
import { readAccount } from './store/quota/account.ts';
import { readFreshnessDemand } from './store/tracking/tracked-series.ts';
import { isBackfillOpen } from './store/work/backfill-queue.ts';

export type Budget = {
  readonly accountId: string;
  readonly plan: PlanName;
  /** `assumed`: the upstream has not yet reported the plan of the key. */
  readonly planSource: 'configured' | 'account' | 'assumed';
  readonly limits: Limits;
  /** The schedules, which run independently of backfills. */
  readonly schedules: readonly Schedule[];
  readonly quota: Quota;
  /** Requests reserved for the schedules from an instant until the windows end. */
  reserved(at: Instant): Reserved;
};

/** What tracked series need: requests a day for freshness, and the wanted part of the catalogue. */
export type Demand = { readonly freshnessPerDay: number; readonly catalogue: CatalogueDemand };

export async function readDemand(sql: SqlOrTransaction): Promise<Demand> {
  const [freshnessPerDay, catalogue] = await Promise.all([readFreshnessDemand(sql), readCatalogueDemand(sql)]);
  return { freshnessPerDay, catalogue };
}

/** What the backfills of the service are planned with, under this plan: as a session does, without one. Sends no requests. */
export async function readPlanning({ config, clock, database: { sql } }: App, name: PlanName) {
  const plan = planOf(name, { candlesPerRequest: candlesPerRequest(name, config) });
  const historyLimits = await readLearnedLimits(sql, clock, plan);
  return { sql, clock, plan, historyLimits, keep: config.keep.candles };
}

/** The budget of the configured account, as far as it is known. Sends no requests. */
export async function readBudget(app: App): Promise<Budget> {
  const { config, database } = app;
  const accountId = accountIdOf(config.apiKey, config.baseUrl);
  const saved = await readAccount(database.sql, accountId);
  const isTold = saved !== null && saved.checkedAt !== null;
  const plan = config.plan ?? saved?.plan ?? 'free';
  const planSource = config.plan !== null ? 'configured' : isTold ? 'account' : 'assumed';
  const limits = effectiveLimits(plan, config);
  const schedules = schedulesOf(config, plan, limits, await readDemand(database.sql));
  const quota = quotaOf(app, { accountId, limits, plan });
  return { accountId, plan, planSource, limits, schedules, quota, reserved: reservationsOf(schedules) };
}

/** The schedules of an account on `plan`; without a `demand`, schedules that depend on it need no requests. */
export function schedulesOf(
  config: Config,
  plan: PlanName,
  limits: Limits,
  demand: Partial<Demand> = {},
): readonly Schedule[] {
  const [hasKey, hasAttestDir] = [config.apiKey !== null, config.attest !== null];
  return schedulePlan({ plan, limits, hasKey, hasAttestDir, cadences: config.cadences, ...demand });
}

/** Requests reserved for the schedules from an instant until its windows end. */
export function reservationsOf(schedules: readonly Schedule[]): (at: Instant) => Reserved {
  const needs = needsOf(schedules);
  return (at) => reservedAt(at, needs);
}

/** The quota of a session's account, and the requests reserved for its schedules with the present demand. */
export async function readQuota(
  { config, database: { sql } }: Pick<App, 'config' | 'database'>,
  {
    quota,
    plan,
    limits,
  }: { readonly quota: Quota; readonly plan: { readonly name: PlanName }; readonly limits: Limits },
): Promise<{ readonly state: QuotaState; readonly reserved: (at: Instant) => Reserved }> {
  // One after the other: when the database hangs, this blocks only one connection.
  const state = await quota.state();
  const demand = await readDemand(sql);
  return { state, reserved: reservationsOf(schedulesOf(config, plan.name, limits, demand)) };
}

/** @throws ConfigurationError, with the arithmetic, when the schedules alone need more requests than `plan` has */
export function checkSchedules(config: Config, plan: PlanName, now: Instant): void {
  const limits = effectiveLimits(plan, config);
  refuseOverspending(schedulesOf(config, plan, limits), { plan, limits, now });
}

/** What a ledger needs of the program. */
type LedgerDeps = Pick<App, 'config' | 'clock' | 'surroundings'> & {
  readonly database: Pick<App['database'], 'sql' | 'ledger'>;
};

/** The ledger of one account, which all processes share. */
export function quotaOf(
  app: LedgerDeps,
  { accountId, limits, plan }: { readonly accountId: string; readonly limits: Limits; readonly plan: PlanName },
): Quota {
  const { config, clock, database, surroundings } = app;
  return createQuota({
    sql: database.ledger,
    reads: database.sql,
    clock,
    accountId,
    limits,
    perMonthFixed: config.limits.perMonth !== undefined,
    reserved: standingOf(app, plan, limits),
    useDatabaseClock: surroundings.useDatabaseClock ?? clock === systemClock,
    random: Math.random,
  });
}

/** The demand of tracked series changes seldom, and every take needs it. */
const DEMAND_FRESH_MS = 60_000;

/** Requests reserved at this moment, with the demand of freshness as it was last planned. */
function standingOf({ config, clock, database }: LedgerDeps, plan: PlanName, limits: Limits): () => Promise<Reserved> {
  let read: { readonly at: Instant; readonly need: Promise<(at: Instant) => Reserved> } | null = null;
  let last: { readonly demand: string; readonly need: (at: Instant) => Reserved } | null = null;
  const readNeed = async () => {
    const demand = await readDemand(database.ledger);
    const known = JSON.stringify(demand);
    if (last?.demand !== known)
      last = { demand: known, need: reservationsOf(schedulesOf(config, plan, limits, demand)) };
    return last.need;
  };
  return async () => {
    const now = clock.now();
    if (read === null || Math.abs(now - read.at) > DEMAND_FRESH_MS) read = { at: now, need: readNeed() };
    const mine = read;
    const need = await mine.need.catch((error: unknown) => {
      if (read === mine) read = null;
      throw error;
    });
    return need(clock.now());
  };
}

/** Requests a day available for the freshness of tracked series: what the other schedules leave. */
export async function readFreshnessBudget({
  quota,
  schedules,
}: Pick<Budget, 'quota' | 'schedules'>): Promise<FreshnessBudget> {
  const reserved = reservationsOf(schedules.filter(({ name }) => name !== 'freshness'));
  const [state, spenders] = await Promise.all([quota.state(), quota.spenders()]);
  const backfills = spenders.filter((spender) => spender.class === 'backfill');
  const backfillSpent = backfills.reduce((sum, { month }) => sum + month, 0);
  return freshnessBudget({ state, reserved, backfillSpent });
}

/** What may be spent on holes now: what is left over when all other work has what it needs. */
export async function readHoleAllowance(
  sql: SqlOrTransaction,
  { quota, reserved }: Pick<Budget, 'quota' | 'reserved'>,
): Promise<HoleAllowance> {
  const [state, spenders] = await Promise.all([quota.state(), quota.spenders()]);
  const spent = spenders.find(({ name }) => name === CONFIRM_HOLES)?.month ?? 0;
  return holeAllowance({
    state,
    reserved: reserved(state.now),
    spent,
    isBackfillOpen: await isBackfillOpen(sql, state.now),
  });
}
