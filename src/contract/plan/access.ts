/** Admission of callers: the service calls an `Access` before it answers, and does not know how limits are counted. */
import type { Instant } from '../../clock.ts';
import type { CandleInterval } from '../../core/interval.ts';
import type { AccountInfo } from '../record/records.ts';
import type { PlanName, TickerResolution } from './plans.ts';

export type Caller = {
  /** The key as sent, without its scheme; null when anonymous. */
  readonly key: string | null;
  readonly scheme: 'bearer' | 'bare' | null;
  readonly address: string;
};

/** The window of a caller with the fewest requests left, for the `RateLimit-*` headers. */
export type Allowance = {
  readonly limit: number;
  /** Requests left after this one. */
  readonly remaining: number;
  /** Seconds until the window ends. */
  readonly resetSeconds: number;
};

export type Admission =
  | { readonly kind: 'admitted'; readonly plan: PlanName; readonly allowance?: Allowance }
  | {
      readonly kind: 'rejected';
      readonly status: 402 | 403 | 429;
      readonly message: string;
      readonly retryAfterSeconds?: number;
      /** Set when the rate is the only reason: after so many milliseconds, the same request can be admitted. */
      readonly waitMs?: number;
      readonly allowance?: Allowance;
    };

export type Access = {
  /**
   * Counts the request against the caller's windows, or returns why it is rejected. Called once per request, before anything else.
   * A request about the account itself counts only against the rate: it is admitted even when the month is exhausted (decision 14).
   */
  admit(caller: Caller, about: 'data' | 'account'): Admission | Promise<Admission>;
  /** Null when this plan may read candles of this interval from `start` on; else the text of the refusal (status 402). */
  refuseHistory(plan: PlanName, interval: CandleInterval, start: Instant): string | null;
  /** The same for ticker history, by the width of its slots. */
  refuseTickerHistory(plan: PlanName, resolution: TickerResolution, start: Instant): string | null;
  /** The same for the changelog of ids. */
  refuseIdChanges(plan: PlanName): string | null;
  /** The same for the ids of coins at other providers. */
  refuseMappings(plan: PlanName): string | null;
  /** The answer of `/users/me`; null without a valid key. */
  account(caller: Caller): AccountInfo | null | Promise<AccountInfo | null>;
};
