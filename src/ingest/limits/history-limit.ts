/**
 * How far back a plan may look, and at which intervals. The documented limit is a forecast; what upstream answered is a fact, is
 * remembered per plan and interval, and moves with the clock. Pure.
 */
import type { Instant } from '../../clock.ts';
import { documentedDepth, type Plan } from '../../contract/plan/plans.ts';
import { ceilToGrid, INTERVAL_MS, type Interval, settleMs } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';

/** What is known of one plan and interval. */
export type HistoryLimit =
  /**
   * Nothing certain: the documents, or a refusal of another day, say `depthMs` (null = no limit; 0 = not at all), one request will tell.
   */
  | { readonly kind: 'documented'; readonly depthMs: number | null; readonly refusedBefore?: true }
  /** Upstream answered beyond the documented limit: there is none that we know of. */
  | { readonly kind: 'open' }
  /** Upstream said so: `depthMs` from its now, which is `skewMs` ahead of ours. `depthMs` 0: this interval is not in the plan. */
  | { readonly kind: 'met'; readonly depthMs: number; readonly skewMs: number; readonly message: string };

export function documentedLimit(plan: Plan, interval: Interval): HistoryLimit {
  return { kind: 'documented', depthMs: documentedDepth(plan, interval) };
}

/** A request on its way and a clock a little off must not start before the limit. */
const MARGIN_MS = 60_000;

/** The earliest slot that a limit of this depth lets us ask for at `now`; −∞ without one, +∞ when the interval is refused. */
export function earliestSlot(depthMs: number | null, interval: Interval, now: Instant): Instant {
  if (depthMs === null) return Number.NEGATIVE_INFINITY;
  if (depthMs === 0) return Number.POSITIVE_INFINITY;
  return ceilToGrid(now - depthMs + MARGIN_MS, interval);
}

/** Is there an instant at which a slot has settled, and the plan still shows all of it? */
export function canBeFinal(depthMs: number | null, interval: Interval): boolean {
  return depthMs === null || depthMs >= INTERVAL_MS[interval] + settleMs(interval) + MARGIN_MS;
}

/** Splits gaps at the history limit. */
export function splitAtLimit(gaps: Spans, earliest: Instant): { readonly within: Span[]; readonly beyond: Span[] } {
  return {
    within: intersect(gaps, [{ from: earliest, to: Number.POSITIVE_INFINITY }]),
    beyond: intersect(gaps, [{ from: Number.NEGATIVE_INFINITY, to: earliest }]),
  };
}

/** Does a slot lie beyond the expected limit? */
export function isBeyond(limit: HistoryLimit, interval: Interval, slot: Instant, now: Instant): boolean {
  return slot < earliestSlot(expectedDepth(limit), interval, now);
}

/** How far back from our now the limit really is: a fact when it was met, otherwise null. Negative when it lies after our now. */
export function knownDepth(limit: HistoryLimit): number | null {
  if (limit.kind !== 'met') return null;
  // 0 has a meaning of its own.
  return limit.depthMs === 0 ? 0 : limit.depthMs - limit.skewMs || 1;
}

/** Where it is expected: what the forecast of a plan goes by. */
export function expectedDepth(limit: HistoryLimit): number | null {
  return limit.kind === 'documented' ? limit.depthMs : knownDepth(limit);
}

/**
 * Does a candle that opens there, in an answer as of that instant, prove that there is no limit where one is expected? The whole
 * candle lies beyond it, so an upstream that silently leaves out what is beyond would not have given it.
 */
export function provesNoLimit(limit: HistoryLimit, interval: Interval, openTime: Instant, asOf: Instant): boolean {
  if (limit.kind !== 'documented' || limit.depthMs === null) return false;
  return limit.depthMs === 0 || openTime + INTERVAL_MS[interval] + MARGIN_MS <= asOf - limit.depthMs;
}

/** The part of a span where nothing given may mean that the plan does not include it. */
export function unprovenPart(limit: HistoryLimit, interval: Interval, span: Span, now: Instant): Spans {
  if (limit.kind !== 'documented') return [];
  return splitAtLimit([span], earliestSlot(limit.depthMs, interval, now)).beyond;
}
