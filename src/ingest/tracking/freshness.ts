/**
 * Freshness of the tracked series: applies the rules, plans the ages that the quota allows, and takes the chunks that are due. Each of the three is
 * one call, safe at any time and from any number of processes.
 */
import type { Instant } from '../../clock.ts';
import { MAX_PRICES, rowsPerRequest } from '../../contract/plan/plans.ts';
import { dayStart } from '../../core/calendar.ts';
import { chunksNewestFirst, countSlots } from '../../core/chunk.ts';
import { DAY, type Interval, type SeriesName } from '../../core/interval.ts';
import type { Retention } from '../../core/settings/retention-settings.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import { type FreshnessPlan, planFreshness } from '../../quota/achievable-ages.ts';
import { chooseDue, lastRefreshTime, lastRefreshTimeOfDay, type RefreshRoom } from '../../quota/refresh-order.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { type AppliedTracks, applyTracks } from '../../store/tracking/apply-track-rules.ts';
import { readMissing, readRefreshCandidates, recordRefreshes } from '../../store/tracking/tracked-series.ts';
import { readTiers, recordPlannedAges, type TierRow } from '../../store/tracking/tracked-tier.ts';
import { canBeFinal, earliestSlot, expectedDepth, knownDepth, splitAtLimit } from '../limits/history-limit.ts';
import { lastDayOf, openDayOf } from '../limits/last-day.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';

export type PlannedTier = TierRow & {
  readonly requestsPerDay: number;
  readonly keepsUp: boolean;
  /** The plan does not include this interval: no requests are sent. */
  readonly isRefused: boolean;
  /** By the known history limit, the plan no longer shows a slot when it has settled. */
  readonly isNeverFinal: boolean;
};

export type TrackedPlan = Omit<FreshnessPlan, 'tiers'> & { readonly tiers: readonly PlannedTier[] };

export type PlanTrackedOptions = {
  readonly sql: SqlOrTransaction;
  readonly now: Instant;
  /** Requests a day for refreshes: the planned number (`FreshnessBudget`), and the most. Null: any number. */
  readonly requestsPerDay: number | null;
  readonly mostPerDay?: number | null;
  readonly candlesPerRequest: number;
  readonly historyLimits: Pick<LearnedLimits, 'of'>;
  /** The longest time between two runs of the schedule `freshness`. */
  readonly tickMs: number;
};

/** Plans how fresh each tier can be kept now, and records it for the refresh order and for `market.freshness`. */
export async function planTracked(options: PlanTrackedOptions): Promise<TrackedPlan> {
  const { sql } = options;
  const plan = planTiers(await readTiers(sql), options);
  await recordPlannedAges(sql, plan.tiers, options);
  return plan;
}

/** Plans how fresh these tiers could be kept; records nothing. */
export function planTiers(rows: readonly TierRow[], options: Omit<PlanTrackedOptions, 'sql'>): TrackedPlan {
  const { now, requestsPerDay, mostPerDay = null, candlesPerRequest, historyLimits, tickMs } = options;
  const refused = new Set(rows.filter((row) => knownDepth(historyLimits.of(row.interval)) === 0).map((row) => row.id));
  // An interval that was refused on another day is only tested with one request.
  const isOut = ({ interval }: TierRow) => {
    const limit = historyLimits.of(interval);
    return expectedDepth(limit) === 0 && (limit.kind === 'met' || (limit.kind === 'documented' && limit.refusedBefore));
  };
  const plan = planFreshness({
    tiers: rows.map((row) => {
      const depthMs = expectedDepth(historyLimits.of(row.interval));
      const isOfLastDay = lastDayOf(depthMs, row.interval, now) !== null;
      const demand = {
        ...row,
        rowsPerRequest: isOfLastDay ? 1 : rowsPerRequest({ candlesPerRequest }, row.interval),
        isOfDays: isOfLastDay,
      };
      return isOut(row) ? { ...demand, series: 0 } : demand;
    }),
    requestsPerDay,
    mostPerDay,
    tickMs,
  });
  const tiers = rows.map((row, i): PlannedTier => {
    const { achievableAgeMs, refreshAfterMs, keepsUp, requestsPerDay: cost } = plan.tiers[i]!;
    const isRefused = refused.has(row.id);
    return {
      ...row,
      achievableAgeMs: isRefused ? null : achievableAgeMs,
      refreshAfterMs: isRefused ? null : refreshAfterMs,
      isPlanned: true,
      requestsPerDay: cost,
      keepsUp: keepsUp && !isRefused,
      isRefused,
      isNeverFinal: isNeverFinal(expectedDepth(historyLimits.of(row.interval)), row.interval, now),
    };
  });
  return { ...plan, tiers };
}

function isNeverFinal(depthMs: number | null, interval: Interval, now: Instant): boolean {
  return depthMs !== 0 && lastDayOf(depthMs, interval, now) === null && !canBeFinal(depthMs, interval);
}

/** Applies the rules to the stored list of coins, and plans the ages again. */
export async function refreshTracks(
  options: PlanTrackedOptions & { readonly sql: Sql; readonly keep?: Retention['candles'] },
): Promise<{ readonly applied: AppliedTracks; readonly plan: TrackedPlan }> {
  const applied = await applyTracks(options.sql, options.now, options.keep);
  return { applied, plan: await planTracked(options) };
}

/** The newest end of a series, with as many missing slots before it as one request holds. */
type FreshChunk = Span &
  SeriesName & {
    readonly seriesId: number;
    /** Missing slots in the chunk: the number of rows to expect. */
    readonly slots: number;
  };

type DueSeriesOptions = {
  readonly now: Instant;
  readonly room: RefreshRoom;
  /** The longest time between two runs. */
  readonly tickMs: number;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  readonly historyLimits: Pick<LearnedLimits, 'of'>;
};

type DueSeries = {
  /** A series that is due. */
  readonly seriesId: number;
  /** When the series counts as requested. */
  readonly askedAt: Instant;
  /** The last refresh time that has passed: the next one counts from it. */
  readonly refreshAt: Instant;
  /** Null: nothing of the series can be requested now (the plan's history limit, a refusal). It still counts as refreshed. */
  readonly chunk: FreshChunk | null;
};

/** Reads the series that are due, most urgent first; changes nothing. */
export async function readDueSeries(sql: SqlOrTransaction, options: DueSeriesOptions): Promise<DueSeries[]> {
  const { now, room, tickMs, plan, historyLimits } = options;
  if (room.all <= 0) return [];
  const candidates = await readRefreshCandidates(sql, { now, limit: room.all });
  const due = new Map(chooseDue(candidates, { now, tickMs, room }).map(({ candidate: c }) => [c.seriesId, c]));
  const slots = { candles: plan.candlesPerRequest, prices: MAX_PRICES };
  const missing = await readMissing(sql, { ids: [...due.keys()], now, plan: plan.name, slots });
  return missing.map(({ missing, ...series }) => {
    const { interval, seriesId } = series;
    const candidate = due.get(seriesId)!;
    const limit = historyLimits.of(interval);
    const lastDay = lastDayOf(expectedDepth(limit), interval, now);
    const isDaily = lastDay !== null && candidate.refreshAfterMs >= DAY;
    const within =
      lastDay === null
        ? splitAtLimit(missing, earliestSlot(knownDepth(limit), interval, now)).within
        : nearEnd(missing, lastDay, isDaily ? null : openDayOf(now));
    const [span] = chunksNewestFirst(within, interval, rowsPerRequest(plan, interval));
    const chunk = span === undefined ? null : { ...series, ...span, slots: countSlots(within, interval) };
    // The last full day contains nothing about the time since midnight, so the age of the series counts from midnight.
    const isLastDay = lastDay !== null && (isDaily || (chunk !== null && chunk.from < lastDay.to));
    const refreshAt = lastDay === null ? lastRefreshTime(candidate, now) : lastRefreshTimeOfDay(candidate, now);
    return { seriesId, askedAt: isLastDay ? dayStart(now) : now, refreshAt, chunk };
  });
}

/** The last full day, which becomes final now or never; once it is stored, the open day. */
function nearEnd(missing: Spans, lastDay: Span, openDay: Span | null): Span[] {
  const ended = intersect(missing, [lastDay]);
  return ended.length > 0 || openDay === null ? ended : intersect(missing, [openDay]);
}

/**
 * Records a refresh of each series that is due, and resolves to their chunks. A series is not due again before its time, however its chunk ends
 * (`undoRefreshes` makes it due at once). Two processes at the same moment may get the same chunk; it is one job in the queue.
 */
export async function takeDueChunks(sql: SqlOrTransaction, options: DueSeriesOptions): Promise<FreshChunk[]> {
  const due = await readDueSeries(sql, options);
  await recordRefreshes(
    sql,
    due.map(({ chunk, ...asked }) => ({ ...asked, isQueued: chunk !== null })),
  );
  return due.flatMap(({ chunk }) => (chunk === null ? [] : [chunk]));
}
