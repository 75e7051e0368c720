/** The quota left over for confirming holes: never more than a twentieth, and nothing that any other spender needs. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dayReset, dayStart, monthReset, monthStart } from '../../src/core/calendar.ts';
import { DAY } from '../../src/core/interval.ts';
import { holeAllowance } from '../../src/quota/hole-allowance.ts';
import type { QuotaState } from '../../src/quota/quota.ts';

/** The end of a month of thirty days. */
const LATE = Date.UTC(2026, 10, 30, 23, 59);
const NO_NEED = { day: 0, month: 0 };

function stateAt(
  now: number,
  { perMonth, perDay, spent = 0 }: { perMonth: number | null; perDay: number | null; spent?: number },
): QuotaState {
  return {
    accountId: 'a',
    now,
    month: { start: monthStart(now), reset: monthReset(now), spent, limit: perMonth },
    day: { start: dayStart(now), reset: dayReset(now), spent: 0, limit: perDay },
    rate: { limit: null, now: null, nextFree: now },
    hold: null,
    outage: null,
  };
}
const ask = (state: QuotaState, more: Partial<Parameters<typeof holeAllowance>[0]> = {}) =>
  holeAllowance({ state, reserved: NO_NEED, spent: 0, isBackfillOpen: false, ...more });

describe('the allowance for confirming holes', () => {
  test('is a twentieth of the month, and grows evenly from the start of the month', () => {
    const limits = { perMonth: 20_000, perDay: null };
    const at = (day: number) => ask(stateAt(Date.UTC(2026, 10, day), limits));
    expect(at(1)).toMatchObject({ share: 1_000, allowed: 0, waitsFor: 'share' });
    expect(at(16)).toMatchObject({ share: 1_000, allowed: 500, waitsFor: null });
    expect(ask(stateAt(LATE, limits), { spent: 400 })).toMatchObject({ spent: 400, allowed: 599 });
    expect(ask(stateAt(LATE, limits), { spent: 1_000 })).toMatchObject({ allowed: 0, waitsFor: 'share' });
  });

  test('is a twentieth of the sum of the days when the plan has only a daily limit', () => {
    expect(ask(stateAt(LATE, { perMonth: null, perDay: 1_000 }))).toMatchObject({ share: 1_500 });
  });

  test('is unlimited without limits', () => {
    const state = stateAt(LATE, { perMonth: null, perDay: null });
    expect(ask(state)).toEqual({ share: null, spent: 0, allowed: null, waitsFor: null });
  });

  test('leaves what the schedules have reserved, and a tenth more for their retries', () => {
    const state = stateAt(LATE, { perMonth: 20_000, perDay: null, spent: 10_000 });
    expect(ask(state, { reserved: { day: 0, month: 8_800 } })).toMatchObject({ allowed: 222 });
    expect(ask(state, { reserved: { day: 0, month: 9_000 } })).toMatchObject({ allowed: 0, waitsFor: 'quota' });
    const daily = stateAt(LATE, { perMonth: null, perDay: 100 });
    expect(ask(daily, { reserved: { day: 90, month: 90 } })).toMatchObject({ allowed: 0, waitsFor: 'quota' });
  });

  test('is 0 while all requests are held and while a backfill is open', () => {
    const state = stateAt(LATE, { perMonth: 20_000, perDay: null });
    expect(ask(state, { isBackfillOpen: true })).toMatchObject({ allowed: 0, waitsFor: 'backfills' });
    const hold = { until: LATE + 1, reason: 'limited', message: '' } as const;
    expect(ask({ ...state, hold })).toMatchObject({ allowed: 0, waitsFor: 'hold' });
  });

  test('never exceeds its share, never takes from the reservation, and gives a reason when it is 0, for any numbers', () => {
    const n = fc.integer({ min: 0, max: 30_000 });
    const limit = fc.option(n);
    fc.assert(
      fc.property(limit, limit, n, n, n, n, fc.nat(90 * 24), (perMonth, perDay, spent, holes, day, month, hours) => {
        const state = stateAt(LATE - 90 * DAY + hours * 3_600_000, { perMonth, perDay, spent });
        const { share, allowed, waitsFor } = ask(state, { spent: holes, reserved: { day, month } });
        expect(waitsFor === null).toBe(allowed !== 0);
        if (allowed === null || allowed === 0) return;
        expect(allowed).toBeGreaterThan(0);
        expect(allowed + holes).toBeLessThanOrEqual(share!);
        if (perMonth !== null) {
          expect(share).toBeLessThanOrEqual(perMonth / 20);
          expect(spent + month + allowed).toBeLessThanOrEqual(perMonth);
        }
        if (perDay !== null) expect(day + allowed).toBeLessThanOrEqual(perDay);
      }),
      { numRuns: 2000 },
    );
  });
});
