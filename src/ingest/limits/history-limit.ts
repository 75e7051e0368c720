/**
 * How far back a plan may look, and at which intervals. The documented wall is a forecast; what upstream answered is a fact, is
 * remembered per plan and interval, and moves with the clock. Pure.
 */
import type { Instant } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { ceilToGrid, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';

/** What is known of one plan and interval. */
export type Wall =
  /**
   * Nothing certain: the documents, or a refusal of another day, say `depthMs` (null = no limit; 0 = not at all), one request will tell.
   */
  | { readonly kind: 'documented'; readonly depthMs: number | null; readonly refusedBefore?: true }
  /** Upstream answered beyond the documented wall: there is none that we know of. */
  | { readonly kind: 'open' }
  /** Upstream said so: `depthMs` from its now, which is `skewMs` ahead of ours. `depthMs` 0: this interval is not in the plan. */
  | { readonly kind: 'met'; readonly depthMs: number; readonly skewMs: number; readonly message: string };

export function documentedWall(plan: Plan, interval: Interval): Wall {
  return { kind: 'documented', depthMs: plan.intervals.includes(interval) ? plan.historyDepthMs : 0 };
}

/** A request on its way and a clock a little off must not start before the wall. */
const MARGIN_MS = 60_000;

/** The earliest slot that a wall of this depth lets us ask for at `now`; −∞ without one, +∞ when the interval is refused. */
export function earliestSlot(depthMs: number | null, interval: Interval, now: Instant): Instant {
  if (depthMs === null) return Number.NEGATIVE_INFINITY;
  if (depthMs === 0) return Number.POSITIVE_INFINITY;
  return ceilToGrid(now - depthMs + MARGIN_MS, interval);
}

/** Splits gaps at the wall. */
export function splitAtWall(gaps: Spans, earliest: Instant): { readonly within: Span[]; readonly beyond: Span[] } {
  return {
    within: intersect(gaps, [{ from: earliest, to: Number.POSITIVE_INFINITY }]),
    beyond: intersect(gaps, [{ from: Number.NEGATIVE_INFINITY, to: earliest }]),
  };
}

/** Does a slot lie beyond where a wall is expected? */
export function isBeyond(wall: Wall, interval: Interval, slot: Instant, now: Instant): boolean {
  return slot < earliestSlot(expectedDepth(wall), interval, now);
}

/** Where a wall really is, from our now: a fact when it was met, otherwise null. Negative when all that our clock knows of is behind it. */
export function knownDepth(wall: Wall): number | null {
  if (wall.kind !== 'met') return null;
  // 0 has a meaning of its own.
  return wall.depthMs === 0 ? 0 : wall.depthMs - wall.skewMs || 1;
}

/** Where it is expected: what the forecast of a plan goes by. */
export function expectedDepth(wall: Wall): number | null {
  return wall.kind === 'documented' ? wall.depthMs : knownDepth(wall);
}

/**
 * Does a candle that opens there, in an answer as of that instant, prove that no wall stands where one is expected? The whole
 * candle lies beyond it, so an upstream that silently leaves out what is beyond would not have given it.
 */
export function provesOpen(wall: Wall, interval: Interval, openTime: Instant, asOf: Instant): boolean {
  if (wall.kind !== 'documented' || wall.depthMs === null) return false;
  return wall.depthMs === 0 || openTime + INTERVAL_MS[interval] + MARGIN_MS <= asOf - wall.depthMs;
}

/** The part of a span where nothing given may mean that the plan does not include it. */
export function unprovenPart(wall: Wall, interval: Interval, span: Span, now: Instant): Spans {
  if (wall.kind !== 'documented') return [];
  return splitAtWall([span], earliestSlot(wall.depthMs, interval, now)).beyond;
}
