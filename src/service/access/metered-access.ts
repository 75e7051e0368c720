/** The warehouse's own `Access`: keys from the operator, the API document's limits by plan, and counts that survive a restart. */
import type { Clock } from '../../clock.ts';
import { INVALID_KEY, TOO_MANY_REQUESTS } from '../../contract/answer/errors.ts';
import type { Access, Admission } from '../../contract/plan/access.ts';
import { createPlanHistoryLimits } from '../../contract/plan/plan-history-limits.ts';
import { isPlanName, type PlanName, planOf } from '../../contract/plan/plans.ts';
import type { AccountInfo } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { monthStart } from '../../core/calendar.ts';
import { callerAddress } from '../../core/caller/address.ts';
import { UNLIMITED } from '../../core/caller/api-key.ts';
import type { ApiKey } from '../../store/callers/api-key.ts';
import { readUsage } from '../../store/callers/api-usage.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createKeyGuessLimiter, createKeyring } from './keyring.ts';
import { createQuotaLeases, type QuotaLimits, type QuotaTaken } from './quota-leases.ts';
import { createSharedPace } from './shared-pace.ts';
import { createTokenBuckets } from './token-bucket.ts';

export type MeteredAccess = Access & {
  /** Returns the quota leases. */
  close(): Promise<void>;
};

type MeteredAccessOptions = {
  /** Its role may read `ops.api_key`, and write `ops.api_usage` and `ops.api_pace`. */
  readonly sql: Sql;
  readonly clock: Clock;
  /** False: every caller is admitted and sees everything, and no request is counted. Keys still identify their holders. */
  readonly limits: boolean;
  /** Called when requests could not be counted exactly. */
  readonly onError: (error: Error) => void;
};

/** The plan of a caller without any limit. */
const WIDEST: PlanName = 'enterprise';

type Rejection = Extract<Admission, { kind: 'rejected' }>;

const wrongKey: Rejection = { kind: 'rejected', status: 403, message: INVALID_KEY };

/** The unit that is counted: an account or an address, with its limits. */
type Subject = {
  readonly id: string;
  readonly plan: PlanName;
  readonly limits: QuotaLimits;
  readonly perSecond: number | null;
};

export function createMeteredAccess({ sql, clock, limits, onError }: MeteredAccessOptions): MeteredAccess {
  const keyring = createKeyring({ sql, clock });
  if (!limits) {
    return {
      admit: () => ({ kind: 'admitted', plan: WIDEST }),
      refuseHistory: () => null,
      refuseTickerHistory: () => null,
      refuseIdChanges: () => null,
      refuseMappings: () => null,
      account: async (caller) => {
        const key = caller.key === null ? null : await keyring.find(caller.key);
        return key === null ? null : accountInfo(key, null);
      },
      close: async () => undefined,
    };
  }
  const buckets = createTokenBuckets(clock);
  // A caller cannot guess keys faster than it can send requests without one, and guessing costs no more statements.
  const guessesPerSecond = planOf('free').requestsPerSecond;
  const guesses = createKeyGuessLimiter(buckets, guessesPerSecond);
  const pace = createSharedPace({ sql, clock, onError });
  const leases = createQuotaLeases({ sql, clock, onError });

  const identify = async (key: string): Promise<Subject | null> => {
    const found = await keyring.find(key);
    return found === null ? null : subjectOf(found);
  };
  const admitSubject = (subject: Subject, about: 'data' | 'account'): Admission | Promise<Admission> => {
    const late = pace.take(subject.id, subject.perSecond);
    if (late instanceof Promise) return late.then((lateMs) => admitInPace(subject, about, lateMs));
    return admitInPace(subject, about, late);
  };
  const admitInPace = (
    subject: Subject,
    about: 'data' | 'account',
    lateMs: number | null,
  ): Admission | Promise<Admission> => {
    if (lateMs !== null) return { ...tooFast(lateMs, subject.perSecond), waitMs: Math.ceil(lateMs) };
    if (about === 'account') return { kind: 'admitted', plan: subject.plan };
    const taken = leases.take(subject.id, subject.limits);
    return taken instanceof Promise ? taken.then((t) => admissionOf(subject, t)) : admissionOf(subject, taken);
  };
  const admitKey = async (key: string, address: string, about: 'data' | 'account'): Promise<Admission> => {
    if (keyring.isNew(key)) {
      const looked = await guesses.lookUp(address, () => identify(key));
      if ('lateMs' in looked) return tooFast(looked.lateMs, guessesPerSecond);
      return looked.found === null ? wrongKey : admitSubject(looked.found, about);
    }
    const subject = await identify(key);
    if (subject !== null) return admitSubject(subject, about);
    const early = guesses.countWrong(address);
    return early === null ? wrongKey : tooFast(early.lateMs, guessesPerSecond);
  };

  return {
    ...createPlanHistoryLimits(clock),
    admit: ({ key, address }, about) =>
      key === null ? admitSubject(anonymous(address), about) : admitKey(key, callerAddress(address), about),
    async account(caller) {
      const key = caller.key === null ? null : await keyring.find(caller.key);
      if (key === null) return null;
      const subject = subjectOf(key);
      const { stored: usage, unreported, unused } = await leases.monthOf(subject.id, () => readUsage(sql, subject.id));
      const isThisMonth = usage !== null && usage.month >= monthStart(clock.now());
      const { monthSpent, monthLeased } = isThisMonth ? usage : { monthSpent: 0, monthLeased: 0 };
      const made = monthSpent - monthLeased + unreported;
      const limit = subject.limits.perMonth;
      if (limit === null) return accountInfo(key, null);
      // The lease of a crashed process is lost, so the smaller number counts: a refused caller must not read that requests are left.
      return accountInfo(key, { made, left: Math.max(0, Math.min(limit - made, limit - monthSpent + unused)) });
    },
    close: async () => void (await Promise.all([pace.close(), leases.close()])),
  };
}

/** `usage` is null when it is unlimited. */
function accountInfo(key: ApiKey, usage: { readonly made: number; readonly left: number } | null): AccountInfo {
  return {
    plan: key.plan === UNLIMITED ? WIDEST : subjectOf(key).plan,
    plan_started_at: formatTime(Math.floor(key.createdAt / 1000) * 1000),
    plan_status: 'active',
    portal_url: null,
    usage: {
      message: usage === null ? 'unlimited plan' : 'limited plan',
      current_month: { requests_made: usage?.made ?? -1, requests_left: usage?.left ?? -1 },
    },
  };
}

function tooFast(lateMs: number, perSecond: number | null): Rejection {
  const retryAfterSeconds = Math.max(1, Math.ceil(lateMs / 1000));
  // The headers show the rate limit, because it is the reason for the refusal. The quota of the day and the month does not matter here.
  const limit = Math.max(1, Math.floor(perSecond ?? 1));
  const allowance = { limit, remaining: 0, resetSeconds: retryAfterSeconds };
  return { kind: 'rejected', status: 429, message: TOO_MANY_REQUESTS, retryAfterSeconds, allowance };
}

/** An exhausted day is answered with 429, an exhausted month with 402. Both answers say when to come back (decision 9). */
function admissionOf({ plan }: Subject, taken: QuotaTaken): Admission {
  const { allowance } = taken;
  if (taken.kind === 'granted') return { kind: 'admitted', plan, ...(allowance === null ? {} : { allowance }) };
  return {
    kind: 'rejected',
    status: taken.window === 'day' ? 429 : 402,
    message: TOO_MANY_REQUESTS,
    retryAfterSeconds: taken.allowance.resetSeconds,
    allowance: taken.allowance,
  };
}

function anonymous(address: string): Subject {
  const { name, requestsPerMonth, anonymousRequestsPerDay, requestsPerSecond } = planOf('free');
  return {
    id: `address:${callerAddress(address)}`,
    plan: name,
    limits: { perMonth: requestsPerMonth, perDay: anonymousRequestsPerDay },
    perSecond: requestsPerSecond,
  };
}

function subjectOf(key: ApiKey): Subject {
  const plan = planOf(isPlanName(key.plan) ? key.plan : WIDEST);
  const isUnlimited = key.plan === UNLIMITED;
  return {
    id: `key:${key.accountId}`,
    plan: plan.name,
    limits: { perMonth: key.requestsPerMonth ?? (isUnlimited ? null : plan.requestsPerMonth), perDay: null },
    perSecond: key.requestsPerSecond ?? (isUnlimited ? null : plan.requestsPerSecond),
  };
}
