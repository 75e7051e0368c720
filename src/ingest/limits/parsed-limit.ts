/** How far back the history limit is that upstream has just refused a request for. Pure. */
import { documentedDepth, type Plan } from '../../contract/plan/plans.ts';
import { HOUR, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Answer } from '../../upstream/answer.ts';

export type LimitRefusal = Extract<Answer, { kind: 'refused'; reason: 'history limit' }>;

export type Depth = {
  /** From upstream's now; 0: not at all. */
  readonly depthMs: number;
  /** How far upstream's clock is ahead of ours. */
  readonly skewMs: number;
};

/** No plan sees less: whoever is told so has another clock than upstream, or the text has another meaning. */
const LEAST_DEPTH_MS = HOUR;

/** Upstream's words about prices a minute apart are "Getting minute historical data is not allowed" (upstream-api.md, 2). */
const ABOUT_INTERVAL = /\binterval\b|\b(minute|hourly|daily) historical data is not allowed\b/i;

/**
 * As its text says, by upstream's own clock: ours may be wrong, and a depth outlives this run. Without a date in the text, or with
 * one that cannot be true: 0 (not at all) for an interval that is not in the plan, or that the text is about; else what
 * the documents say, or half of what was asked. So each refusal halves what is still asked, and a limit that never tells where
 * it stands costs a handful of requests.
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

/** The depth its text tells; null without a date that can be true. */
export function datedDepth({ notBefore, exchange: { sentAt, date } }: LimitRefusal): Depth | null {
  const there = date ?? sentAt;
  if (notBefore === null || there - notBefore < LEAST_DEPTH_MS) return null;
  return { depthMs: there - notBefore, skewMs: there - sentAt };
}
