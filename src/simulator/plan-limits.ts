/** The simulator's `Access`: enforces the limits of the plans as strictly as the upstream might. */
import { createHash } from 'node:crypto';
import type { Clock, Instant } from '../clock.ts';
import { INVALID_KEY, KEY_REQUIRED, TOO_MANY_REQUESTS } from '../contract/answer/errors.ts';
import type { Access, Admission, Allowance, Caller } from '../contract/plan/access.ts';
import { createPlanHistoryLimits } from '../contract/plan/plan-history-limits.ts';
import { type Plan, type PlanName, type PlanOverrides, planOf } from '../contract/plan/plans.ts';
import type { AccountInfo } from '../contract/record/records.ts';
import { formatTime } from '../contract/time.ts';
import { monthOf, monthReset } from '../core/calendar.ts';
import { DAY } from '../core/interval.ts';

export type PlanLimitsOptions = {
  readonly clock: Clock;
  /** The plan of callers without a key. If the plan limits their day, the limit applies. Default `free`. */
  readonly plan?: PlanName;
  /** The plan of each key; any other key gets a 403. */
  readonly keys?: Readonly<Record<string, PlanName>>;
  /** Callers without a key get a 403, as on the paid host. */
  readonly requireKey?: boolean;
  /** How a key must be sent; the real paid host refuses `Bearer` (upstream-api.md, section 3). Default `both`. */
  readonly scheme?: 'both' | 'bearer' | 'bare';
  /** Replaces numbers of every plan; null = no limit. */
  readonly overrides?: PlanOverrides & { readonly pacePerSecond?: number | null };
  /** Requests of this month that each account has already used when the simulator first sees it. */
  readonly spentBefore?: number;
};

/** The requests of one account, and how they were answered. */
export type AccountCounters = {
  /** `key-<first 12 hex of the key's SHA-256>`, or `anonymous@<address>`. */
  readonly account: string;
  readonly plan: PlanName;
  /** All requests, including refused ones. */
  requests: number;
  admitted: number;
  readonly rejected: { pace: number; day: number; month: number };
  readonly thisDay: number;
  readonly thisMonth: number;
  /** The most requests that arrived in one second of the clock, and the most that were admitted in one day and one month. */
  readonly peak: { second: number; day: number; month: number };
};

type PlanLimits = Access & {
  readonly counters: () => readonly AccountCounters[];
  /** Number of 403s: no key where one is needed, unknown keys, keys sent in the wrong scheme. */
  readonly forbidden: () => number;
};

/** Fixed windows of the clock, and what each of them counts. Each function numbers the period that contains an instant. */
const PERIODS = {
  arrivals: (at: Instant) => Math.floor(at / 1_000),
  second: (at: Instant) => Math.floor(at / 1_000),
  day: (at: Instant) => Math.floor(at / DAY),
  /** Calendar months in UTC, numbered without gaps. */
  month: monthOf,
};
type WindowName = keyof typeof PERIODS;
const WINDOWS = Object.keys(PERIODS) as WindowName[];

type Account = {
  readonly plan: Plan;
  readonly anonymous: boolean;
  readonly since: Instant;
  /** The current period of each window, and its count. */
  readonly windows: Readonly<Record<WindowName, { period: number; count: number }>>;
  readonly counted: Omit<AccountCounters, 'thisDay' | 'thisMonth'>;
};

export function createPlanLimits(options: PlanLimitsOptions): PlanLimits {
  const { clock, plan = 'free', keys = {}, requireKey = false, scheme = 'both', overrides = {} } = options;
  const { pacePerSecond, ...numbers } = overrides;
  const accounts = new Map<string, Account>();
  let forbidden = 0;

  /** The account of a caller, or why there is none. */
  const identify = (caller: Caller): Account | string => {
    if (caller.key === null) return requireKey ? KEY_REQUIRED : open(`anonymous@${caller.address}`, plan, true);
    if (scheme !== 'both' && caller.scheme !== scheme) return INVALID_KEY;
    const name = Object.hasOwn(keys, caller.key) ? keys[caller.key] : undefined;
    return name === undefined ? INVALID_KEY : open(accountIdOf(caller.key), name, false);
  };
  const open = (id: string, name: PlanName, anonymous: boolean): Account => {
    const now = clock.now();
    const account = accounts.get(id) ?? newAccount(id, planOf(name, numbers), anonymous, now, options.spentBefore);
    accounts.set(id, account);
    roll(account, now);
    return account;
  };
  return {
    admit(caller, about) {
      const account = identify(caller);
      if (typeof account === 'string') {
        forbidden++;
        return { kind: 'rejected', status: 403, message: account };
      }
      const pace = pacePerSecond === undefined ? account.plan.requestsPerSecond : pacePerSecond;
      return admitTo(account, about, pace, clock.now());
    },
    ...createPlanHistoryLimits(clock, (name) => planOf(name, numbers)),
    account(caller) {
      const account = caller.key === null ? null : identify(caller);
      return account === null || typeof account === 'string' ? null : accountInfoOf(account);
    },
    counters: () =>
      [...accounts.values()].map((account) => {
        roll(account, clock.now());
        const { counted, windows } = account;
        return { ...structuredClone(counted), thisDay: windows.day.count, thisMonth: windows.month.count };
      }),
    forbidden: () => forbidden,
  };
}

function newAccount(id: string, plan: Plan, anonymous: boolean, since: Instant, spentBefore = 0): Account {
  const window = () => ({ period: Number.NaN, count: 0 });
  const windows = { arrivals: window(), second: window(), day: window(), month: window() };
  const rejected = { pace: 0, day: 0, month: 0 };
  const peak = { second: 0, day: 0, month: 0 };
  const counted = { account: id, plan: plan.name, requests: 0, admitted: 0, rejected, peak };
  const account = { plan, anonymous, since, windows, counted };
  roll(account, since);
  account.windows.month.count = spentBefore;
  return account;
}

/** Resets a window whose period is over. */
function roll({ windows }: Account, now: Instant): void {
  for (const name of WINDOWS) {
    const period = PERIODS[name](now);
    if (windows[name].period !== period) Object.assign(windows[name], { period, count: 0 });
  }
}

function admitTo(account: Account, about: 'data' | 'account', pace: number | null, now: Instant): Admission {
  const { counted, anonymous, plan } = account;
  const { arrivals, second, day, month } = account.windows;
  const refuse = (window: keyof AccountCounters['rejected'], status: 402 | 429, retryAfterSeconds?: number) => {
    counted.rejected[window]++;
    const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return { kind: 'rejected', status, message: TOO_MANY_REQUESTS, ...wait, ...allowanceOf(account, now) } as const;
  };
  counted.requests++;
  counted.peak.second = Math.max(counted.peak.second, ++arrivals.count);
  if (isFull(second, pace)) return refuse('pace', 429, 1);
  if (about === 'data') {
    if (isFull(month, plan.requestsPerMonth)) return refuse('month', 402);
    if (anonymous && isFull(day, plan.anonymousRequestsPerDay)) {
      return refuse('day', 429, Math.ceil(((day.period + 1) * DAY - now) / 1_000));
    }
    counted.peak.day = Math.max(counted.peak.day, ++day.count);
    counted.peak.month = Math.max(counted.peak.month, ++month.count);
  }
  counted.admitted++;
  second.count++;
  return { kind: 'admitted', plan: plan.name, ...allowanceOf(account, now) };
}

/** The window in the upstream's headers (upstream-api.md, section 2): the month. Nothing when the month has no limit. */
function allowanceOf({ plan, windows }: Account, now: Instant): { readonly allowance?: Allowance } {
  const limit = plan.requestsPerMonth;
  if (limit === null) return {};
  const remaining = Math.max(0, limit - windows.month.count);
  return { allowance: { limit, remaining, resetSeconds: Math.ceil((monthReset(now) - now) / 1_000) } };
}

function accountInfoOf({ plan, since, windows }: Account): AccountInfo {
  const limit = plan.requestsPerMonth;
  const made = windows.month.count;
  return {
    plan: plan.name,
    plan_started_at: formatTime(since),
    plan_status: 'active',
    portal_url: null,
    usage: {
      message: limit === null ? 'unlimited plan' : 'limited plan',
      current_month: {
        requests_made: limit === null ? -1 : made,
        requests_left: limit === null ? -1 : Math.max(0, limit - made),
      },
    },
  };
}

function isFull({ count }: { readonly count: number }, limit: number | null): boolean {
  return limit !== null && count >= limit;
}

/** The name of an account in places where its key must not be visible. */
function accountIdOf(key: string): string {
  return `key-${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;
}

/** Overrides without any limits. */
export const NO_LIMITS = {
  requestsPerMonth: null,
  anonymousRequestsPerDay: null,
  pacePerSecond: null,
  historyDepthMs: null,
  tickerHistoryDepthMs: { minute: null, hourly: null, daily: null },
  idChanges: true,
  mappings: true,
  intervals: ['5m', '15m', '30m', '1h', '6h', '12h', '24h'],
} as const satisfies PlanLimitsOptions['overrides'];
