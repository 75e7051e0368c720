/** Reads from a refusal how far back the history limit lies. Pure. */
import { documentedDepth, type Plan } from '../../contract/plan/plans.ts';
import { HOUR, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Answer } from '../../upstream/answer.ts';

export type LimitRefusal = Extract<Answer, { kind: 'refused'; reason: 'history limit' }>;

export type Depth = {
  /** Milliseconds before the upstream's now; 0: the interval is refused. */
  readonly depthMs: number;
  /** Milliseconds by which the upstream's clock is ahead of ours. */
  readonly skewMs: number;
};

/** No plan gives less. A smaller depth means that the clocks differ, or that the text means something else. */
const LEAST_DEPTH_MS = HOUR;

/** The upstream's text about prices a minute apart is "Getting minute historical data is not allowed" (upstream-api.md, 2). */
const ABOUT_INTERVAL = /\binterval\b|\b(minute|hourly|daily) historical data is not allowed\b/i;

/**
 * The depth comes from the date in the text, measured by the upstream's own clock: ours may be wrong, and Chandler stores the depth. If there is no
 * date, or the date cannot be true, the depth is 0 (refused) for an interval that the plan does not include, or that the text names. Otherwise it
 * is the documented depth, or half of what was requested. So each refusal halves what Chandler still requests, and a limit that never names its
 * date costs a handful of requests.
 */
export function depthOf(interval: Interval, span: Span, plan: Plan, answer: LimitRefusal): Depth {
  const dated = datedDepth(answer);
  if (dated !== null) return dated;
  const { notBefore } = answer;
  const { sentAt } = answer.exchange;
  const aboutInterval = documentedDepth(plan, interval) === 0 || ABOUT_INTERVAL.test(answer.message);
  if (notBefore === null && aboutInterval) return { depthMs: 0, skewMs: 0 };
  const asked = sentAt - span.from;
  const documented = documentedDepth(plan, interval);
  const depthMs = documented !== null && documented < asked ? documented : Math.floor(asked / 2);
  return { depthMs: depthMs < INTERVAL_MS[interval] ? 0 : depthMs, skewMs: 0 };
}

/** The depth by the date in the text; null without a date that can be true. */
export function datedDepth({ notBefore, exchange: { sentAt, date } }: LimitRefusal): Depth | null {
  const there = date ?? sentAt;
  if (notBefore === null || there - notBefore < LEAST_DEPTH_MS) return null;
  return { depthMs: there - notBefore, skewMs: there - sentAt };
}
