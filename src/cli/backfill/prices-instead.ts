/** Prices in the place of candles, where a plan gives no candles of that width, or of daily ones only the last full day. */
import { DAY, HOUR, isPriceInterval, MINUTE, type PriceInterval } from '../../core/interval.ts';
import { type BackfillTarget, type PlanOptions, planBackfill } from '../../ingest/backfill/plan.ts';
import { canBeFinal, expectedDepth } from '../../ingest/limits/history-limit.ts';
import type { LearnedLimits } from '../../ingest/limits/learned-limits.ts';
import type { PricesInstead } from './plan-report.ts';

type Deps = Pick<PlanOptions, 'sql' | 'plan' | 'now'> & { readonly historyLimits: Pick<LearnedLimits, 'of'> };

/**
 * Of the same width, or daily ones where the plan has none of that width; null: it has no prices either. `command` gets the start up to which
 * the plan gives them; null: all of the target.
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
  const { cost } = await planBackfill({ sql, target: instead, now, askedSince: now, plan, historyLimit });
  if (cost.slots === 0) return null;
  // The command asks for nothing that the plan refuses.
  const start = cost.refusedSlots === 0 ? null : relativeStart(depthMs!);
  return { interval, cost, depthMs, command: command(interval, start) };
}

/** As far back as the plan goes. */
function relativeStart(depthMs: number): string {
  // A limit that was met is known to some seconds only.
  const ms = depthMs + MINUTE;
  return ms >= 2 * DAY ? `-${Math.floor(ms / DAY)}d` : `-${Math.floor(ms / HOUR)}h`;
}

/** For a shell. */
export function quoted(time: string): string {
  return /^[\w.:+-]+$/.test(time) ? time : `'${time}'`;
}
