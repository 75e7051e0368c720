/** One run of a schedule: what it is given, and how it can end. */
import type { Instant } from '../clock.ts';
import type { OutageRetry } from './request/outage-retry.ts';

/** How a run ends, if it does not throw: then it is tried again a few times. */
export type RunOutcome =
  | { readonly kind: 'done' }
  /** The quota says no until then: the run waits, and no attempt is burned. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string };

export type RunContext = {
  /** What it is run for: the instant it was due. May be long past when nobody was there to run it. */
  readonly tick: Instant;
  /** Counts from 1: a run that failed is begun again a few times. */
  readonly attempt: number;
  /** Aborted when the process stops: what has been asked should be stored, and nothing more asked. */
  readonly signal: AbortSignal;
  /** For a database that is away while an answer is in hand. */
  readonly retry: OutageRetry;
};

export type Run = (context: RunContext) => Promise<RunOutcome>;
