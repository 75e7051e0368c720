/** The tables of accounts: the key of each account, whose data this warehouse stores, and the requests that each account has left. */
import { sql } from 'drizzle-orm';
import { boolean, check, doublePrecision, integer, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { AccountPath } from '../../contract/interface/paths.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import { bigNumber, candleInterval, instant, ops } from './columns.ts';

export const account = ops.table(
  'account',
  {
    /** `anonymous@<host>` or `key-<first 12 hex digits of the key's SHA-256>@<host>`. */
    id: text('id').primaryKey(),
    origin: text('origin').notNull(),
    plan: text('plan').$type<PlanName>().notNull(),
    /** How the key must be sent. Null until known. */
    authScheme: text('auth_scheme').$type<'bearer' | 'bare'>(),
    /** The path that answers about the account. Null until known. */
    accountPath: text('account_path').$type<AccountPath>(),
    /** When upstream last answered about the account. */
    checkedAt: instant('checked_at'),
    /** Requests per month. Null if unlimited or not known. */
    monthLimit: bigNumber('month_limit'),
    isCurrent: boolean('is_current').notNull().default(false),
    /** When upstream last refused the key. Null if it does not refuse it. */
    refusedAt: instant('refused_at'),
    /** When upstream first refused the key without accepting it since. */
    refusedSince: instant('refused_since'),
    /** Number of refusals in a row. */
    refusals: integer('refusals').notNull().default(0),
    /** The configured way in which the refused key was sent. */
    refusedScheme: text('refused_scheme').$type<'auto' | 'bearer' | 'bare'>(),
    refusal: text('refusal'),
    /** When a scheduler last ran for this account. Null if never. */
    scheduledAt: instant('scheduled_at'),
  },
  (t) => [
    uniqueIndex('account_current').on(t.isCurrent).where(sql`is_current`),
    check('account_refused_scheme', sql`refused_scheme in ('auto', 'bearer', 'bare')`),
    check('account_auth_scheme', sql`auth_scheme in ('bearer', 'bare')`),
    check('account_path', sql`account_path in ('/users/me', '/key/info')`),
  ],
);

/** At most one row: whose data this warehouse stores (a simulated market, or the real one). */
export const origin = ops.table(
  'origin',
  {
    isOnly: boolean('is_only').primaryKey().default(true),
    simulator: text('simulator'),
    since: instant('since').notNull().default(sql`now()`),
  },
  () => [check('origin_is_only', sql`is_only`)],
);

/** A documented history limit that does not hold for this plan, because upstream answered beyond it. */
export const liftedHistoryLimit = ops.table(
  'lifted_history_limit',
  {
    accountPlan: text('account_plan').notNull(),
    interval: candleInterval('interval').notNull(),
    liftedAt: instant('lifted_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountPlan, t.interval] })],
);

/** A column for an instant. It is 1970 as long as there is none. */
const sinceEpoch = (name: string) => instant(name).notNull().default(sql`'epoch'`);

/** One row per account holds all windows, so that one statement takes from all of them or from none. */
export const quota = ops.table(
  'quota',
  {
    accountId: text('account_id').primaryKey(),
    nextFree: sinceEpoch('next_free'),
    dayStart: sinceEpoch('day_start'),
    daySpent: bigNumber('day_spent').notNull().default(0),
    monthStart: sinceEpoch('month_start'),
    monthSpent: bigNumber('month_spent').notNull().default(0),
    /** Requests that upstream allows in this month. Null if unlimited or not known. */
    monthLimit: bigNumber('month_limit'),
    monthLimitKnown: boolean('month_limit_known').notNull().default(false),
    /** How many times slower than the plan the pace is at `limitedUntil`. At least 1. */
    paceFactor: doublePrecision('pace_factor').notNull().default(1),
    /** When the factor was last changed. */
    limitedAt: sinceEpoch('limited_at'),
    limitedUntil: sinceEpoch('limited_until'),
    limitedStreak: integer('limited_streak').notNull().default(0),
    limitedMessage: text('limited_message').notNull().default(''),
    exhaustedUntil: sinceEpoch('exhausted_until'),
    exhaustedMessage: text('exhausted_message').notNull().default(''),
    /** When `downStreak` last grew. */
    downAt: sinceEpoch('down_at'),
    downUntil: sinceEpoch('down_until'),
    downStreak: integer('down_streak').notNull().default(0),
    downMessage: text('down_message').notNull().default(''),
    /** Why the next request is sent alone, as a probe. */
    probe: text('probe').$type<'unavailable' | 'exhausted'>(),
    /** Until when other requests wait for the probe in progress. */
    probeUntil: instant('probe_until'),
  },
  () => [
    check('quota_pace_factor', sql`pace_factor >= 1 and pace_factor <= 32`),
    check('quota_probe', sql`probe in ('unavailable', 'exhausted')`),
    check('quota_spent_not_negative', sql`day_spent >= 0 and month_spent >= 0`),
  ],
);

/** Number of requests by purpose. */
export const quotaSpent = ops.table(
  'quota_spent',
  {
    accountId: text('account_id').notNull(),
    monthStart: instant('month_start').notNull(),
    class: text('class').$type<'scheduled' | 'backfill'>().notNull(),
    name: text('name').notNull(),
    monthSpent: bigNumber('month_spent').notNull(),
    dayStart: instant('day_start').notNull(),
    daySpent: bigNumber('day_spent').notNull(),
  },
  (t) => [
    primaryKey({ name: 'quota_spent_pkey', columns: [t.accountId, t.monthStart, t.class, t.name] }),
    check('quota_spent_class', sql`class in ('scheduled', 'backfill')`),
  ],
);
