/** The limits of the plans, kept as strictly as the upstream might: the simulator's `Access`. */
import { createHash } from 'node:crypto';
import type { Clock, Instant } from '../clock.ts';
import { INVALID_KEY, KEY_REQUIRED, TOO_MANY_REQUESTS } from '../contract/answer/errors.ts';
import type { Access, Admission, Caller } from '../contract/plan/access.ts';
import { createPlanWalls } from '../contract/plan/plan-history-limits.ts';
import { type Plan, type PlanName, type PlanOverrides, planOf } from '../contract/plan/plans.ts';
import { formatTime } from '../contract/time.ts';
import { DAY } from '../core/interval.ts';

export type PlanLimitsOptions = {
  readonly clock: Clock;
  /** Of callers without a key; their day is limited too where the plan says so. Default `free`. */
  readonly plan?: PlanName;
  /** Which key has which plan; any other key is answered 403. */
  readonly keys?: Readonly<Record<string, PlanName>>;
  /** Callers without a key are answered 403, as on the paid host. */
  readonly requireKey?: boolean;
  /** How a key must be sent; the real paid host refuses `Bearer` (upstream-api.md, section 3). Default `both`. */
  readonly scheme?: 'both' | 'bearer' | 'bare';
  /** Replace numbers of every plan; null = no limit. */
  readonly overrides?: PlanOverrides & { readonly pacePerSecond?: number | null };
  /** Requests already spent this month by each account that has not been seen yet. */
  readonly spentBefore?: number;
};

/** What one account has asked, and what it was told. */
export type AccountCounters = {
  /** `key-<first 12 hex of the key's SHA-256>`, or `anonymous@<address>`. */
  readonly account: string;
  readonly plan: PlanName;
  /** All of them, refused ones too. */
  readonly requests: number;
  readonly admitted: number;
  readonly rejected: { readonly pace: number; readonly day: number; readonly month: number };
  readonly thisDay: number;
  readonly thisMonth: number;
  /** Most requests that arrived in one second of the clock, and most that were admitted in one day and one month. */
  readonly peak: { readonly second: number; readonly day: number; readonly month: number };
};

export type PlanLimits = Access & {
  readonly counters: () => readonly AccountCounters[];
  /** 403s: no key where one is needed, unknown keys, keys sent the wrong way. */
  readonly forbidden: () => number;
};

/** One period of a window: how many were admitted in it. */
type Window = { period: number; count: number };
type Account = {
  readonly id: string;
  readonly plan: Plan;
  readonly anonymous: boolean;
  readonly since: Instant;
  readonly second: Window;
  readonly arrivals: Window;
  readonly day: Window;
  readonly month: Window;
  requests: number;
  admitted: number;
  readonly rejected: { pace: number; day: number; month: number };
  readonly peak: { second: number; day: number; month: number };
};

export function createPlanLimits(options: PlanLimitsOptions): PlanLimits {
  const { clock, plan = 'free', keys = {}, requireKey = false, scheme = 'both', overrides = {} } = options;
  const { pacePerSecond, ...numbers } = overrides;
  const paceOf = (of: Plan) => (pacePerSecond === undefined ? of.requestsPerSecond : pacePerSecond);
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
    const known = accounts.get(id);
    if (known) return known;
    const now = clock.now();
    const account: Account = {
      id,
      plan: planOf(name, numbers),
      anonymous,
      since: now,
      second: { period: NaN, count: 0 },
      arrivals: { period: NaN, count: 0 },
      day: { period: Math.floor(now / DAY), count: 0 },
      month: { period: monthOf(now), count: options.spentBefore ?? 0 },
      requests: 0,
      admitted: 0,
      rejected: { pace: 0, day: 0, month: 0 },
      peak: { second: 0, day: 0, month: 0 },
    };
    accounts.set(id, account);
    return account;
  };
  const roll = (account: Account, now: Instant) => {
    enter(account.second, Math.floor(now / 1_000));
    enter(account.arrivals, Math.floor(now / 1_000));
    enter(account.day, Math.floor(now / DAY));
    enter(account.month, monthOf(now));
  };
  const refuseFor = (account: Account, about: 'data' | 'account', now: Instant): Admission | null => {
    const pace = paceOf(account.plan);
    if (pace !== null && account.second.count >= pace) {
      account.rejected.pace++;
      return { kind: 'rejected', status: 429, message: TOO_MANY_REQUESTS, retryAfterSeconds: 1 };
    }
    if (about === 'account') return null;
    const { requestsPerMonth, anonymousRequestsPerDay } = account.plan;
    if (requestsPerMonth !== null && account.month.count >= requestsPerMonth) {
      account.rejected.month++;
      return { kind: 'rejected', status: 402, message: TOO_MANY_REQUESTS };
    }
    if (account.anonymous && anonymousRequestsPerDay !== null && account.day.count >= anonymousRequestsPerDay) {
      account.rejected.day++;
      const retryAfterSeconds = Math.ceil(((account.day.period + 1) * DAY - now) / 1_000);
      return { kind: 'rejected', status: 429, message: TOO_MANY_REQUESTS, retryAfterSeconds };
    }
    return null;
  };

  return {
    admit(caller, about) {
      const account = identify(caller);
      if (typeof account === 'string') {
        forbidden++;
        return { kind: 'rejected', status: 403, message: account };
      }
      const now = clock.now();
      roll(account, now);
      account.requests++;
      account.peak.second = Math.max(account.peak.second, ++account.arrivals.count);
      const refused = refuseFor(account, about, now);
      if (refused) return refused;
      account.admitted++;
      account.second.count++;
      if (about === 'data') {
        account.peak.day = Math.max(account.peak.day, ++account.day.count);
        account.peak.month = Math.max(account.peak.month, ++account.month.count);
      }
      return { kind: 'admitted', plan: account.plan.name };
    },
    ...createPlanWalls(clock, (name) => planOf(name, numbers)),
    account(caller) {
      const account = caller.key === null ? null : identify(caller);
      if (account === null || typeof account === 'string') return null;
      roll(account, clock.now());
      const limit = account.plan.requestsPerMonth;
      return {
        plan: account.plan.name,
        plan_started_at: formatTime(account.since),
        plan_status: 'active',
        portal_url: null,
        usage: {
          message: limit === null ? 'unlimited plan' : 'limited plan',
          current_month: {
            requests_made: limit === null ? -1 : account.month.count,
            requests_left: limit === null ? -1 : Math.max(0, limit - account.month.count),
          },
        },
      };
    },
    counters: () => {
      const now = clock.now();
      return [...accounts.values()].map((account) => {
        roll(account, now);
        const { id, plan, requests, admitted, rejected, peak } = account;
        const counts = { thisDay: account.day.count, thisMonth: account.month.count };
        return {
          account: id,
          plan: plan.name,
          requests,
          admitted,
          rejected: { ...rejected },
          ...counts,
          peak: { ...peak },
        };
      });
    },
    forbidden: () => forbidden,
  };
}

/** How an account is called wherever its key must not be seen. */
export function accountIdOf(key: string): string {
  return `key-${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;
}

/** No limits of any kind, for who only wants the data. */
export const NO_LIMITS = {
  requestsPerMonth: null,
  anonymousRequestsPerDay: null,
  pacePerSecond: null,
  historyDepthMs: null,
  tickerHistoryDepthMs: { minute: null, hourly: null, daily: null },
  idChanges: true,
  intervals: ['5m', '15m', '30m', '1h', '6h', '12h', '24h'],
} as const satisfies PlanLimitsOptions['overrides'];

function enter(window: Window, period: number): void {
  if (window.period === period) return;
  window.period = period;
  window.count = 0;
}

/** Calendar months, UTC, counted through. */
function monthOf(at: Instant): number {
  const date = new Date(at);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
