import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createBackoff } from '../../src/core/backoff.ts';

const waits = fc
  .record({ firstMs: fc.integer({ min: 1, max: 3_600_000 }), mostMs: fc.integer({ min: 1, max: 30 * 86_400_000 }) })
  .filter(({ firstMs, mostMs }) => firstMs <= mostMs);
const attempts = fc.oneof(fc.nat({ max: 60 }), fc.constantFrom(1_023, 1_024, 1e6, Number.MAX_SAFE_INTEGER, Infinity));
const randoms = fc.double({ min: 0, max: 1, noNaN: true });

describe('backoff', () => {
  test('doubles the wait after each attempt, from the first wait up to the longest', () => {
    const backoff = createBackoff({ firstMs: 1_000, mostMs: 10_000 });
    expect([0, 1, 2, 3, 4, 5].map((attempt) => backoff(attempt, 1))).toEqual([
      1_000, 2_000, 4_000, 8_000, 10_000, 10_000,
    ]);
  });

  test('multiplies the wait by another factor when the caller gives one', () => {
    const backoff = createBackoff({ firstMs: 60_000, mostMs: 86_400_000, factor: 4 });
    expect([0, 1, 2, 5, 6, 2_000].map((attempt) => backoff(attempt, 1))).toEqual([
      60_000, 240_000, 960_000, 61_440_000, 86_400_000, 86_400_000,
    ]);
  });

  test('applies jitter to the whole wait', () => {
    const backoff = createBackoff({ firstMs: 1_000, mostMs: 10_000 });
    expect([0, 0.25, 0.5, 1].map((random) => backoff(2, random))).toEqual([0, 1_000, 2_000, 4_000]);
  });

  test('is a whole number between zero and the bound of its attempt, for any number of attempts', () => {
    fc.assert(
      fc.property(waits, attempts, randoms, ({ firstMs, mostMs }, attempt, random) => {
        const backoff = createBackoff({ firstMs, mostMs });
        const wait = backoff(attempt, random);
        expect(Number.isInteger(wait)).toBe(true);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(backoff(attempt, 1));
        expect(backoff(attempt, 1)).toBeLessThanOrEqual(mostMs);
      }),
    );
  });

  test('has a bound that never falls from one attempt to the next and ends at the longest wait', () => {
    fc.assert(
      fc.property(waits, fc.nat({ max: 2_000 }), ({ firstMs, mostMs }, attempt) => {
        const backoff = createBackoff({ firstMs, mostMs });
        expect(backoff(0, 1)).toBe(firstMs);
        expect(backoff(attempt + 1, 1)).toBeGreaterThanOrEqual(backoff(attempt, 1));
        expect(backoff(attempt + 1, 1)).toBe(Math.min(mostMs, 2 * backoff(attempt, 1)));
        expect(backoff(Infinity, 1)).toBe(mostMs);
      }),
    );
  });

  test('gives a longer wait for a larger random number within one attempt', () => {
    fc.assert(
      fc.property(waits, attempts, randoms, randoms, (options, attempt, one, other) => {
        const backoff = createBackoff(options);
        const [less, more] = one <= other ? [one, other] : [other, one];
        expect(backoff(attempt, less)).toBeLessThanOrEqual(backoff(attempt, more));
      }),
    );
  });
});
