/** What screens show that is not in the tables alone: put together by who knows the settings and the schedules. */
import type { Instant } from '../../clock.ts';
import type { BackfillDetails } from '../../views/backfills/backfill-details.ts';

/** A day or a month of the ledger. */
export type QuotaWindow = {
  readonly name: 'month' | 'day';
  readonly start: Instant;
  readonly reset: Instant;
  readonly spent: number;
  /** Null: unlimited. */
  readonly limit: number | null;
  /** Requests that backfills leave for the schedules until the reset. */
  readonly reserved: number;
  /** Requests that will have been sent when it ends, least and most; null: too little of it is over to tell. */
  readonly forecast: { readonly least: number; readonly most: number } | null;
};

export type Spender = {
  readonly name: string;
  readonly class: string;
  readonly day: number;
  readonly month: number;
  /** Of a backfill: its series, and who wants it. */
  readonly subject: string | null;
};

export type ScheduleLine = {
  readonly name: string;
  readonly fetches: string;
  /** In UTC; null: it is off. */
  readonly cron: string | null;
  readonly perRun: number;
  readonly perDay: number;
  readonly perMonth: number;
  /** `2h 5m ago`, `failed, 3m ago`, `never`. */
  readonly lastRun: string;
  readonly next: Instant | null;
  /** What went wrong with the last run, and what happens next. */
  readonly problem: string | null;
};

/** What another plan would give. */
export type PlanLine = {
  readonly name: string;
  readonly isPresent: boolean;
  readonly perMonth: number | null;
  readonly perDay: number | null;
  readonly perSecond: number | null;
  /** Requests of the schedules in this month, under the cadences of that plan. */
  readonly schedules: number;
  /** Requests that were sent this month: of the present plan; another one would be a new account. */
  readonly spent: number;
  /** Requests of the month that are not spent, and that the schedules leave until it ends; null: unlimited. */
  readonly left: number | null;
  /** How far back it gives daily candles; null: without a limit. */
  readonly historyMs: number | null;
  readonly intervals: readonly string[];
  /**
   * When the backfills that are queued or run would be done; under another plan begun now with nothing spent. `never`: the schedules leave
   * nothing for them; `not possible`: the plan does not give their intervals.
   */
  readonly backfillsDone: Instant | 'never' | 'not possible' | 'no limit delays them';
};

export type QuotaReport = {
  readonly accountId: string;
  readonly plan: string;
  /** Where the plan is known from. */
  readonly planSource: string;
  readonly windows: readonly QuotaWindow[];
  /** What holds all requests, or those of backfills. */
  readonly holds: readonly string[];
  /** The rate, who runs the schedules, what holes cost. */
  readonly notes: readonly string[];
  readonly spenders: readonly Spender[];
  readonly schedules: readonly ScheduleLine[];
  readonly plans: readonly PlanLine[];
  /** Requests that the backfills still need that are queued or run. */
  readonly openRequests: number;
};

export type BackfillReport = {
  readonly details: BackfillDetails;
  /** Why it does not advance, or that it does; the first reason is the one that counts. */
  readonly reasons: readonly string[];
  /** Why each of `details.chunks.waits` waits, in words. */
  readonly waits: readonly string[];
};

/** One check of `chandler doctor`. */
export type CheckResult = {
  readonly name: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** How to fix it. */
  readonly fix?: string;
};
