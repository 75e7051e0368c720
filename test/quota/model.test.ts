import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import {
  afterAnswered,
  afterExhausted,
  afterLimited,
  afterReconciled,
  afterUnavailable,
} from '../../src/quota/backoff-state.ts';
import { createQuota } from '../../src/quota/ledger.ts';
import type { Spender, Take } from '../../src/quota/quota.ts';
import { type Ledger, readLedger } from '../../src/store/quota/quota.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createManualClock } from './manual-clock.ts';
import { EMPTY, type Own, takeFrom } from './model.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const limit = fc.option(
  fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 9, arbitrary: fc.integer({ min: 3, max: 60 }) }),
);
const terms = fc.record({
  limits: fc.record({
    perSecond: fc.option(fc.constantFrom(0.2, 1, 2, 10, 100)),
    perDay: limit,
    perMonth: limit,
  }),
  perMonthFixed: fc.boolean(),
  aside: fc.record({
    day: fc.integer({ min: 0, max: 3 }),
    month: fc.integer({ min: 0, max: 3 }),
    account: fc.option(fc.constant({ day: 1, month: 1 }), { nil: undefined }),
  }),
});
const spenders: readonly Spender[] = [
  { class: 'backfill', name: 'b' },
  { class: 'scheduled', name: 's' },
  { class: 'scheduled', name: 'account', isAccountRequest: true },
  { class: 'scheduled', name: 'tools', isOtherHost: true },
];
const wait = fc.option(fc.constantFrom(0, 500, 3000, 90_000));
// A request that was sent before the clock was set back is reported with an instant later than now.
const ago = fc.constantFrom(0, 1, 300, 20_000, -5000, -2 * DAY);
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('take' as const), by: fc.constantFrom(...spenders) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('takes' as const),
      by: fc.constantFrom(...spenders),
      count: fc.integer({ min: 2, max: 12 }),
    }),
  },
  {
    weight: 6,
    // The clock mostly goes forward, and is sometimes set back.
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom(1, 37, 101, 999, 2000, 60_000, HOUR, 11 * HOUR, 9 * DAY) },
        { weight: 1, arbitrary: fc.constantFrom(-1, -5000, -HOUR, -2 * DAY) },
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('limited' as const), ago, wait }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('unavailable' as const), ago, wait }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('spent' as const), ago, window: fc.constantFrom('day', 'month') }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('answered' as const), ago }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('reconcile' as const),
      made: fc.nat({ max: 10 }),
      left: fc.option(fc.nat({ max: 10 })),
    }),
  },
);
const start = fc.constantFrom(
  ...['2024-02-28T23:59:50Z', '2024-02-29T23:59:57.5Z', '2024-12-31T23:00:00Z', '2024-06-15T12:00:00Z'].map(Date.parse),
);

const timeOf = (take: Take) => (take.kind === 'granted' ? take.sendAt : take.until);
const lastOf = (take: Take) => (take.kind === 'granted' ? take.goodUntil : take.until);
const near = (isNear: boolean) => ({ sendAt: null, until: null, goodUntil: null, near: isNear });
const areNear = (a: Take, b: Take) => Math.abs(timeOf(a) - timeOf(b)) <= 1 && Math.abs(lastOf(a) - lastOf(b)) <= 2;

it('the SQL of the ledger agrees with the rules for any events in any order', async () => {
  let account = 0;
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(terms, start, fc.array(step, { minLength: 60, maxLength: 120 }), async (given, startAt, steps) => {
      const accountId = `model-${++account}`;
      const clock = createManualClock(startAt);
      const quota = createQuota({
        sql: database.sql,
        clock,
        accountId,
        limits: given.limits,
        perMonthFixed: given.perMonthFixed,
        reserved: () => given.aside,
        useDatabaseClock: false,
        random: () => 0.25,
      });
      let ledger: Ledger = EMPTY;
      let own: Own = { month: 0, spent: 0 };
      // What a process keeps in memory: whether an answer is to be recorded after a failure, and since when the upstream has answered.
      let troubled = false;
      let lastAnswered = Number.NEGATIVE_INFINITY;
      const note = (next: Ledger) => {
        ledger = next;
        troubled = next.downStreak > 0 || next.limitedStreak > 0 || next.probe !== null;
      };
      for (const s of steps) {
        const now = clock.now();
        if (s.do === 'take' || s.do === 'takes') {
          // Takes at the same moment get what they would get one after the other.
          const takes = await Promise.all(
            Array.from({ length: s.do === 'take' ? 1 : s.count }, () => quota.take(s.by)),
          );
          for (const take of takes) {
            const expected = takeFrom(ledger, now, given, s.by, own);
            // The database counts in microseconds, so a value may fall on either side of the millisecond grid.
            expect({ ...take, ...near(areNear(take, expected.take)) }).toEqual({ ...expected.take, ...near(true) });
            ({ ledger, own } = expected);
            if (ledger.downStreak > 0 || ledger.limitedStreak > 0 || ledger.probe !== null) troubled = true;
            const what = take.kind === 'granted' ? 'granted' : take.reason;
            seen.set(what, (seen.get(what) ?? 0) + 1);
          }
        } else if (s.do === 'pass') clock.advance(s.ms);
        else if (s.do === 'reconcile') {
          await quota.reconcile(s);
          ledger = afterReconciled(ledger, now, s);
        } else {
          const reported = { sentAt: now - s.ago, message: 'm' };
          const event = { ...reported, sentAt: Math.min(reported.sentAt, now) };
          if (lastAnswered > now) lastAnswered = Number.NEGATIVE_INFINITY;
          if (s.do === 'answered') {
            await quota.answered(reported);
            lastAnswered = Math.max(lastAnswered, event.sentAt);
            if (troubled) note(afterAnswered(ledger, now, event));
          } else if (s.do === 'spent') {
            await quota.exhausted({ ...reported, window: s.window as 'day' | 'month' });
            note(afterExhausted(ledger, { ...event, window: s.window as 'day' | 'month', graceMs: 2000 }));
          } else {
            await quota[s.do]({ ...reported, retryAfterMs: s.wait });
            const full = { ...event, retryAfterMs: s.wait, random: 0.25 };
            if (s.do === 'limited') note(afterLimited(ledger, now, full));
            else if (event.sentAt >= lastAnswered || s.wait !== null) note(afterUnavailable(ledger, now, full));
          }
        }
      }
      const stored = (await readLedger(database.sql, { accountId, now: clock.now() })).ledger;
      expect(stored.nextFree).toBeCloseTo(ledger.nextFree, 1);
      expect({ ...stored, nextFree: 0, paceFactor: 0, limitedUntil: 0 }).toEqual({
        ...ledger,
        nextFree: 0,
        paceFactor: 0,
        limitedUntil: 0,
      });
    }),
    { numRuns: 40 },
  );
  // The property means something only if enough of each kind of event happened.
  expect(seen.size).toBeGreaterThanOrEqual(5);
  expect(seen.get('granted')).toBeGreaterThan(50);
});
