/**
 * How far back a plan may look, and at which intervals. The documented limit is a forecast. What the upstream answered is a fact: Chandler stores
 * it per plan and interval, and it moves with the clock. Pure.
 */
import type { Instant } from '../../clock.ts';
import { documentedDepth, type Plan } from '../../contract/plan/plans.ts';
import { ceilToGrid, INTERVAL_MS, type Interval, settleMs } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';

/** What is known about the limit of one plan and interval. */
export type HistoryLimit =
  /** Uncertain. The documents, or a refusal of another day, say `depthMs` (null: no limit; 0: the interval is refused). One request will test it. */
  | { readonly kind: 'documented'; readonly depthMs: number | null; readonly refusedBefore?: true }
  /** The upstream answered beyond the documented limit: no limit is known. */
  | { readonly kind: 'open' }
  /** The upstream refused: the limit is `depthMs` before its now, which is `skewMs` ahead of ours. `depthMs` 0: the plan excludes this interval. */
  | { readonly kind: 'met'; readonly depthMs: number; readonly skewMs: number; readonly message: string };

export function documentedLimit(plan: Plan, interval: Interval): HistoryLimit {
  return { kind: 'documented', depthMs: documentedDepth(plan, interval) };
}

/** The request takes time, and a clock may be slightly wrong: a request must not start before the limit. */
const MARGIN_MS = 60_000;

/** The earliest slot that a limit of this depth lets Chandler request at `now`; −∞ without a limit, +∞ when the interval is refused. */
export function earliestSlot(depthMs: number | null, interval: Interval, now: Instant): Instant {
  if (depthMs === null) return Number.NEGATIVE_INFINITY;
  if (depthMs === 0) return Number.POSITIVE_INFINITY;
  return ceilToGrid(now - depthMs + MARGIN_MS, interval);
}

/** Is there an instant at which a slot is settled and the plan still gives the whole slot? */
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

/** How far the real limit lies before our now. Null while the upstream has not refused. Negative when the limit lies after our now. */
export function knownDepth(limit: HistoryLimit): number | null {
  if (limit.kind !== 'met') return null;
  // 0 has its own meaning: the interval is refused.
  return limit.depthMs === 0 ? 0 : limit.depthMs - limit.skewMs || 1;
}

/** How far back the limit is expected. The forecast of a plan uses it. */
export function expectedDepth(limit: HistoryLimit): number | null {
  return limit.kind === 'documented' ? limit.depthMs : knownDepth(limit);
}

/**
 * Does a candle that opens at `openTime`, in an answer as of `asOf`, prove that there is no limit where one is expected? The whole candle lies
 * beyond the limit, so an upstream that silently omits what is beyond would not have sent it.
 */
export function provesNoLimit(limit: HistoryLimit, interval: Interval, openTime: Instant, asOf: Instant): boolean {
  if (limit.kind !== 'documented' || limit.depthMs === null) return false;
  return limit.depthMs === 0 || openTime + INTERVAL_MS[interval] + MARGIN_MS <= asOf - limit.depthMs;
}

/** The part of a span where an empty answer may mean that the plan does not include it. */
export function unprovenPart(limit: HistoryLimit, interval: Interval, span: Span, now: Instant): Spans {
  if (limit.kind !== 'documented') return [];
  return splitAtLimit([span], earliestSlot(limit.depthMs, interval, now)).beyond;
}
