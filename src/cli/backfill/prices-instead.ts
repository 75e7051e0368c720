/** Prices as a replacement for candles, when a plan gives no candles of that width, or only the last full day of daily ones. */
import { DAY, HOUR, isPriceInterval, MINUTE, type PriceInterval } from '../../core/interval.ts';
import { type BackfillTarget, type PlanOptions, planBackfill } from '../../ingest/backfill/plan.ts';
import { canBeFinal, expectedDepth } from '../../ingest/limits/history-limit.ts';
import type { LearnedLimits } from '../../ingest/limits/learned-limits.ts';
import type { PricesInstead } from './plan-report.ts';

type Deps = Pick<PlanOptions, 'sql' | 'plan' | 'now'> & { readonly historyLimits: Pick<LearnedLimits, 'of'> };

/**
 * Prices of the same width, or daily ones if the plan has none of that width. Null when it has no prices either. `command` gets the
 * earliest start that the plan gives, or null for the whole target.
 */
export async function pricesInstead(
  { sql, plan, now, historyLimits }: Deps,
  target: BackfillTarget,
  command: (interval: PriceInterval, start: string | null) => string,
): Promise<PricesInstead | null> {
  const width = target.interval === '24h' ? 'prices-1d' : `prices-${target.interval}`;
  const depthOf = (interval: PriceInterval) => expectedDepth(historyLimits.of(interval));
  const interval = [width, 'prices-1d'].filter(isPriceInterval).find((one) => canBeFinal(depthOf(one), one));
  if (interval === undefined) return null;
  const historyLimit = historyLimits.of(interval);
  const depthMs = depthOf(interval);
  const instead = { ...target, interval };
  const { cost } = await planBackfill({ sql, target: instead, now, requestedSince: now, plan, historyLimit });
  if (cost.slots === 0) return null;
  // The printed command requests nothing that the plan refuses.
  const start = cost.refusedSlots === 0 ? null : relativeStart(depthMs!);
  return { interval, cost, depthMs, command: command(interval, start) };
}

/** The earliest time that the plan gives, relative to now. */
function relativeStart(depthMs: number): string {
  // The depth of a limit that a request met is accurate only to some seconds.
  const ms = depthMs + MINUTE;
  return ms >= 2 * DAY ? `-${Math.floor(ms / DAY)}d` : `-${Math.floor(ms / HOUR)}h`;
}
