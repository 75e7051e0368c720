/** The quota that all processes share: one row of Postgres that grants a request, or says when to ask again. */
import type { Instant } from '../clock.ts';
import type { Spans } from '../core/span.ts';
import type { OpenGapsQuery } from '../store/candle/gaps.ts';
import type { Gate } from './gate.ts';

/** Scheduled work may use the whole quota; backfills leave what the schedules still need (the reservation). */
type WorkClass = 'scheduled' | 'backfill';

/** Who a request is for; `name` is shown by `chandler quota` ("backfill 12", "catalogue", "account"). */
export type Spender = {
  readonly class: WorkClass;
  readonly name: string;
  /**
   * This request is about the account itself (`/users/me`): only it can find out that the plan was changed. So it may be sent although
   * upstream said that the quota is exhausted, or although others have used up the month, and everybody else leaves
   * `Reserved.account` for it. It is counted like any other.
   */
  readonly asksAccount?: boolean;
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
  /** The part of them that is about the account: all others must leave it, the schedules too. */
  readonly account?: { readonly day: number; readonly month: number };
};

/** What a request is for, and the plan whose refusals count. */
export type Stretch = OpenGapsQuery & { readonly plan: string };

type HoldReason = 'limited' | 'quota exhausted' | 'unavailable';

export type Take =
  /** One request is granted, and already counted. It must be sent from `sendAt` to `goodUntil`; else it is lost. */
  | {
      readonly kind: 'granted';
      readonly sendAt: Instant;
      readonly goodUntil: Instant;
      /** The parts of the stretch that are worth the request. */
      readonly gaps?: Spans;
    }
  /** Nothing was counted. Ask again at `until`. */
  | {
      readonly kind: 'denied';
      readonly reason: 'month' | 'day' | 'reserved' | 'queue' | HoldReason;
      readonly until: Instant;
    };

/** Nothing was counted, because nothing of the stretch is worth a request any more. */
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
  /** Requests per second that the plan allows, and that are allowed now, after what 429s taught. */
  readonly rate: { readonly limit: number | null; readonly now: number | null; readonly nextFree: Instant };
  readonly hold: { readonly until: Instant; readonly reason: HoldReason; readonly message: string } | null;
  /** The upstream has given no usable answer several times in a row; null: it answers. Unlike the hold, it lasts until an answer. */
  readonly outage: { readonly message: string } | null;
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
  /** Upstream has just asked for a pause: this process stops at once, while `limited` or `unavailable` tells the others. */
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
  /**
   * What `/users/me` says. Upstream's count wins when it is higher than ours, and its limit (made + left) replaces the plan's. Null =
   * unlimited.
   */
  reconcile(usage: { readonly made: number; readonly left: number | null }): Promise<void>;
} & LedgerReads;

export type LedgerReads = {
  state(): Promise<QuotaState>;
  /** Who spent how much in the current month, most first. */
  spenders(): Promise<
    readonly { readonly class: WorkClass; readonly name: string; readonly day: number; readonly month: number }[]
  >;
};
