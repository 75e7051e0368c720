/** Days of the quarter under some of the plans, with a queue on one of the engines. Each kind of trouble comes once, on a day of its own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { errorsOf, misreserved, overruns } from './promise-figures.ts';
import { liveAQuarter } from './quarter.ts';
import { QUARTER_PLANS, type QuarterPlan } from './quarter-plans.ts';
import { FINISH_WITHIN } from './told-figures.ts';

/** The longest of the four, enterprise, takes three and a half minutes on two idle cores. */
const PATIENCE_MS = 420_000;
const CALM_AT_THE_END = 2;

const first = await startOwnRedis();
await first?.kill();

export function testDays(engine: 'Postgres' | 'Redis', plans: readonly QuarterPlan[]): void {
  describe.skipIf(engine === 'Redis' && first === null)(`days of a service with its queues on ${engine}`, () => {
    let redis: OwnRedis | null = null;
    beforeAll(async () => {
      if (engine === 'Redis') redis = await startOwnRedis();
    });
    afterAll(() => redis?.kill());
    test.each(plans)(
      '%s: schedules, quota, ages and stored data are as promised',
      { timeout: PATIENCE_MS },
      async (name) => {
        const kinds = engine === 'Redis' ? 9 : 8;
        const { events, figures, told, toldTwice } = await liveAQuarter(
          { ...QUARTER_PLANS[name], redis },
          {
            // Over the end of a month.
            startAt: Date.UTC(2026, 0, 25),
            days: 1 + kinds + CALM_AT_THE_END,
            troubled: 1,
            livedEvery: Number.POSITIVE_INFINITY,
            calmAtTheEnd: CALM_AT_THE_END,
            services: 2,
          },
        );
        expect(Object.values(events)).toEqual(Array(kinds).fill(1));
        // On the last day, at each tick.
        expect(figures.ages.length).toBeGreaterThan(40);
        expect(overruns(figures)).toEqual([]);
        // The requests reserved for the rest of a day are sent, exactly, if nothing is unavailable meanwhile.
        expect(errorsOf(figures, 'day', true).looks).toBeGreaterThan(40);
        // The list of tools is requested once a day, and not reserved (docs/quota.md).
        expect(misreserved(figures, { unreserved: name === 'enterprise' ? 1 : 0 })).toEqual([]);
        const { looks, least, reserved } = errorsOf(figures, 'day');
        expect(looks).toBeGreaterThan(20);
        expect(-least).toBeLessThanOrEqual(reserved / 2);
        expect(toldTwice).toEqual([]);
        expect(told.told()).toBeGreaterThan(0);
        expect(told.finishes().filter(({ isCalm, off }) => isCalm && off > FINISH_WITHIN)).toEqual([]);
      },
    );
  });
}
