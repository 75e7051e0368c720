/** The quota of the configured account: its limits, its schedules and its ledger. */
import type { App } from './app.ts';
import { type Instant, systemClock } from './clock.ts';
import { type Config, candlesPerRequest, effectiveLimits } from './config.ts';
import { type PlanName, planOf } from './contract/plan/plans.ts';
import { readRefusedKinds } from './ingest/catalogue/catalogue-outcome.ts';
import { readLearnedLimits } from './ingest/limits/learned-limits.ts';
import { CONFIRM_HOLES } from './ingest/queue/chunk-job.ts';
import { accountIdOf } from './ingest/request/account.ts';
import { needsOf, refuseOverspending, type Schedule, schedulePlan } from './ingest/schedule/schedule-plan.ts';
import { type Scheduling, schedulingOf } from './ingest/schedule/scheduling.ts';
import type { Session } from './ingest/session.ts';
import { type FreshnessBudget, freshnessBudget } from './quota/achievable-ages.ts';
import { type HoleAllowance, holeAllowance } from './quota/hole-allowance.ts';
import { createQuota } from './quota/ledger.ts';
import type { Limits, Quota, Reserved } from './quota/quota.ts';
import { reservedAt } from './quota/reservation.ts';
import { isBackfillOpen } from './store/backfill/backfill-queue.ts';
import { type CatalogueDemand, type CatalogueKind, readCatalogueDemand } from './store/catalogue/catalogue-item.ts';
import type { SqlOrTransaction } from './store/connection/connect.ts';
import { readAccount } from './store/quota/account.ts';
import { readFreshnessDemand } from './store/tracking/tracked-series.ts';
import { readRunningSchedules } from './store/work/instance.ts';

export type Budget = {
  readonly accountId: string;
  readonly plan: PlanName;
  /** `assumed`: the upstream has not yet reported the plan of the key. */
  readonly planSource: 'configured' | 'account' | 'assumed';
  readonly limits: Limits;
  /** The schedules, which run independently of backfills: those that services run now, else those that a service would run. */
  readonly schedules: readonly Schedule[];
  readonly scheduling: Scheduling;
  readonly quota: Quota;
  /** Requests reserved for the schedules from an instant until the windows end. */
  reserved(at: Instant): Reserved;
};

/** What the schedules will really ask for. */
export type Demand = {
  /** Requests a day for the freshness of tracked series. */
  readonly freshnessPerDay: number;
  /** The wanted part of the catalogue. */
  readonly catalogue: CatalogueDemand;
  /** Kinds of the catalogue that upstream refuses to this account, and until when they are not asked for. */
  readonly refused: Readonly<Partial<Record<CatalogueKind, Instant>>>;
  /** Who runs the schedules of this account. */
  readonly scheduling: Scheduling;
};

/** What is counted over all series. */
export type CountedDemand = Pick<Demand, 'freshnessPerDay' | 'catalogue'>;

/** `counted` when somebody has counted it already. */
export async function readDemand(
  sql: SqlOrTransaction,
  { accountId, plan, now }: { readonly accountId: string; readonly plan: PlanName; readonly now: Instant },
  counted?: CountedDemand,
): Promise<Demand> {
  const [freshnessPerDay, catalogue, refused, running] = await Promise.all([
    counted?.freshnessPerDay ?? readFreshnessDemand(sql),
    counted?.catalogue ?? readCatalogueDemand(sql),
    readRefusedKinds(sql, { accountId, plan, now }),
    readRunningSchedules(sql, { accountId, now }),
  ]);
  return { freshnessPerDay, catalogue, refused, scheduling: schedulingOf(running, now) };
}

/** What the backfills of the service are planned with, under this plan: as a session does, without one. Sends no requests. */
export async function readPlanning({ config, clock, database: { sql } }: App, name: PlanName) {
  const plan = planOf(name, { candlesPerRequest: candlesPerRequest(name, config) });
  const historyLimits = await readLearnedLimits(sql, clock, plan);
  return { sql, clock, plan, historyLimits, keep: config.keep.candles };
}

/** The budget of the configured account, as far as it is known. Sends no requests. */
export async function readBudget(app: App, counted?: CountedDemand): Promise<Budget> {
  const { config, database, clock } = app;
  const accountId = accountIdOf(config.apiKey, config.baseUrl);
  const saved = await readAccount(database.sql, accountId);
  const isTold = saved !== null && saved.checkedAt !== null;
  const plan = config.plan ?? saved?.plan ?? 'free';
  const planSource = config.plan !== null ? 'configured' : isTold ? 'account' : 'assumed';
  const limits = effectiveLimits(plan, config);
  const demand = await readDemand(database.sql, { accountId, plan, now: clock.now() }, counted);
  const { scheduling } = demand;
  const schedules = schedulesOf(config, plan, limits, demand);
  const quota = quotaOf(app, { accountId, limits, plan });
  const reserved = reservationsOf(schedules, scheduling);
  return { accountId, plan, planSource, limits, schedules, scheduling, quota, reserved };
}

/**
 * The schedules of an account on `plan`: those that services run now, as far as `demand` knows, else those of the settings. Without a
 * `demand`, schedules that depend on it need no requests.
 */
export function schedulesOf(
  config: Config,
  plan: PlanName,
  limits: Limits,
  { scheduling, ...demand }: Partial<Demand> = {},
): readonly Schedule[] {
  const [hasKey, hasAttestDir] = [config.apiKey !== null, config.attest !== null];
  const running = scheduling?.kind === 'running' ? scheduling.cadences : undefined;
  return schedulePlan({ plan, limits, hasKey, hasAttestDir, cadences: config.cadences, running, ...demand });
}

/** Requests reserved for the schedules from an instant until its windows end: none while nobody runs them. */
export function reservationsOf(schedules: readonly Schedule[], { kind }: Scheduling): (at: Instant) => Reserved {
  const needs = kind === 'none' ? [] : needsOf(schedules);
  return (at) => reservedAt(at, needs);
}

/** The quota of a session's account, and the requests reserved for its schedules with the present demand. */
export async function readQuota(app: Pick<App, 'config' | 'database' | 'clock'>, session: SessionBudget) {
  // One after the other: when the database hangs, this blocks only one connection.
  const state = await session.quota.state();
  return { state, reserved: await readReserved(app, session) };
}

type SessionBudget = Pick<Session, 'accountId' | 'quota' | 'plan' | 'limits'>;

/** Requests reserved for the schedules of a session's account, with the present demand. */
export async function readReserved(
  { config, clock, database: { sql } }: Pick<App, 'config' | 'database' | 'clock'>,
  { accountId, plan, limits }: Omit<SessionBudget, 'quota'>,
): Promise<(at: Instant) => Reserved> {
  const demand = await readDemand(sql, { accountId, plan: plan.name, now: clock.now() });
  return reservationsOf(schedulesOf(config, plan.name, limits, demand), demand.scheduling);
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
    reserved: standingOf(app, { accountId, plan, limits }),
    useDatabaseClock: surroundings.useDatabaseClock ?? clock === systemClock,
    random: Math.random,
  });
}

/** The demand of tracked series changes seldom, and every take needs it. */
const DEMAND_FRESH_MS = 60_000;

/** Requests reserved at this moment, with the demand of freshness as it was last planned. */
function standingOf(
  { config, clock, database }: LedgerDeps,
  { accountId, plan, limits }: { readonly accountId: string; readonly plan: PlanName; readonly limits: Limits },
): () => Promise<Reserved> {
  let read: { readonly at: Instant; readonly need: Promise<(at: Instant) => Reserved> } | null = null;
  let last: { readonly demand: string; readonly need: (at: Instant) => Reserved } | null = null;
  const readNeed = async () => {
    const demand = await readDemand(database.ledger, { accountId, plan, now: clock.now() });
    const known = JSON.stringify(demand);
    if (last?.demand !== known) {
      const schedules = schedulesOf(config, plan, limits, demand);
      last = { demand: known, need: reservationsOf(schedules, demand.scheduling) };
    }
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
  // What a service would leave, whether one runs now or not: the ages are planned before it starts.
  const needs = needsOf(schedules.filter(({ name }) => name !== 'freshness'));
  const reserved = (at: Instant) => reservedAt(at, needs);
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
