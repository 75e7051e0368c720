/** One run of a schedule: its input, and how it can end. */
import type { Clock, Instant } from '../clock.ts';
import { DAY } from '../core/interval.ts';
import { REQUEST_AGAIN_MS } from '../core/second-opinion.ts';
import type { Sql } from '../store/connection/connect.ts';
import type { FetchRow } from '../store/work/fetch.ts';
import type { Answer } from '../upstream/answer.ts';
import { UpstreamError } from './outcome.ts';
import type { OutageRetry } from './request/outage-retry.ts';
import { readRefusedUntil } from './request/refused-endpoint.ts';

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
export async function endUnanswered(
  question: string,
  answer: Exclude<Answer, { kind: 'moved' | 'answered' }>,
  { sql, clock, retry, record }: EndDeps,
): Promise<RunOutcome> {
  const now = clock.now();
  switch (answer.kind) {
    case 'limited': {
      // With requests left, a 402 may come again and again.
      const until = await retry(() => readRefusedUntil(sql, { ...record, now }));
      const reason = answer.by === 'rate' ? 'limited' : 'quota exhausted';
      return { kind: 'held', until: Math.max(until, now + REQUEST_AGAIN_MS), reason };
    }
    case 'refused':
      // The plan does not include it, or this upstream does not have it: one request a day is enough.
      return { kind: 'held', until: now + DAY, reason: answer.message };
    case 'malformed':
    case 'unavailable':
      throw new UpstreamError(`${question}: ${answer.message}`, answer.message);
  }
}

type EndDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly retry: OutageRetry;
  readonly record: Pick<FetchRow, 'endpoint' | 'accountId'>;
};

/** How a run ends whose endpoint was refused so recently that it waits; null: it may send its request. */
export async function endRefusedRecently(
  question: string,
  { sql, clock, retry, record }: EndDeps,
): Promise<RunOutcome | null> {
  const now = clock.now();
  const until = await retry(() => readRefusedUntil(sql, { ...record, now }));
  return until > now ? { kind: 'held', until, reason: `${question} was refused recently` } : null;
}
