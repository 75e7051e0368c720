/** The warehouse's own `Access`: keys that the operator hands out, the API document's limits by plan, and counts that survive. */
import type { Clock } from '../../clock.ts';
import { INVALID_KEY, TOO_MANY_REQUESTS } from '../../contract/answer/errors.ts';
import type { Access, Admission, Caller } from '../../contract/plan/access.ts';
import { createPlanWalls } from '../../contract/plan/plan-history-limits.ts';
import { isPlanName, type Plan, type PlanName, planOf } from '../../contract/plan/plans.ts';
import { formatTime } from '../../contract/time.ts';
import { callerAddress } from '../../core/address.ts';
import { UNLIMITED } from '../../core/api-key.ts';
import type { ApiKey } from '../../store/callers/api-key.ts';
import { readUsage } from '../../store/callers/api-usage.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createGuesses } from './key-guess-limiter.ts';
import { createKeyring } from './keyring.ts';
import { createAdvances, monthOf, type Windows } from './quota-leases.ts';
import { createPace } from './token-bucket.ts';

export type MeteredAccess = Access & {
  /** Gives back what was counted in advance. */
  close(): Promise<void>;
};

export type MeteredAccessOptions = {
  /** May read `ops.api_key`, and write `ops.api_usage`. */
  readonly sql: Sql;
  readonly clock: Clock;
  /** False: everybody is let in, sees everything, and nothing is counted. Keys still say who they belong to. */
  readonly limits: boolean;
  /** Told of what could not be counted exactly. */
  readonly onError: (error: Error) => void;
};

/** What a caller without any limit is shown as. */
const WIDEST: PlanName = 'enterprise';

type Rejection = Extract<Admission, { kind: 'rejected' }>;

const wrongKey: Rejection = { kind: 'rejected', status: 403, message: INVALID_KEY };

/** A caller as it is counted. */
type Subject = {
  readonly id: string;
  readonly plan: PlanName;
  readonly windows: Windows;
  readonly perSecond: number | null;
};

export function createMeteredAccess({ sql, clock, limits, onError }: MeteredAccessOptions): MeteredAccess {
  const keyring = createKeyring({ sql, clock });
  const walls = createPlanWalls(clock);
  if (!limits) {
    return {
      admit: () => ({ kind: 'admitted', plan: WIDEST }),
      refuseHistory: () => null,
      refuseTickerHistory: () => null,
      refuseIdChanges: () => null,
      account: (caller) => accountOf(caller),
      close: async () => undefined,
    };
  }
  const pace = createPace(clock);
  // Guessing keys is no faster than asking without one, and costs no more statements than that.
  const guessesPerSecond = planOf('free').requestsPerSecond;
  const guesses = createGuesses({ pace, perSecond: guessesPerSecond });
  const advances = createAdvances({ sql, clock, onError });

  async function accountOf(caller: Caller) {
    const key = caller.key === null ? null : await keyring.find(caller.key);
    if (key === null) return null;
    const { id, plan, windows } = subjectOf(key);
    const usage = await readUsage(sql, id);
    const { monthSpent, monthHeld } =
      usage !== null && usage.month >= monthOf(clock.now()) ? usage : { monthSpent: 0, monthHeld: 0 };
    const { untold, held } = limits ? advances.ofMonth(id) : { untold: 0, held: 0 };
    const made = monthSpent - monthHeld + untold;
    const limit = limits ? windows.perMonth : null;
    // What a process that died held in advance nobody is given any more: who is refused must not read that he has requests left.
    const left = limit === null ? -1 : Math.max(0, Math.min(limit - made, limit - monthSpent + held));
    return {
      plan: key.plan === UNLIMITED ? WIDEST : plan,
      plan_started_at: formatTime(Math.floor(key.createdAt / 1000) * 1000),
      plan_status: 'active',
      portal_url: null,
      usage: {
        message: limit === null ? 'unlimited plan' : 'limited plan',
        current_month: {
          requests_made: limit === null ? -1 : made,
          requests_left: left,
        },
      },
    };
  }

  /** The caller with what it may, or why it may nothing. */
  const identify = async (caller: Caller): Promise<Subject | null> => {
    const key = await keyring.find(caller.key!);
    return key === null ? null : subjectOf(key);
  };
  const tooFast = (lateMs: number, perSecond: number | null): Rejection => {
    const retryAfterSeconds = Math.max(1, Math.ceil(lateMs / 1000));
    // What stands in the way is the pace, however much is left of day and month.
    const limit = Math.max(1, Math.floor(perSecond ?? 1));
    const allowance = { limit, remaining: 0, resetSeconds: retryAfterSeconds };
    return { kind: 'rejected', status: 429, message: TOO_MANY_REQUESTS, retryAfterSeconds, allowance };
  };
  const admitSubject = (subject: Subject, about: 'data' | 'account'): Admission | Promise<Admission> => {
    const lateMs = pace.tooEarly(subject.id, subject.perSecond);
    if (lateMs !== null) return { ...tooFast(lateMs, subject.perSecond), waitMs: Math.ceil(lateMs) };
    if (about === 'account') return { kind: 'admitted', plan: subject.plan };
    const taken = advances.take(subject.id, subject.windows);
    return taken instanceof Promise ? taken.then((t) => admissionOf(subject, t)) : admissionOf(subject, taken);
  };

  return {
    ...walls,
    admit(caller, about) {
      if (caller.key === null) return admitSubject(anonymous(caller.address), about);
      const from = `guess:${callerAddress(caller.address)}`;
      if (keyring.isNew(caller.key)) {
        return guesses
          .lookUp(from, () => identify(caller))
          .then((looked) => {
            if ('lateMs' in looked) return tooFast(looked.lateMs, guessesPerSecond);
            return looked.found === null ? wrongKey : admitSubject(looked.found, about);
          });
      }
      return identify(caller).then((subject) => {
        if (subject !== null) return admitSubject(subject, about);
        const early = guesses.wrong(from);
        return early === null ? wrongKey : tooFast(early.lateMs, guessesPerSecond);
      });
    },
    account: (caller) => accountOf(caller),
    close: () => advances.close(),
  };
}

type Taken = Awaited<ReturnType<ReturnType<typeof createAdvances>['take']>>;

/** Decision 9: the day spent is 429, the month 402; both say when to come back. */
function admissionOf({ plan }: Subject, taken: Taken): Admission {
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
    windows: { perMonth: requestsPerMonth, perDay: anonymousRequestsPerDay },
    perSecond: requestsPerSecond,
  };
}

function subjectOf(key: ApiKey): Subject {
  const plan: Plan = planOf(isPlanName(key.plan) ? key.plan : WIDEST);
  const isUnlimited = key.plan === UNLIMITED;
  return {
    id: `key:${key.accountId}`,
    plan: plan.name,
    windows: { perMonth: key.requestsPerMonth ?? (isUnlimited ? null : plan.requestsPerMonth), perDay: null },
    perSecond: key.requestsPerSecond ?? (isUnlimited ? null : plan.requestsPerSecond),
  };
}
