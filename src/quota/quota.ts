/** The budget every process of this installation shares: one row of Postgres that says yes, later, or no. */
import type { Instant } from '../clock.ts';
import type { Spans } from '../core/span.ts';
import type { OpenGapsQuery } from '../store/candle/gaps.ts';
import type { Gate } from './gate.ts';

/** Scheduled work may use the whole budget; backfill what is left after setting aside what the schedules still need. */
export type WorkClass = 'scheduled' | 'backfill';

/** Who a request is for; `name` is shown by `chandler quota` ("backfill 12", "catalogue", "account"). */
export type Spender = {
  readonly class: WorkClass;
  readonly name: string;
  /**
   * This request asks the account itself (`/users/me`): the only one that can find out that the plan was changed, so a spent
   * window's hold lets it through, a month that others have used up as well, and everybody else leaves `SetAside.account` for it.
   * It is counted like any other.
   */
  readonly asksAccount?: boolean;
};

/** Null = no such limit. */
export type Limits = {
  readonly perMonth: number | null;
  readonly perDay: number | null;
  readonly perSecond: number | null;
};

/** Requests the schedules will still need until the window ends; what backfill must leave. */
export type SetAside = {
  readonly day: number;
  readonly month: number;
  /** The part of them that asks the account: what all others must leave, the schedules too. */
  readonly account?: { readonly day: number; readonly month: number };
};

/** What a request is for, and the plan whose refusals count. */
export type Stretch = OpenGapsQuery & { readonly plan: string };

export type HoldReason = 'limited' | 'quota exhausted' | 'unavailable';

export type Take =
  /** One request is yours, and already counted: send it at `sendAt` (never before) or by `goodUntil`, or lose it. */
  | {
      readonly kind: 'granted';
      readonly sendAt: Instant;
      readonly goodUntil: Instant;
      /** Of the stretch it was taken for: what is worth the request. */
      readonly gaps?: Spans;
    }
  /** Nothing was counted. Worth asking again at `until`. */
  | {
      readonly kind: 'denied';
      readonly reason: 'month' | 'day' | 'reserved' | 'queue' | HoldReason;
      readonly until: Instant;
    };

/** Nothing was counted: nothing of the stretch is worth a request any more. */
export type Unwanted = { readonly kind: 'unwanted' };

/** A day or a month of the ledger. */
export type QuotaWindow = {
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
  /** Requests per second that the plan allows, and that are allowed now, after what 429s taught. */
  readonly rate: { readonly limit: number | null; readonly now: number | null; readonly nextFree: Instant };
  readonly hold: { readonly until: Instant; readonly reason: HoldReason; readonly message: string } | null;
};

/** A request that the upstream did not answer as we wished. */
export type FailedRequest = { readonly sentAt: Instant; readonly message: string };
/** The same, with the wait that the response asks for; null: it names none. */
export type RetryableRequest = FailedRequest & { readonly retryAfterMs: number | null };

export type Quota = {
  /** What this process knows by itself, for `waitForPermit`. */
  readonly gate: Gate;
  /**
   * Takes one request from all windows or from none, in one round trip. Exact across processes: a grant counts in the
   * windows in which `sendAt` lies. For a stretch it is taken only if something of it is still worth a request, and without a
   * second round trip to find out.
   */
  take(spender: Spender): Promise<Take>;
  take(spender: Spender, stretch: Stretch | undefined): Promise<Take | Unwanted>;
  /** Upstream has just asked for a pause: at once nothing more is sent here, while `limited` or `unavailable` tells the others. */
  pause(hold: { readonly reason: 'limited' | 'unavailable'; readonly retryAfterMs: number | null }): void;
  /**
   * A 429. Everybody on this account waits (`retryAfterMs`, else a jittered backoff), and the shared rate drops, then recovers slowly.
   * `sentAt` keeps a burst of simultaneous 429s from being counted many times.
   */
  limited(event: RetryableRequest): Promise<void>;
  /** Upstream says that the month (or the anonymous day) is used up, although our count is lower: nobody asks until it ends. */
  exhausted(event: FailedRequest & { readonly window: 'month' | 'day' }): Promise<void>;
  /** Upstream is down. After a few failures in a row everybody waits, longer each time. `answered` ends the row of failures. */
  unavailable(event: RetryableRequest): Promise<void>;
  answered(event: { readonly sentAt: Instant }): Promise<void>;
  /** What `/users/me` says; upstream's count wins when it is higher than ours, and its limit (made + left) replaces the plan's. Null = unlimited. */
  reconcile(usage: { readonly made: number; readonly left: number | null }): Promise<void>;
  state(): Promise<QuotaState>;
  /** Who spent how much in the current month, most first. */
  spenders(): Promise<
    readonly { readonly class: WorkClass; readonly name: string; readonly day: number; readonly month: number }[]
  >;
};
