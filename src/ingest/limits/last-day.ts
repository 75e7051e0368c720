/**
 * Plans whose history limit is so short that a daily candle never becomes final within it: the candle settles a day after its end, and lies beyond
 * the limit by then. Every plan gives the last full day as one candle (`/ohlcv/latest`), and the open day (`/ohlcv/today`). Pure.
 */
import type { Instant } from '../../clock.ts';
import { ceilToGrid, DAY, floorToGrid, type Interval, settleMs } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import { earliestSlot, type HistoryLimit, knownDepth, splitAtLimit } from './history-limit.ts';

/** The last full day, where only that day becomes final. Null when the history limit leaves enough time, or the plan excludes the interval. */
export function lastDayOf(depthMs: number | null, interval: Interval, now: Instant): Span | null {
  if (interval !== '24h' || depthMs === null || depthMs === 0 || depthMs >= DAY + settleMs(interval)) return null;
  const today = floorToGrid(now, interval);
  return { from: today - DAY, to: today };
}

/** The day that has not ended yet. */
export function openDayOf(now: Instant): Span {
  return { from: floorToGrid(now, '24h'), to: ceilToGrid(now + 1, '24h') };
}

/**
 * Splits gaps into those that a plan can fill now, and those that it can never fill. Where only the last full day becomes final, the open day is in
 * neither list: Chandler requests it when it has ended.
 */
export function splitAtReach(
  gaps: Spans,
  depthMs: number | null,
  interval: Interval,
  now: Instant,
): { readonly within: Span[]; readonly beyond: Span[] } {
  const lastDay = lastDayOf(depthMs, interval, now);
  if (lastDay === null) return splitAtLimit(gaps, earliestSlot(depthMs, interval, now));
  const { within, beyond } = splitAtLimit(gaps, lastDay.from);
  return { within: intersect(within, [lastDay]), beyond };
}

/**
 * The part of the gaps that a run requests. The run also requests what lies beyond a documented limit, which is only a forecast. The open day is
 * different: the documents alone exclude it, as in the plan of the run. Otherwise every coin would spend a request on a candle that is not final.
 */
export function requestedByRun(gaps: Spans, limit: HistoryLimit, interval: Interval, now: Instant): Span[] {
  const { within } = splitAtReach(gaps, knownDepth(limit), interval, now);
  const lastDay = limit.kind === 'documented' ? lastDayOf(limit.depthMs, interval, now) : null;
  return lastDay === null ? within : intersect(within, [{ from: Number.NEGATIVE_INFINITY, to: lastDay.to }]);
}
