/** The quota that all processes share: one row of Postgres. A take grants a request, or returns when to try again. */
import type { Instant } from '../clock.ts';
import type { Spans } from '../core/span.ts';
import type { OpenGapsQuery } from '../store/candle/gaps.ts';
import type { Gate } from './gate.ts';

/** Scheduled work may use the whole quota; backfills leave what the schedules still need (the reservation). */
type WorkClass = 'scheduled' | 'backfill';

/** The work that a request is for. `chandler quota` shows `name` ("backfill 12", "catalogue", "account"). */
export type Spender = {
  readonly class: WorkClass;
  readonly name: string;
  /**
   * True for a request about the account itself (`/users/me`): only its answer shows that the plan was changed. So it may be sent even if
   * the upstream reported that the quota is exhausted, or if other work has used up the month. All other work leaves
   * `Reserved.account` for it. It counts like any other request.
   */
  readonly isAccountRequest?: boolean;
  /**
   * True for a request to another host than the one whose outages the ledger records. Its answer proves nothing about that host, so it is
   * never the probe.
   */
  readonly isOtherHost?: boolean;
};

/** Null = no such limit. */
export type Limits = {
  readonly perMonth: number | null;
  readonly perDay: number | null;
  readonly perSecond: number | null;
};

/** The reservation: requests that the schedules will still need until the window ends. Backfills must leave them. */
export type Reserved = {
  readonly day: number;
  readonly month: number;
  /** The part for requests about the account. All other work must leave it, also the schedules. */
  readonly account?: { readonly day: number; readonly month: number };
};

/** The span that a request is for, and the plan whose refusals count. */
export type Stretch = OpenGapsQuery & { readonly plan: string };

type HoldReason = 'limited' | 'quota exhausted' | 'unavailable';

export type Take =
  /** One request is granted, and already counted. The process must send it from `sendAt` to `goodUntil`; else it is lost. */
  | {
      readonly kind: 'granted';
      readonly sendAt: Instant;
      readonly goodUntil: Instant;
      /** The parts of the stretch that are worth the request. */
      readonly gaps?: Spans;
    }
  /** Nothing was counted. Try again at `until`. */
  | {
      readonly kind: 'denied';
      readonly reason: 'month' | 'day' | 'reserved' | 'queue' | HoldReason;
      readonly until: Instant;
    };

/** Nothing was counted, because no part of the stretch is worth a request any more. */
export type Unwanted = { readonly kind: 'unwanted' };

/** A day or a month of the ledger. */
type QuotaWindow = {
  readonly start: Instant;
  readonly reset: Instant;
  readonly spent: number;
  readonly limit: number | null;
};

export type QuotaState = {
  readonly accountId: string;
  readonly now: Instant;
  readonly month: QuotaWindow;
  readonly day: QuotaWindow;
  /** Requests per second: the plan's limit, and the rate that is allowed now after 429s. Null = no limit. */
  readonly rate: { readonly limit: number | null; readonly now: number | null; readonly nextFree: Instant };
  readonly hold: { readonly until: Instant; readonly reason: HoldReason; readonly message: string } | null;
  /** Set after several requests in a row without a usable answer; null when the upstream answers. Unlike the hold, it lasts until an answer. */
  readonly outage: { readonly message: string } | null;
};

/** A request without a usable answer. */
export type FailedRequest = { readonly sentAt: Instant; readonly message: string };
/** The same, with the wait that the response asks for; null when it names none. */
export type RetryableRequest = FailedRequest & { readonly retryAfterMs: number | null };

export type Quota = {
  /** The state of this process alone, for `waitForPermit`. */
  readonly gate: Gate;
  /**
   * Takes one request from all windows or from none, in one round trip. It is exact across processes: a grant counts in the
   * windows that contain `sendAt`. With a stretch, it takes a request only if a part of the stretch is still worth one; the same
   * round trip checks that.
   */
  take(spender: Spender): Promise<Take>;
  take(spender: Spender, stretch: Stretch | undefined): Promise<Take | Unwanted>;
  /** The upstream has just asked for a pause: this process stops at once. `limited` and `unavailable` stop the other processes. */
  pause(hold: { readonly reason: 'limited' | 'unavailable'; readonly retryAfterMs: number | null }): void;
  /**
   * Records a 429. All processes on this account wait (`retryAfterMs`, else a jittered backoff), and the shared rate drops, then recovers
   * slowly. Because of `sentAt`, a burst of simultaneous 429s counts once.
   */
  limited(event: RetryableRequest): Promise<void>;
  /** The upstream reported that the month (or the anonymous day) is used up, although our count is lower. No process sends until it ends. */
  exhausted(event: FailedRequest & { readonly window: 'month' | 'day' }): Promise<void>;
  /** Records a failure. After a few in a row, all processes wait, longer each time. `answered` ends the series of failures. */
  unavailable(event: RetryableRequest): Promise<void>;
  answered(event: { readonly sentAt: Instant }): Promise<void>;
  /**
   * Records an answer of `/users/me`. The upstream's count wins when it is higher than ours, and its limit (made + left) replaces the plan's.
   * Null = unlimited.
   */
  reconcile(usage: { readonly made: number; readonly left: number | null }): Promise<void>;
} & LedgerReads;

export type LedgerReads = {
  state(): Promise<QuotaState>;
  /** The requests of each spender in the current month (and day), largest first. */
  spenders(): Promise<
    readonly { readonly class: WorkClass; readonly name: string; readonly day: number; readonly month: number }[]
  >;
};
