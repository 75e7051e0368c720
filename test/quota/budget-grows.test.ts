/** When a month has more requests than the one before, refreshes become more frequent. Meanwhile no series exceeds its promised age. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { HEADROOM, planFreshness, type TierDemand } from '../../src/quota/achievable-ages.ts';
import { chooseDue, lastRefreshTime, refreshesToday, refreshRoom } from '../../src/quota/refresh-order.ts';

type Series = {
  readonly seriesId: number;
  readonly tier: TierDemand;
  refreshAt: number | null;
  /** The time of its newest data. */
  seenUntil: number;
  refreshes: number;
};

const STEP = HOUR / 2;

/** Each tier as the service plans it at a run. `told` follows the rule of `recordPlannedAges`. */
function planned(
  tiers: readonly TierDemand[],
  perDay: number,
  told: ReadonlyMap<number, number>,
  series: readonly Series[],
  at: number,
) {
  const { tiers: plans } = planFreshness({
    tiers,
    requestsPerDay: perDay * HEADROOM,
    tickMs: STEP,
  });
  return new Map(
    plans.map(({ id, achievableAgeMs, refreshAfterMs }) => {
      const before = told.get(id) ?? achievableAgeMs!;
      const isAnyLate = series.some(
        ({ tier, refreshAt }) => tier.id === id && refreshAt !== null && refreshAt + refreshAfterMs! < at - STEP,
      );
      const age = achievableAgeMs! < before && (at % DAY > 0 || isAnyLate) ? before : achievableAgeMs!;
      return [id, { refreshAfterMs: refreshAfterMs!, achievableAgeMs: age }];
    }),
  );
}

it('no series exceeds its promised age while the promised ages become shorter', () => {
  const tiers = fc
    .array(
      fc.record({
        priority: fc.constantFrom(20, 10, 0),
        targetAgeMs: fc.integer({ min: 4, max: 48 }).map((h) => h * HOUR),
        series: fc.integer({ min: 1, max: 60 }),
      }),
      { minLength: 1, maxLength: 3 },
    )
    .map((list) => list.map((tier, id): TierDemand => ({ id, interval: '1h', rowsPerRequest: 366, ...tier })));
  fc.assert(
    fc.property(
      tiers,
      fc.integer({ min: 30, max: 120 }),
      fc.double({ min: 1.05, max: 8, noNaN: true }),
      (demand, few, times) => {
        let id = 0;
        const series = demand.flatMap((tier) =>
          Array.from(
            { length: tier.series },
            (): Series => ({ seriesId: ++id, tier, refreshAt: null, seenUntil: 0, refreshes: 0 }),
          ),
        );
        let told: ReadonlyMap<number, number> = new Map();
        let perDay = few;
        let settledAt = Number.POSITIVE_INFINITY;
        let spentToday = 0;
        const worst = { late: 0, of: 0, after: 0 };
        for (let at = 0; at < Math.min(60 * DAY, settledAt + 20 * DAY); at += STEP) {
          const plan = planned(demand, perDay, told, series, at);
          const due = series.map((s) => {
            const { refreshAfterMs, achievableAgeMs } = plan.get(s.tier.id)!;
            return {
              series: 1,
              seriesId: s.seriesId,
              rank: s.seriesId,
              priority: s.tier.priority,
              refreshAfterMs,
              achievableAgeMs,
              dueAt: s.refreshAt === null ? null : s.refreshAt + refreshAfterMs,
              s,
            };
          });
          if (at % DAY === 0) {
            spentToday = 0;
            if (settledAt > at && due.every(({ s, dueAt }) => s.refreshes > 1 && at - dueAt! <= STEP)) {
              settledAt = at;
            } else if (at >= settledAt + DAY) perDay = Math.round(few * times);
          }
          told = new Map([...plan].map(([tier, { achievableAgeMs }]) => [tier, achievableAgeMs]));
          if (at >= settledAt)
            for (const { s, achievableAgeMs } of due) {
              const late = at - s.seenUntil - achievableAgeMs;
              if (late > worst.late) Object.assign(worst, { late, of: achievableAgeMs, after: at - settledAt });
            }
          const room = refreshRoom({
            most: perDay,
            left: Number.POSITIVE_INFINITY,
            spentToday,
            coming: refreshesToday(due, { now: at, nextAt: at + STEP }),
          });
          for (const { candidate } of chooseDue(due, { now: at, tickMs: STEP, room })) {
            const { s, refreshAfterMs } = candidate;
            s.refreshAt = lastRefreshTime({ seriesId: s.seriesId, refreshAfterMs, refreshAt: s.refreshAt }, at);
            s.seenUntil = at;
            s.refreshes++;
            spentToday++;
          }
        }
        expect(worst).toEqual({ late: 0, of: 0, after: 0 });
      },
    ),
    { numRuns: Number(process.env.RUNS ?? 40) },
  );
});
