/** Who may ask what, and how much is left: the service asks an `Access` before it answers, and so never knows how limits are kept. */
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import type { AccountInfo } from '../record/records.ts';
import type { PlanName, TickerResolution } from './plans.ts';

export type Caller = {
  /** The key as sent, whatever the scheme; null when anonymous. */
  readonly key: string | null;
  readonly scheme: 'bearer' | 'bare' | null;
  readonly address: string;
};

/** The tightest of a caller's windows, for the `RateLimit-*` headers. */
export type Allowance = {
  readonly limit: number;
  /** After this request. */
  readonly remaining: number;
  /** Until the window begins anew. */
  readonly resetSeconds: number;
};

export type Admission =
  | { readonly kind: 'admitted'; readonly plan: PlanName; readonly allowance?: Allowance }
  | {
      readonly kind: 'rejected';
      readonly status: 402 | 403 | 429;
      readonly message: string;
      readonly retryAfterSeconds?: number;
      /** Nothing but the pace stands in the way, and in so long no longer: whoever can wait may ask again then. */
      readonly waitMs?: number;
      readonly allowance?: Allowance;
    };

export type Access = {
  /**
   * Counts the request against the caller's windows, or says why not. Called once per request, before anything else.
   * A question about the account itself counts for the pace only: who has spent the month may still ask so (decision 14).
   */
  admit(caller: Caller, about: 'data' | 'account'): Admission | Promise<Admission>;
  /** May this plan see candles of this interval from `start` on? `null` when it may, else the refusal's text (status 402). */
  refuseHistory(plan: PlanName, interval: Interval, start: Instant): string | null;
  /** The same of ticker history, by the width of its stretches. */
  refuseTickerHistory(plan: PlanName, resolution: TickerResolution, start: Instant): string | null;
  /** The same of the changelog of ids. */
  refuseIdChanges(plan: PlanName): string | null;
  /** What `/users/me` answers; `null` without a valid key. */
  account(caller: Caller): AccountInfo | null | Promise<AccountInfo | null>;
};
