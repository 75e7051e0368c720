/** One run of a schedule: its input, and how it can end. */
import type { Instant } from '../clock.ts';
import { DAY } from '../core/interval.ts';
import { REQUEST_AGAIN_MS } from '../core/second-opinion.ts';
import type { Answer } from '../upstream/answer.ts';
import { UpstreamError } from './outcome.ts';
import type { OutageRetry } from './request/outage-retry.ts';

/** How a run ends. A run that throws is retried a few times. */
export type RunOutcome =
  | { readonly kind: 'done' }
  /** No request may be sent until then. The run waits, and the wait counts as no attempt. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string };

export type RunContext = {
  /** The instant at which the run was due. It may be long past if no service ran. */
  readonly tick: Instant;
  /** Counts from 1, because a failed run is retried a few times. */
  readonly attempt: number;
  /** Aborted when the process stops: the run still stores its answers, and sends no more requests. */
  readonly signal: AbortSignal;
  /** Waits for a database that is unavailable, so that no answer is lost. */
  readonly retry: OutageRetry;
};

export type Run = (context: RunContext) => Promise<RunOutcome>;

/** How a run ends when its request brought no usable answer; the request itself is already recorded. @throws UpstreamError: the run is retried */
export function endUnanswered(
  question: string,
  answer: Exclude<Answer, { kind: 'moved' | 'answered' }>,
  now: Instant,
): RunOutcome {
  switch (answer.kind) {
    case 'limited':
      return {
        kind: 'held',
        until: now + REQUEST_AGAIN_MS,
        reason: answer.by === 'rate' ? 'limited' : 'quota exhausted',
      };
    case 'refused':
      // The plan does not include it, or this upstream does not have it: one request a day is enough.
      return { kind: 'held', until: now + DAY, reason: answer.message };
    case 'malformed':
    case 'unavailable':
      throw new UpstreamError(`${question}: ${answer.message}`, answer.message);
  }
}
