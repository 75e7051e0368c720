/** Figures that screens show and that do not come from the tables alone: code that knows the settings and the schedules assembles them. */
import type { Instant } from '../../clock.ts';
import type { BackfillDetails } from '../../views/backfills/backfill-details.ts';

/** A day or a month of the ledger. */
export type QuotaWindow = {
  readonly name: 'month' | 'day';
  readonly start: Instant;
  readonly reset: Instant;
  readonly spent: number;
  /** Null when there is no limit. */
  readonly limit: number | null;
  /** Requests that backfills leave for the schedules until the reset. */
  readonly reserved: number;
  /** The least and the most requests sent when it ends. Null when too little of it is over to forecast. */
  readonly forecast: { readonly least: number; readonly most: number } | null;
};

type Spender = {
  readonly name: string;
  readonly class: string;
  readonly day: number;
  readonly month: number;
  /** For a backfill: its series, and who requested it. */
  readonly subject: string | null;
};

export type ScheduleLine = {
  readonly name: string;
  readonly fetches: string;
  /** In UTC. Null when the schedule is off. */
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

/** What a plan would give. */
export type PlanLine = {
  readonly name: string;
  readonly isPresent: boolean;
  readonly perMonth: number | null;
  readonly perDay: number | null;
  /** Requests of the schedules in this month, under the cadences of that plan. */
  readonly schedules: number;
  /** Requests sent this month under the present plan. 0 for other plans, which would mean a new account. */
  readonly spent: number;
  /** Requests of the month that are neither sent nor needed by the schedules until it ends. Null when there is no limit. */
  readonly left: number | null;
  /** How far back it gives daily candles, in milliseconds. Null when there is no limit. */
  readonly historyMs: number | null;
  readonly intervals: readonly string[];
  /**
   * When the queued and running backfills would be done; for another plan, if it began now with nothing sent. `never`: the schedules leave
   * nothing for them. `not possible`: the plan does not give their intervals.
   */
  readonly backfillsDone: Instant | 'never' | 'not possible' | 'no limit delays them';
};

export type QuotaReport = {
  readonly accountId: string;
  readonly plan: string;
  /** How Chandler knows the plan. */
  readonly planSource: string;
  readonly windows: readonly QuotaWindow[];
  /** What holds all requests, or those of backfills. */
  readonly holds: readonly string[];
  /** Sentences about the rate, who runs the schedules, and what holes cost. */
  readonly notes: readonly string[];
  readonly spenders: readonly Spender[];
  readonly schedules: readonly ScheduleLine[];
  readonly plans: readonly PlanLine[];
  /** Requests that the queued and running backfills still need. */
  readonly openRequests: number;
};

export type BackfillReport = {
  readonly details: BackfillDetails;
  /** Why it does not advance, or a sentence that it does. The first reason is the most important one. */
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
