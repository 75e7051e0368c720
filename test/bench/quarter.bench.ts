/**
 * A quarter of a year of the service in virtual time, under four plans; every test run has some days of the same
 * (`test/system/quarter-*.test.ts`). `QUARTER_DAYS=20` is a quick look, `-t pro` one plan, `QUARTER_SEED=7` another story,
 * `QUARTER_SERVICES=1` the same with one service. Prints how old series became at the ticks compared with the promised age, and how far the
 * reservation was from what was needed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { describeFigures, misreserved, overruns } from '../system/promise-figures.ts';
import { liveAQuarter, type Stretch } from '../system/quarter.ts';
import { QUARTER_PLANS, type QuarterPlan } from '../system/quarter-plans.ts';
import { describeTold, FINISH_WITHIN } from '../system/told-figures.ts';

const { QUARTER_DAYS = '90', QUARTER_SEED, QUARTER_SERVICES = '2' } = process.env;
const QUARTER: Stretch = {
  startAt: Date.UTC(2026, 0, 1),
  days: Number(QUARTER_DAYS),
  troubled: 0.5,
  livedEvery: 10,
  calmAtTheEnd: 3,
  services: Number(QUARTER_SERVICES),
};
/** A quarter of `enterprise` takes an hour. */
const TIMEOUT_MS = 3 * 3_600_000;
const ON_REDIS: readonly QuarterPlan[] = ['free', 'enterprise'];

let redis: OwnRedis | null = null;
beforeAll(async () => {
  redis = await startOwnRedis();
});
afterAll(() => redis?.kill());

test.each(Object.keys(QUARTER_PLANS) as QuarterPlan[])(
  'a quarter with the plan %s keeps its promises: cadence, quota, ages and what is stored',
  async (name) => {
    const plan = QUARTER_PLANS[name];
    const seed = Number(QUARTER_SEED ?? plan.seed);
    const begun = performance.now();
    const { requests, steps, events, figures, told, toldTwice } = await liveAQuarter(
      { ...plan, seed, redis: ON_REDIS.includes(name) ? redis : null },
      QUARTER,
    );
    const took = ((performance.now() - begun) / 1000).toFixed(0);
    console.info(`${name}: ${QUARTER.days} days, ${requests} requests, looked at ${steps} times, in ${took} s`, events);
    console.info(`${name}: what was promised\n${describeFigures(figures)}\n${describeTold(told, toldTwice)}`);
    for (const miss of [...overruns(figures), ...misreserved(figures), ...toldTwice]) console.info(`  ${miss}`);
    for (const { id, at, off, isCalm } of told.finishes())
      if (off > FINISH_WITHIN)
        console.info(
          `  backfill ${id} at ${new Date(at).toISOString()}: ${Math.round(off * 100)} % off${isCalm ? '' : ', something was away'}`,
        );
    expect(steps).toBeGreaterThan(QUARTER.days);
  },
  TIMEOUT_MS,
);
