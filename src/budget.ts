/** The quota of the configured account: its limits, its schedules and its ledger. */
import type { App } from './app.ts';
import { type Instant, systemClock } from './clock.ts';
import { type Config, candlesPerRequest, effectiveLimits } from './config.ts';
import { type PlanName, planOf } from './contract/plan/plans.ts';
import { createSharedRead } from './core/concurrency/shared-read.ts';
import { readLearnedLimits } from './ingest/limits/learned-limits.ts';
import { CONFIRM_HOLES } from './ingest/queue/chunk-job.ts';
import { accountIdOf } from './ingest/request/account.ts';
import {
  type Demand,
  freshnessBudgetOf,
  readDemand,
  readScheduling,
  reservationsOf,
} from './ingest/schedule/demand.ts';
import type { ComingWork } from './ingest/schedule/needs.ts';
import { refuseOverspending, type Schedule, schedulePlan } from './ingest/schedule/schedule-plan.ts';
import type { Scheduling } from './ingest/schedule/scheduling.ts';
import type { Session } from './ingest/session.ts';
import type { FreshnessBudget } from './quota/achievable-ages.ts';
import { type HoleAllowance, holeAllowance } from './quota/hole-allowance.ts';
import { createQuota } from './quota/ledger.ts';
import type { LedgerReads, Limits, Quota, Reserved } from './quota/quota.ts';
import { nothingReserved } from './quota/reservation.ts';
import { isBackfillOpen } from './store/backfill/backfill-queue.ts';
import type { SqlOrTransaction } from './store/connection/connect.ts';
import { readAccount } from './store/quota/account.ts';

export type Budget = {
  readonly accountId: string;
  readonly plan: PlanName;
  /** `assumed`: the upstream has not yet reported the plan of the key. */
  readonly planSource: 'configured' | 'account' | 'assumed';
  readonly limits: Limits;
  /** The schedules, which run independently of backfills: those that services run now, or, when none run, those that a service would run. */
  readonly schedules: readonly Schedule[];
  readonly scheduling: Scheduling;
  readonly quota: Quota;
  /** The quota that the other schedules leave for the freshness of tracked series. */
  readonly freshness: FreshnessBudget;
  /** Requests reserved for the schedules from an instant until the windows end. */
  reserved(at: Instant): Reserved;
};

/** The inputs for planning a backfill of the service under this plan, the same as a session has, but read without a session. Sends no requests. */
export async function readPlanning({ config, clock, database: { sql } }: App, name: PlanName) {
  const plan = planOf(name, { candlesPerRequest: candlesPerRequest(name, config) });
  const historyLimits = await readLearnedLimits(sql, clock, plan);
  return { sql, clock, plan, historyLimits, keep: config.keep.candles };
}

/** The budget of the configured account, as far as it is known. A caller that knows the coming work passes it. Sends no requests. */
export async function readBudget(app: LedgerDeps, coming?: ComingWork): Promise<Budget> {
  const { config, database, clock } = app;
  const accountId = accountIdOf(config.apiKey, config.baseUrl);
  const saved = await readAccount(database.sql, accountId);
  const isChecked = saved !== null && saved.checkedAt !== null;
  const plan = config.plan ?? saved?.plan ?? 'free';
  const planSource = config.plan !== null ? 'configured' : isChecked ? 'account' : 'assumed';
  const limits = effectiveLimits(plan, config);
  const quota = quotaOf(app, { accountId, limits, plan });
  const demand = await readDemand(database.sql, { accountId, plan, now: clock.now(), quota, coming });
  const { scheduling } = demand;
  const schedules = schedulesOf(config, plan, limits, demand);
  const reserved = reservationsOf(schedules, demand);
  const freshness = freshnessBudgetOf(schedules, demand);
  return { accountId, plan, planSource, limits, schedules, scheduling, quota, reserved, freshness };
}

/**
 * The schedules of an account on `plan`: those that services run now if `demand` knows them, otherwise those of the settings. Without a
 * `demand`, schedules that depend on it need no requests.
 */
export function schedulesOf(
  config: Config,
  plan: PlanName,
  limits: Limits,
  { scheduling, ...wanted }: Partial<Pick<Demand, 'freshnessPerDay' | 'catalogue' | 'refused' | 'scheduling'>> = {},
): readonly Schedule[] {
  const hasKey = config.apiKey !== null;
  const places = new Set([
    ...(config.attest === null ? [] : (['attestations'] as const)),
    ...(config.lake === null ? [] : (['lake'] as const)),
  ]);
  const running = scheduling?.kind === 'running' ? scheduling.cadences : undefined;
  return schedulePlan({ plan, limits, hasKey, places, cadences: config.cadences, running, ...wanted });
}

/** The quota of a session's account, and the requests reserved for its schedules with the present demand. */
export async function readQuota(app: Pick<App, 'config' | 'database' | 'clock'>, session: SessionBudget) {
  const { schedules, demand } = await readScheduledWork(app, session);
  return { state: demand.state, reserved: reservationsOf(schedules, demand) };
}

type SessionBudget = Pick<Session, 'accountId' | 'quota' | 'plan' | 'limits'>;

/** The schedules of a session's account, and the work they will request. */
export async function readScheduledWork(
  { config, clock, database: { sql } }: Pick<App, 'config' | 'database' | 'clock'>,
  { accountId, plan, limits, quota }: SessionBudget,
): Promise<{ readonly schedules: readonly Schedule[]; readonly demand: Demand }> {
  const demand = await readDemand(sql, { accountId, plan: plan.name, now: clock.now(), quota });
  return { schedules: schedulesOf(config, plan.name, limits, demand), demand };
}

/** @throws ConfigurationError, with the arithmetic, when the schedules alone need more requests than `plan` has */
export function checkSchedules(config: Config, plan: PlanName, now: Instant): void {
  const limits = effectiveLimits(plan, config);
  refuseOverspending(schedulesOf(config, plan, limits), { plan, limits, now });
}

/** What a ledger needs of the program. */
type LedgerDeps = Pick<App, 'config' | 'clock' | 'overrides'> & {
  readonly database: Pick<App['database'], 'sql' | 'ledger'>;
};

/** The ledger of one account, which all processes share. */
export function quotaOf(
  app: LedgerDeps,
  { accountId, limits, plan }: { readonly accountId: string; readonly limits: Limits; readonly plan: PlanName },
): Quota {
  const { config, clock, database, overrides } = app;
  return createQuota({
    sql: database.ledger,
    reads: database.sql,
    clock,
    accountId,
    limits,
    perMonthFixed: config.limits.perMonth !== undefined,
    reserved: standingOf(app, { accountId, plan, limits }),
    useDatabaseClock: overrides.useDatabaseClock ?? clock === systemClock,
    random: Math.random,
  });
}

/** How long one reading of the demand is used, in milliseconds. Every take of quota needs it. */
const DEMAND_FRESH_MS = 60_000;

/** Requests reserved at this moment, for the work that was known at most a minute ago. */
function standingOf(
  { config, clock, database }: LedgerDeps,
  { accountId, plan, limits }: { readonly accountId: string; readonly plan: PlanName; readonly limits: Limits },
): (quota: LedgerReads) => Promise<Reserved> {
  const readNeed = async (quota: LedgerReads): Promise<(at: Instant) => Reserved> => {
    const now = clock.now();
    if ((await readScheduling(database.ledger, { accountId, now })).kind === 'none') return nothingReserved;
    const demand = await readDemand(database.ledger, { accountId, plan, now, quota });
    return reservationsOf(schedulesOf(config, plan, limits, demand), demand);
  };
  const need = createSharedRead({ clock, ms: DEMAND_FRESH_MS, read: readNeed });
  return async (quota) => (await need(quota))(clock.now());
}

/** Requests that may be spent on holes now: those left over when all other work has what it needs. */
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
