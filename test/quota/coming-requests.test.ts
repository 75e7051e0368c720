/** The forecast of the coming runs equals what the runs then request, one series and one item at a time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/interval.ts';
import { comingItems, comingRefreshes, firstAtLeast } from '../../src/quota/coming-requests.ts';
import { chooseDue, lastRefreshTime, refreshesToday, refreshRoom } from '../../src/quota/refresh-order.ts';

const NOW = 100 * DAY;
const runsOf = (everyMs: number, days: number, from = NOW) =>
  Array.from({ length: (days * DAY) / everyMs }, (_, i) => from + i * everyMs);
const EVERY = [10 * MINUTE, HOUR / 2, 6 * HOUR];

type Series = {
  readonly seriesId: number;
  readonly priority: number;
  readonly refreshAfterMs: number;
  readonly rank: number;
  readonly series: number;
  dueAt: number | null;
  refreshAt: number | null;
};

/** The runs as the service does them. */
function live(
  all: readonly Series[],
  terms: {
    readonly runs: readonly number[];
    readonly tickMs: number;
    readonly most: number | null;
    readonly left: number;
  },
): number[] {
  const { runs, tickMs, most } = terms;
  let { left } = terms;
  let day = Math.floor(NOW / DAY);
  let spentToday = 0;
  return runs.map((now) => {
    if (Math.floor(now / DAY) > day) {
      day = Math.floor(now / DAY);
      spentToday = 0;
    }
    const coming = refreshesToday(all, { now, nextAt: now + tickMs });
    const room = refreshRoom({ most, left, spentToday, coming });
    const chosen = chooseDue(all, { now, tickMs, room });
    for (const { candidate } of chosen) {
      candidate.refreshAt = lastRefreshTime(candidate, now);
      candidate.dueAt = candidate.refreshAt + candidate.refreshAfterMs;
    }
    spentToday += chosen.length;
    left -= chosen.length;
    return chosen.length;
  });
}

/** The series as the database groups them. */
function grouped(all: readonly Series[]) {
  const groups = new Map<string, { priority: number; refreshAfterMs: number; dueAt: number | null; series: number }>();
  for (const { priority, refreshAfterMs, dueAt } of all) {
    const key = `${priority} ${refreshAfterMs} ${dueAt}`;
    const group = groups.get(key) ?? { priority, refreshAfterMs, dueAt, series: 0 };
    group.series++;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
}

const seriesOf = (lateMs: number) =>
  fc
    .array(
      fc.record({
        priority: fc.constantFrom(20, 10, 0),
        refreshAfterMs: fc.integer({ min: 60, max: 3 * 24 * 60 }).map((minutes) => minutes * MINUTE),
        count: fc.integer({ min: 1, max: 20 }),
      }),
      { minLength: 1, maxLength: 4 },
    )
    .chain((tiers) =>
      fc
        .tuple(
          ...tiers.map((tier) =>
            fc.array(fc.integer({ min: -lateMs / MINUTE, max: tier.refreshAfterMs / MINUTE }), {
              minLength: tier.count,
              maxLength: tier.count,
            }),
          ),
        )
        .map((dues) =>
          tiers.flatMap((tier, i) =>
            dues[i]!.map((minutes, j): Series => {
              const dueAt = NOW + minutes * MINUTE;
              const { priority, refreshAfterMs } = tier;
              return {
                ...{ seriesId: 100 * i + j, priority, refreshAfterMs, rank: 0, series: 1 },
                ...{ dueAt, refreshAt: dueAt - refreshAfterMs },
              };
            }),
          ),
        ),
    );

describe('coming refreshes', () => {
  it('are forecast as the service then sends them at each run, even if requests are short and many series are late', () => {
    fc.assert(
      fc.property(
        seriesOf(2 * DAY),
        fc.constantFrom(...EVERY),
        fc.option(fc.integer({ min: 3, max: 200 })),
        fc.integer({ min: 20, max: 1_000 }),
        (all, tickMs, most, left) => {
          const runs = runsOf(tickMs, 4);
          const budget = { planned: most, most, mostPerDay: null, left, coming: 0 };
          const foretold = comingRefreshes(grouped(all), { runs, tickMs, budget, spentToday: 0, now: NOW });
          expect(foretold.map(({ at }) => at)).toEqual(runs);
          expect(foretold.map(({ requests }) => requests)).toEqual(live(all, { runs, tickMs, most, left }));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('include new series when there is room, and then at refresh times that are spread evenly', () => {
    const budget = { planned: 9, most: 10, mostPerDay: null, left: 100, coming: 0 };
    const groups = [
      { priority: 0, refreshAfterMs: 2 * DAY, dueAt: null, series: 16 },
      { priority: 10, refreshAfterMs: DAY, dueAt: NOW + 12 * HOUR, series: 2 },
    ];
    const runs = runsOf(HOUR, 6);
    const coming = comingRefreshes(groups, { runs, tickMs: HOUR, budget, spentToday: 0, now: NOW });
    // Eight of the new series, beside the two that are due at noon. The others follow on the next day.
    expect(coming[0]!.requests).toBe(8);
    const perDay = [0, 0, 0, 0, 0, 0];
    for (const { at, requests } of coming) perDay[Math.floor((at - NOW) / DAY)]! += requests;
    for (const requests of perDay.slice(2)) expect(Math.abs(requests - 10)).toBeLessThanOrEqual(2);
  });

  it('include a refused interval once a day, when a day has passed and there is room', () => {
    const budget = { planned: 10, most: 10, mostPerDay: null, left: 100, coming: 0 };
    const tried = { priority: 0, refreshAfterMs: DAY + 1, dueAt: NOW + HOUR + 1, series: 1, isTry: true };
    const runs = runsOf(HOUR / 2, 3);
    const coming = (spentToday: number) =>
      comingRefreshes([tried], { runs, tickMs: HOUR / 2, budget, spentToday, now: NOW }).flatMap(({ at, requests }) =>
        requests === 0 ? [] : [(at - NOW) / HOUR],
      );
    expect(coming(0)).toEqual([1.5, 26, 50.5]);
    expect(coming(10)).toEqual([24, 48.5]);
  });
});

describe('coming items', () => {
  it('are forecast as each run then requests them, the oldest first', () => {
    const item = fc.record({ asked: fc.option(fc.integer({ min: 1, max: 6 * 24 })), isIdle: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(item, { minLength: 1, maxLength: 40 }),
        fc.constantFrom(HOUR, 2 * HOUR, 4 * HOUR),
        fc.integer({ min: 1, max: 12 }),
        (drawn, everyMs, most) => {
          const items = drawn.map(({ asked, isIdle }) => ({
            everyMs: (isIdle ? 5 : 2) * DAY,
            askedAt: asked === null ? Number.NEGATIVE_INFINITY : NOW - asked * HOUR,
          }));
          const groups = items.map((one) => {
            const dueAt = Number.isFinite(one.askedAt) ? one.askedAt + one.everyMs : null;
            return { dueAt, everyMs: one.everyMs, items: 1 };
          });
          const runs = runsOf(everyMs, 12, NOW + 7 * MINUTE);
          const sent = runs.map((now) => {
            const due = items
              .filter((one) => now - one.askedAt >= one.everyMs)
              .sort((a, b) => a.askedAt - b.askedAt || a.everyMs - b.everyMs);
            for (const one of due.slice(0, most)) one.askedAt = now;
            return Math.min(due.length, most);
          });
          expect(comingItems(groups, { runs, most }).map(({ requests }) => requests)).toEqual(sent);
        },
      ),
      {
        numRuns: 200,
        // Two items that were requested together, but are wanted at different frequencies.
        examples: [
          [
            [
              { asked: 118, isIdle: true },
              { asked: null, isIdle: false },
              { asked: 118, isIdle: false },
            ],
            2 * HOUR,
            1,
          ],
        ],
      },
    );
  });
});

it('the search finds the first instant at or after another', () => {
  expect([0, 5, 10, 12, 30, 31].map((at) => firstAtLeast([10, 20, 30], at))).toEqual([0, 0, 0, 1, 2, 3]);
});
