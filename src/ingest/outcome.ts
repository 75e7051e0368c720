/** How an attempt at a chunk can end. Any other error is thrown, and the queue retries the chunk. */
import type { Instant } from '../clock.ts';
import type { RefusalReason } from '../store/candle/refusal.ts';

/** The reason of a snooze that only returns a chunk to the queue, because the run is ending. */
export const INTERRUPTED = 'interrupted';

export type Outcome =
  /** The answer is in the database. `requests` is 0 when the chunk was already complete. */
  | {
      readonly kind: 'stored';
      readonly requests: number;
      readonly stored: number;
      readonly revised: number;
      readonly quarantined: number;
      /** The answer is not final, and the slot can be requested only on this day: the chunk is requested again then. */
      readonly againAt?: Instant;
    }
  /** Not now. No request was sent, and this counts as no attempt. */
  | { readonly kind: 'snoozed'; readonly until: Instant; readonly reason: string }
  /**
   * This chunk waits: its series keeps failing, its answer needs a second opinion, or the upstream does not give the last full day yet. Other
   * chunks continue. This counts as no attempt.
   */
  | {
      readonly kind: 'deferred';
      readonly until: Instant;
      readonly requests: number;
      readonly reason: 'failing' | 'second opinion' | 'day is late';
    }
  /** The upstream refuses this. Chandler stores the refusal, and does not request the chunk again until the plan changes. */
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly message: string };

/** The upstream failed, or its answer cannot be used. The request is recorded and counted, and the work is retried. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  /** What is wrong, without the name of the work that failed. */
  readonly problem: string;

  constructor(message: string, problem = message) {
    super(message);
    this.problem = problem;
  }
}

/** The redirects do not end. Each try costs several requests, so there are at most two tries. */
export class RedirectLoop extends UpstreamError {}

/** The upstream keeps failing on this series, and answers for others: this run does not request the chunk again. */
export class SeriesGivenUp extends Error {
  override readonly name = 'SeriesGivenUp';
}

/** The account's plan is not known yet. A service retries at `retryAt`. Null: it retries with a backoff, because each try costs a request. */
export class AccountUnknown extends Error {
  override readonly name = 'AccountUnknown';
  readonly retryAt: Instant | null;

  constructor(message: string, retryAt: Instant | null) {
    super(message);
    this.retryAt = retryAt;
  }
}

/** No retry can help: the key, the address or a setting is wrong. It ends the run; the message says what to change. */
export class ConfigurationError extends Error {
  override readonly name: string = 'ConfigurationError';
}

/** The upstream refuses the key; it is not sent again before `retryAt`, except by `chandler doctor --online`. */
export class KeyRefused extends ConfigurationError {
  override readonly name = 'KeyRefused';
  readonly retryAt: Instant;

  constructor(message: string, retryAt: Instant) {
    super(message);
    this.retryAt = retryAt;
  }
}

/** No upstream answers at the address: the address is wrong, or the upstream is down at the first start. */
export class Unreachable extends ConfigurationError {
  override readonly name = 'Unreachable';
}
