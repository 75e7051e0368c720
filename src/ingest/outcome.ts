/** How an attempt at a chunk can end. Anything else is an exception, and is retried by the queue. */
import type { Instant } from '../clock.ts';
import type { RefusalReason } from '../store/candle/refusal.ts';

/** The reason of a snooze that only hands a chunk back, because the run is ending. */
export const INTERRUPTED = 'interrupted';

export type Outcome =
  /** The answer is in the database. `requests` is 0 when the chunk was complete before it was asked. */
  | {
      readonly kind: 'stored';
      readonly requests: number;
      readonly stored: number;
      readonly revised: number;
      readonly setAside: number;
    }
  /** Not now: nothing was sent, no attempt is burned. */
  | { readonly kind: 'snoozed'; readonly until: Instant; readonly reason: string }
  /** Not this chunk now, for its series keeps failing, or what it was answered is doubted; the others go on. No attempt is burned. */
  | {
      readonly kind: 'deferred';
      readonly until: Instant;
      readonly requests: number;
      readonly reason: 'failing' | 'doubt';
    }
  /** Upstream will not give us this; remembered, and not asked again until the plan changes. */
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly message: string };

/** Upstream could not be had, or its answer not be used; the request is recorded and counted, and the chunk is tried again. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
}

/** Upstream redirects without an end: each try costs several requests, so there are no more than two. */
export class RedirectLoop extends UpstreamError {}

/** Upstream fails on this series again and again and answers for others: the chunk is not tried again in this run. */
export class SeriesGivenUp extends Error {
  override readonly name = 'SeriesGivenUp';
}

/** Nobody has said yet who we are to the upstream. Who can wait looks again then; null: less and less often, for each look is a request. */
export class AccountUnknown extends Error {
  override readonly name = 'AccountUnknown';
  readonly lookAgainAt: Instant | null;

  constructor(message: string, lookAgainAt: Instant | null) {
    super(message);
    this.lookAgainAt = lookAgainAt;
  }
}

/** Nothing that is tried again could help: the key or the address is wrong. Ends the run; the message says what to change. */
export class ConfigurationError extends Error {
  override readonly name: string = 'ConfigurationError';
}

/** Upstream refuses the key; it is not asked again before then, unless somebody wants to know at once. */
export class KeyRefused extends ConfigurationError {
  override readonly name = 'KeyRefused';
  readonly askedAgainAt: Instant;

  constructor(message: string, askedAgainAt: Instant) {
    super(message);
    this.askedAgainAt = askedAgainAt;
  }
}

/** Nobody answers at the address, and nobody ever has: it is wrong, unless the upstream is away just then. */
export class Unreachable extends ConfigurationError {
  override readonly name = 'Unreachable';
}
