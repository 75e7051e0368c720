/** What follows when somebody added or removed rules of `chandler track`: the series they want, the ages that the quota allows, and their past. */
import type { App } from '../../app.ts';
import { type Budget, readBudget, readPlanning } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import { expectedDepth } from '../../ingest/limits/history-limit.ts';
import { lastDayOf } from '../../ingest/limits/last-day.ts';
import type { LearnedLimits } from '../../ingest/limits/learned-limits.ts';
import { FRESHNESS } from '../../ingest/queue/chunk-job.ts';
import { longestGapMs } from '../../ingest/schedule/cadence.ts';
import { type AuditDeps, auditGaps, type QueuedHistory } from '../../ingest/tracking/audit.ts';
import { type PlanTrackedOptions, planTracked, type TrackedPlan } from '../../ingest/tracking/freshness.ts';
import { cancelOrphanedHistory, type OrphanedHistory } from '../../store/backfill/backfill-coins.ts';
import { lockHistory } from '../../store/backfill/history.ts';
import { type AppliedTracks, applyTracks, lockRules } from '../../store/tracking/apply-track-rules.ts';
import { countTracked, type RuleFilter, removeTracks } from '../../store/tracking/track-rule.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { readTierStatus, type TierStatus } from '../../views/operations/tiers.ts';
import { recountAfterChange } from './after-change.ts';

export type TrackReport = {
  readonly applied: AppliedTracks;
  readonly planName: PlanName;
  readonly plan: TrackedPlan;
  /** Requests a day available for freshness. Null when there is no limit. */
  readonly perDay: number | null;
  readonly tiers: readonly TierStatus[];
  readonly givesOnlyLastDay: boolean;
  /** The budget with the new rules. */
  readonly budget: Budget;
};

/** Makes the series match the rules at once, as the service does at its next tick. */
export async function applyRules(app: App): Promise<TrackReport> {
  const { clock, database, config } = app;
  return reportOn(app, await applyTracks(database.sql, clock.now(), config.keep.candles));
}

async function reportOn(app: App, applied: AppliedTracks): Promise<TrackReport> {
  const { clock, database } = app;
  const { sql } = database;
  // Read after applying, because the catalogue requests the newly tracked coins too: the ages are planned with what it leaves.
  const budget = await readBudget(app);
  const options = await freshnessOptions(app, budget);
  const plan = await planTracked({ sql, ...options });
  const tiers = await readTierStatus(sql, clock.now());
  const givesOnlyLastDay = isOfLastDay(options.historyLimits, clock.now());
  return { applied, planName: budget.plan, plan, perDay: options.requestsPerDay, tiers, givesOnlyLastDay, budget };
}

/** Whether this plan gives only the last full day of daily candles. A day that nobody requests in time is then lost. */
export async function readGivesOnlyLastDay(app: App, plan: PlanName): Promise<boolean> {
  const { historyLimits } = await readPlanning(app, plan);
  return isOfLastDay(historyLimits, app.clock.now());
}

function isOfLastDay(historyLimits: Pick<LearnedLimits, 'of'>, now: Instant): boolean {
  return lastDayOf(expectedDepth(historyLimits.of('24h')), '24h', now) !== null;
}

/** The inputs for planning the ages of tracked series. */
export async function freshnessOptions(app: App, budget: Budget): Promise<Omit<PlanTrackedOptions, 'sql'>> {
  const { planned: requestsPerDay, mostPerDay } = budget.freshness;
  const { plan, historyLimits } = await readPlanning(app, budget.plan);
  const cadence = budget.schedules.find(({ name }) => name === FRESHNESS)?.cadence;
  return {
    now: app.clock.now(),
    requestsPerDay,
    mostPerDay,
    candlesPerRequest: plan.candlesPerRequest,
    historyLimits,
    tickMs: cadence ? longestGapMs(cadence) : 0,
  };
}

export type QueuedPast = {
  /** Backfills that were queued now. */
  readonly queued: readonly QueuedHistory[];
  /** Whether a service runs that will take them. */
  readonly isServed: boolean;
  /** Whether the schedule that audits the past is off. Nothing is queued then. */
  readonly isOff: boolean;
};

/** Queues what is missing in the past of tracked series, or only of those in `of`, without waiting for the audit of gaps. Sends no requests. */
export async function queueHistory(
  app: App,
  budget: Budget,
  planning: AuditDeps,
  of: Parameters<typeof auditGaps>[1] = null,
): Promise<QueuedPast> {
  const isOff = budget.schedules.find(({ name }) => name === 'gaps')!.cadence === null;
  const queued = isOff ? [] : await auditGaps(planning, of);
  const services = await liveInstances(app.database.sql, app.clock.now());
  return { queued, isServed: services.some(({ roles }) => roles.includes('worker')), isOff };
}

export type RemovedRules = OrphanedHistory & {
  /** Number of rules. */
  readonly removed: number;
  /** Series of these coins that other rules still track. */
  readonly stillTracked: number;
  readonly report: TrackReport;
};

/** Removes these rules. Open backfills of the past drop the slots that no rule wants any more. Stored data stays. It does all of this, or nothing. */
export async function removeRules(app: App, filter: RuleFilter): Promise<RemovedRules> {
  const { sql } = app.database;
  const { rules, applied, orphaned } = await sql.begin(async (tx) => {
    // Otherwise an audit of gaps that began before would queue the past of these rules after it was cancelled here.
    await lockHistory(tx);
    await lockRules(tx);
    const rules = await removeTracks(tx, filter);
    const now = app.clock.now();
    const applied = await applyTracks(tx, now, app.config.keep.candles);
    return { rules, applied, orphaned: await cancelOrphanedHistory(tx, rules, now) };
  });
  const { cancelled, shortened } = orphaned;
  const report = await reportOn(app, applied);
  for (const { id } of shortened) await recountAfterChange(app, id);
  const named = (filter.coins ?? []).flatMap((c) => (c.tier === 'list' ? [c.coinId] : []));
  const stillTracked = named.length === 0 ? 0 : await countTracked(sql, named);
  return { removed: rules.length, stillTracked, cancelled, shortened, report };
}
