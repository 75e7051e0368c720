import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import {
  type ClaimAnswer,
  nextWait,
  RULES,
  type Rule,
  type Standing,
  type Weighed,
  weighAnswer,
} from '../../src/core/second-opinion.ts';

const NOON = Date.UTC(2026, 10, 1, 12);
const MINUTE = 60_000;

/** A claim needs two answers, ten minutes apart. It is forgotten after a day. */
const RULE: Rule = { agreeing: 2, waitMs: 10 * MINUTE, believedMs: HOUR, forgetMs: DAY };
const FIRST: Standing = { answers: 1, requestedAt: NOON, retryAt: NOON + 10 * MINUTE };

/** An answer to a request that was sent this long after noon and took no time. */
const answer = (afterMs: number, change: Partial<ClaimAnswer> = {}): ClaimAnswer => {
  const sentAt = NOON + afterMs;
  return { says: 'agrees', sentAt, heardAt: sentAt, ageMs: 0, ...change };
};
const counted = (kind: 'waiting' | 'believed', answers: number, requestedMs: number, retryMs: number): Weighed => ({
  kind,
  standing: { answers, requestedAt: NOON + requestedMs, retryAt: NOON + retryMs },
  isCounted: true,
});
const uncounted = (standing: Standing): Weighed => ({ kind: 'waiting', standing, isCounted: false });

describe('another answer about a claim', () => {
  test.each<[string, Standing | null, ClaimAnswer, Weighed]>([
    ['the first one waits', null, answer(0), counted('waiting', 1, 0, 10 * MINUTE)],
    [
      'the first one waits from when it was heard',
      null,
      answer(0, { heardAt: NOON + 5 }),
      counted('waiting', 1, 5, 10 * MINUTE + 5),
    ],
    ['the second one is believed', FIRST, answer(10 * MINUTE), counted('believed', 2, 10 * MINUTE, 70 * MINUTE)],
    [
      'another claim begins anew',
      FIRST,
      answer(10 * MINUTE, { says: 'differs' }),
      counted('waiting', 1, 10 * MINUTE, 20 * MINUTE),
    ],
    ['a contradiction drops the claim', FIRST, answer(1, { says: 'contradicts' }), { kind: 'dropped' }],
    ['a contradiction of nothing drops nothing', null, answer(0, { says: 'contradicts' }), { kind: 'dropped' }],
    [
      'a contradiction that was requested before the claim was heard does not count',
      FIRST,
      answer(-1, { says: 'contradicts', heardAt: NOON + 1 }),
      uncounted(FIRST),
    ],
    [
      'a contradiction that a cache repeats does not count',
      FIRST,
      answer(MINUTE, { says: 'contradicts', ageMs: 2 * MINUTE }),
      uncounted(FIRST),
    ],
    ['one that was requested too early does not count', FIRST, answer(10 * MINUTE - 1), uncounted(FIRST)],
    [
      'another claim that was requested too early does not count',
      FIRST,
      answer(MINUTE, { says: 'differs' }),
      uncounted(FIRST),
    ],
    [
      'one that a cache repeats does not count, and the cache must forget it first',
      FIRST,
      answer(10 * MINUTE, { ageMs: 10 * MINUTE }),
      uncounted({ answers: 1, requestedAt: NOON + 10 * MINUTE, retryAt: NOON + 11 * MINUTE }),
    ],
    [
      'one that a cache repeats does not count either when `Age`, in whole seconds, makes it younger than it is',
      FIRST,
      answer(10 * MINUTE + 900, { ageMs: 10 * MINUTE }),
      uncounted({ answers: 1, requestedAt: NOON + 10 * MINUTE + 900, retryAt: NOON + 11 * MINUTE + 900 }),
    ],
    [
      'one of a cache that was made since counts',
      FIRST,
      answer(10 * MINUTE, { ageMs: MINUTE }),
      counted('believed', 2, 10 * MINUTE, 70 * MINUTE),
    ],
    [
      'one that is older than any cache keeps it waits no longer than the rule says',
      null,
      answer(0, { ageMs: DAY }),
      counted('waiting', 1, 0, 10 * MINUTE),
    ],
    [
      'a believed one is confirmed',
      { answers: 2, requestedAt: NOON, retryAt: NOON + HOUR },
      answer(HOUR),
      counted('believed', 3, HOUR, 2 * HOUR),
    ],
    [
      'one that was forgotten begins anew',
      FIRST,
      answer(DAY + 1),
      counted('waiting', 1, DAY + 1, DAY + 1 + 10 * MINUTE),
    ],
  ])('%s', (_, before, next, expected) => {
    expect(weighAnswer(before, next, RULE)).toEqual(expected);
  });

  test('the first two waits for a better row are seconds; each later wait is longer, even if the answers differ, up to the longest', () => {
    let standing: Standing | null = null;
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      const sentAt: number = standing?.retryAt ?? NOON;
      const weighed = weighAnswer(standing, { says: 'differs', sentAt, heardAt: sentAt, ageMs: 0 }, RULES.malformed);
      if (weighed.kind === 'dropped') throw new Error('not dropped');
      standing = weighed.standing;
      waits.push((standing.retryAt - standing.requestedAt) / MINUTE);
    }
    expect(waits).toEqual([2 / 60, 5 / 60, 2, 20, 200, 1_440, 1_440]);
  });
});

test('after a cache has prolonged a wait, the next wait is the next longer one', () => {
  const cached = { requestedAt: NOON, retryAt: NOON + MINUTE };
  expect(nextWait(cached, RULES.malformed)).toBe(2 * MINUTE);
});

test.each(Object.entries(RULES))('%s is believed after exactly as many answers as its rule says', (_, rule: Rule) => {
  let standing: Standing | null = null;
  for (let answers = 1; answers <= rule.agreeing; answers++) {
    const sentAt: number = (standing?.retryAt ?? NOON) + 1;
    const weighed = weighAnswer(standing, { says: 'agrees', sentAt, heardAt: sentAt, ageMs: 0 }, rule);
    expect(weighed).toMatchObject({ kind: answers < rule.agreeing ? 'waiting' : 'believed', standing: { answers } });
    if (weighed.kind !== 'dropped') standing = weighed.standing;
  }
});

test('an answer that is weighed twice, because its transaction was repeated, finds the claim believed', () => {
  const second = answer(10 * MINUTE);
  const believed = weighAnswer(FIRST, second, RULE);
  expect(believed).toMatchObject({ kind: 'believed', isCounted: true });
  const standing = (believed as Extract<Weighed, { standing: Standing }>).standing;
  expect(weighAnswer(standing, second, RULE)).toEqual({ kind: 'believed', standing, isCounted: false });
  expect(weighAnswer(standing, { ...second, says: 'differs' }, RULE).kind).toBe('waiting');
});

test('a claim is never believed if its answers are not independent, or if one has contradicted it since', () => {
  const answers = fc.array(
    fc.record({
      says: fc.constantFrom('agrees' as const, 'differs' as const, 'contradicts' as const),
      afterMs: fc.nat(20 * MINUTE),
      takesMs: fc.nat(MINUTE),
      ageMs: fc.oneof(fc.constant(0), fc.nat(30 * MINUTE)),
    }),
  );
  fc.assert(
    fc.property(answers, (list) => {
      let standing: Standing | null = null;
      let now = NOON;
      /** The times at which the answers were made that support the claim. */
      let made: number[] = [];
      for (const { says, afterMs, takesMs, ageMs } of list) {
        const sentAt = now + afterMs;
        now = sentAt + takesMs;
        const weighed: Weighed = weighAnswer(standing, { says, sentAt, heardAt: now, ageMs }, RULE);
        if (weighed.kind === 'dropped') {
          expect(says).toBe('contradicts');
          standing = null;
          made = [];
          continue;
        }
        if (weighed.isCounted)
          made = says === 'agrees' && weighed.standing.answers > 1 ? [...made, sentAt - ageMs] : [sentAt - ageMs];
        expect(weighed.standing.answers).toBe(made.length);
        // A claim that is believed stays believed when the same answer is weighed once more.
        const isBelieved = made.length >= RULE.agreeing && (weighed.isCounted || says === 'agrees');
        expect(weighed.kind === 'believed').toBe(isBelieved);
        for (const [i, at] of made.entries()) if (i > 0) expect(at).toBeGreaterThan(made[i - 1]!);
        standing = weighed.standing;
      }
    }),
  );
});
