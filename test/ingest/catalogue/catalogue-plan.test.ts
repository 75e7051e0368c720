/** The planned averages of the catalogue, and what its runs really request. */
import { expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { achievableAgeMs, CATALOGUE_PLAN, requestsPerRun } from '../../../src/ingest/catalogue/catalogue-plan.ts';
import { ticksPerDay } from '../../../src/ingest/schedule/schedule-plan.ts';
import { comingItems } from '../../../src/quota/coming-requests.ts';
import { CATALOGUE_KINDS } from '../../../src/store/catalogue/catalogue-item.ts';

const FROM = Date.UTC(2026, 0);
const DAYS = 120;

test('the plan and the runs agree, whatever the cadence and the ages are', () => {
  for (const kind of CATALOGUE_KINDS) {
    for (const cron of ['7 0 * * *', '31 */6 * * *', '41 */4 * * *', '11 */2 * * *', '26 * * * *']) {
      const runsPerDay = ticksPerDay(cron);
      const betweenMs = DAY / runsPerDay;
      for (const [items, idle] of [
        [3, 0],
        [18, 4],
        [60, 0],
      ] as const) {
        const rate = { mostPerRun: 2, runsPerDay };
        const average = requestsPerRun(kind, { items, idle }, rate) * runsPerDay;
        const { ageMs, idleAgeMs } = CATALOGUE_PLAN[kind];
        const groups = [
          { dueAt: null, everyMs: ageMs, items: items - idle },
          { dueAt: null, everyMs: idleAgeMs, items: idle },
        ];
        const runs = Array.from({ length: DAYS * runsPerDay }, (_, i) => FROM + i * betweenMs);
        const asked = comingItems(groups, { runs, most: rate.mostPerRun }).reduce((sum, one) => sum + one.requests, 0);
        // The first requests of all items are as many as those of one more round.
        const what = `${kind} at ${cron}: ${items} items, ${idle} idle`;
        expect(Math.abs(asked - average * DAYS), what).toBeLessThanOrEqual(items + average * 0.02 * DAYS);
      }
    }
  }
});

test('items that are due after three hours are requested each four hours where a run comes each two', () => {
  const need = { items: 3, idle: 0 };
  const rate = { mostPerRun: 2, runsPerDay: 12 };
  expect(requestsPerRun('coin_markets', need, rate) * 12).toBe(18);
  expect(achievableAgeMs('coin_markets', need, rate)).toBe(4 * HOUR);
});
