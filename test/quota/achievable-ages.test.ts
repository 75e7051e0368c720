import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR, INTERVALS } from '../../src/core/interval.ts';
import {
  freshnessBudget,
  freshnessPerRun,
  HEADROOM,
  planFreshness,
  type TierDemand,
} from '../../src/quota/achievable-ages.ts';
import {
  chooseDue,
  lastRefreshTime,
  lastRefreshTimeOfDay,
  type RefreshCandidate,
  refreshesToday,
  refreshRoom,
} from '../../src/quota/refresh-order.ts';

const daily = (rest: Partial<TierDemand>): TierDemand => ({
  id: 1,
  priority: 0,
  interval: '24h',
  targetAgeMs: DAY,
  series: 2_000,
  rowsPerRequest: 366,
  ...rest,
});
const plan = (requestsPerDay: number | null, ...tiers: TierDemand[]) => planFreshness({ tiers, requestsPerDay });

/** Up to six tiers with different priorities. */
const tiersOf = (most: number) =>
  fc
    .array(
      fc.record({
        priority: fc.constantFrom(20, 10, 0, -5),
        interval: fc.constantFrom(...INTERVALS),
        targetAgeMs: fc.integer({ min: 1, max: 72 }).map((hours) => hours * HOUR),
        series: fc.integer({ min: 0, max: most }),
      }),
      { minLength: 1, maxLength: 6 },
    )
    .map((list) => list.map((tier, id): TierDemand => ({ id, rowsPerRequest: 366, ...tier })));

describe('the plan of freshness', () => {
  it('refreshes 2,000 daily series every two days with 1,000 requests a day', () => {
    expect(plan(1_000, daily({}))).toEqual({
      tiers: [{ id: 1, achievableAgeMs: 2 * DAY, refreshAfterMs: 2 * DAY, requestsPerDay: 1_000, keepsUp: true }],
      requestsPerDay: 1_000,
      wantedPerDay: 2_000,
    });
  });

  it('meets every target when there are enough requests, and uses no more than that takes', () => {
    const { tiers, requestsPerDay } = plan(
      10_000,
      daily({ series: 100 }),
      daily({ id: 2, interval: '1h', targetAgeMs: HOUR, series: 10 }),
    );
    expect(tiers.map((t) => t.achievableAgeMs)).toEqual([DAY, HOUR]);
    expect(requestsPerDay).toBe(340);
    expect(plan(null, daily({})).tiers[0]?.achievableAgeMs).toBe(DAY);
  });

  it('serves the higher priority first, and leaves a tenth of the requests to the lower ones', () => {
    const [list, all] = plan(
      1_000,
      daily({ priority: 20, series: 800 }),
      daily({ id: 2, series: 50_000, targetAgeMs: 2 * DAY }),
    ).tiers;
    expect(list).toMatchObject({ achievableAgeMs: DAY, requestsPerDay: 800 });
    expect(all).toMatchObject({ achievableAgeMs: 250 * DAY });
    const [short, rest] = plan(1_000, daily({ priority: 20, series: 9_000 }), daily({ id: 2, series: 50_000 })).tiers;
    expect(short?.achievableAgeMs).toBe(10 * DAY);
    expect(rest?.achievableAgeMs).toBe(500 * DAY);
  });

  it('never favours a lower priority, however few series it has', () => {
    const [list, all] = plan(100, daily({ priority: 20, series: 1_000 }), daily({ id: 2, series: 1 })).tiers;
    expect(list!.achievableAgeMs).toBeLessThanOrEqual(all!.achievableAgeMs!);
    expect(list!.achievableAgeMs! / DAY).toBeCloseTo(10.01);
  });

  it('promises no age when there are no requests', () => {
    expect(plan(0, daily({})).tiers[0]).toMatchObject({ achievableAgeMs: null, requestsPerDay: 0, keepsUp: false });
  });

  it('reports when candles appear faster than requests can fetch them', () => {
    const fine = daily({ interval: '5m', series: 1_000, targetAgeMs: DAY });
    expect(plan(1_000, fine).tiers[0]).toMatchObject({ achievableAgeMs: DAY, keepsUp: true });
    expect(plan(500, fine).tiers[0]).toMatchObject({ achievableAgeMs: 2 * DAY, keepsUp: false });
    // A target of three days would miss candles: one request holds thirty and a half hours.
    expect(plan(null, { ...fine, targetAgeMs: 3 * DAY }).tiers[0]?.achievableAgeMs).toBe(366 * 5 * 60_000);
  });

  it('never uses more than the budget, and leaves no series without requests', () => {
    fc.assert(
      fc.property(tiersOf(5_000), fc.integer({ min: 1, max: 100_000 }), (tiers, requestsPerDay) => {
        const planned = planFreshness({ tiers, requestsPerDay });
        expect(planned.requestsPerDay).toBeLessThanOrEqual(requestsPerDay * (1 + 1e-9));
        for (const tier of planned.tiers) expect(tier.achievableAgeMs).toBeGreaterThan(0);
      }),
    );
  });

  it('never gives a higher priority a worse age than a lower one', () => {
    const stretches = (tiers: readonly TierDemand[], requestsPerDay: number) =>
      planFreshness({ tiers: tiers.map((tier) => ({ ...tier, rowsPerRequest: 1e6 })), requestsPerDay }).tiers.flatMap(
        (t, i) =>
          tiers[i]!.series > 0
            ? [{ priority: tiers[i]!.priority, stretch: t.achievableAgeMs! / tiers[i]!.targetAgeMs }]
            : [],
      );
    fc.assert(
      fc.property(tiersOf(5_000), fc.integer({ min: 1, max: 100_000 }), (tiers, requestsPerDay) => {
        const all = stretches(tiers, requestsPerDay);
        for (const a of all)
          for (const b of all)
            if (a.priority > b.priority) expect(a.stretch).toBeLessThanOrEqual(b.stretch * (1 + 1e-6));
      }),
    );
  });

  it('makes no series older when the budget grows', () => {
    const ages = (tiers: readonly TierDemand[], requestsPerDay: number) =>
      planFreshness({ tiers, requestsPerDay }).tiers.map((t) => t.achievableAgeMs!);
    fc.assert(
      fc.property(
        tiersOf(5_000),
        fc.integer({ min: 1, max: 50_000 }),
        fc.integer({ min: 1, max: 50_000 }),
        (tiers, few, more) => {
          const before = ages(tiers, few);
          for (const [i, age] of ages(tiers, few + more).entries())
            expect(age).toBeLessThanOrEqual(before[i]! * (1 + 1e-9) + 1);
        },
      ),
    );
  });
});

describe('choosing the series to refresh next', () => {
  const candidate = (seriesId: number, rest: Partial<RefreshCandidate>): RefreshCandidate => ({
    seriesId,
    priority: 0,
    refreshAfterMs: DAY,
    dueAt: null,
    rank: seriesId,
    ...rest,
  });
  const now = 100 * DAY;
  const choose = (candidates: readonly RefreshCandidate[], all: number, late = all) =>
    chooseDue(candidates, { now, tickMs: HOUR, room: { all, late } }).map(({ candidate }) => candidate.seriesId);

  it('takes the highest priority first; within it the most overdue for its refresh time, then new series by refresh time and rank', () => {
    const some = [
      candidate(1, { dueAt: now + 1 }),
      candidate(2, { dueAt: now - 2 * HOUR, refreshAfterMs: HOUR }),
      candidate(3, { dueAt: now - DAY }),
      candidate(5, { rank: 7 }),
      candidate(6, { rank: 3 }),
      candidate(7, { rank: 0 }),
      candidate(8, { priority: 20, rank: 900 }),
      candidate(9, { refreshAfterMs: HOUR, rank: 901 }),
      candidate(10, { priority: 20, dueAt: now }),
    ];
    expect(choose(some, 10)).toEqual([10, 8, 2, 3, 9, 6, 5, 7]);
    expect(choose(some, 3)).toEqual([10, 8, 2]);
    expect(choose(some, -1)).toEqual([]);
  });

  it('refreshes a series that has just become due, however many series are late', () => {
    const late = [1, 2, 3].map((id) => candidate(id, { priority: 20, dueAt: now - DAY }));
    // It counts against the day's room.
    expect(choose([...late, candidate(4, { dueAt: now - HOUR })], 10, 2)).toEqual([1, 4]);
    expect(choose([...late, candidate(4, { dueAt: now - HOUR })], 2, 2)).toEqual([1, 4]);
  });

  it('refreshes the oldest series first when the quota grows, so that none exceeds its promised age', () => {
    const shorter = { refreshAfterMs: 2 * DAY, achievableAgeMs: 3 * DAY + HOUR };
    const threeDays = [1, 2].map((id) => candidate(id, { ...shorter, dueAt: now - DAY }));
    const twoDays = [3, 4, 5].map((id) => candidate(id, { ...shorter, dueAt: now }));
    expect(choose([...twoDays, ...threeDays], 3, 3)).toEqual([1, 2, 3]);
    // Series with a promised age of three days can wait. They get what the day has left beside those that cannot.
    expect(choose([...twoDays, ...threeDays], 10, 4)).toEqual([1, 2, 3, 4]);
    expect(choose([...twoDays, ...threeDays], 10, 0)).toEqual([1, 2]);
    // Once the shorter age is promised, they are late.
    const told = threeDays.map((one) => ({ ...one, achievableAgeMs: 2 * DAY + HOUR }));
    const others = twoDays.map((one) => ({ ...one, achievableAgeMs: 2 * DAY + HOUR }));
    expect(choose([...others, ...told], 10, 3)).toEqual([3, 4, 5]);
  });

  it('keeps the refresh times of a series that is late', () => {
    const series = { seriesId: 1, refreshAfterMs: 6 * HOUR, refreshAt: now };
    expect(lastRefreshTime(series, now + 7 * HOUR)).toBe(now + 6 * HOUR);
    expect(lastRefreshTime(series, now + 19 * HOUR)).toBe(now + 18 * HOUR);
    // It was requested once more, before its time.
    expect(lastRefreshTime(series, now + HOUR)).toBe(now);
  });

  it('rounds refresh times that were recorded in milliseconds to whole minutes, or to seconds when refreshes are frequent', () => {
    const refreshAt = now + 83_456;
    expect(lastRefreshTime({ seriesId: 1, refreshAfterMs: 6 * HOUR, refreshAt }, now + 7 * HOUR)).toBe(
      now + 6 * HOUR + 60_000,
    );
    expect(lastRefreshTime({ seriesId: 1, refreshAfterMs: HOUR, refreshAt }, now + 1.5 * HOUR)).toBe(
      now + HOUR + 83_000,
    );
  });

  it('starts the refresh times at midnight and spaces them evenly when answers are about days', () => {
    const series = { seriesId: 1, refreshAfterMs: 8 * HOUR, refreshAt: null };
    expect(lastRefreshTimeOfDay(series, now + 9 * HOUR)).toBe(now + 8 * HOUR);
    expect(lastRefreshTimeOfDay({ ...series, refreshAfterMs: DAY, refreshAt: now + 8 * HOUR }, now + 40 * HOUR)).toBe(
      now + DAY,
    );
    const times = [1, 2, 3, 4, 5, 6].map((seriesId) =>
      lastRefreshTimeOfDay({ ...series, seriesId, refreshAfterMs: 3 * DAY }, now),
    );
    expect(new Set(times)).toEqual(new Set([now, now - DAY, now - 2 * DAY]));
  });

  /** The time between two runs. */
  const STEPS = [10 * 60_000, HOUR / 2, 6 * HOUR];
  it('never exceeds the budget of a day, and refreshes every series within its achievable age', () => {
    fc.assert(
      fc.property(
        tiersOf(40),
        fc.integer({ min: 20, max: 3_000 }),
        fc.constantFrom(...STEPS),
        (tiers, perDay, step) => {
          const plan = planFreshness({
            tiers,
            requestsPerDay: perDay * HEADROOM,
            mostPerDay: perDay,
            tickMs: step,
          });
          const planned = new Map(plan.tiers.map((t) => [t.id, t]));
          let nextId = 0;
          const series = tiers.flatMap((tier) =>
            Array.from({ length: tier.series }, () => ({
              seriesId: ++nextId,
              priority: tier.priority,
              rank: nextId,
              series: 1,
              refreshAfterMs: planned.get(tier.id)!.refreshAfterMs!,
              achievableAgeMs: planned.get(tier.id)!.achievableAgeMs!,
              refreshAt: null as number | null,
              dueAt: null as number | null,
              waitsSince: 0,
              refreshes: 0,
            })),
          );
          const oldest = Math.max(...series.map((s) => s.achievableAgeMs));
          // At first all series are due at once, and once more at their own refresh times. From the first midnight after both, with no
          // series late, the promised age holds to the millisecond, even if requests are short.
          let settledAt = Number.POSITIVE_INFINITY;
          const isSettled = (at: number) => series.every((s) => s.refreshes > 1 && at - s.dueAt! <= step);
          const worst = { late: 0, of: 0 };
          let spentToday = 0;
          for (let at = 0; at < Math.min(90 * DAY, settledAt + 3 * Math.max(oldest, DAY)); at += step) {
            if (at % DAY === 0) spentToday = 0;
            if (at % DAY === 0 && settledAt > at && isSettled(at)) settledAt = at;
            // The age is highest just before the tick.
            for (const s of at < settledAt ? [] : series) {
              const late = at - s.waitsSince - s.achievableAgeMs;
              if (late > worst.late) Object.assign(worst, { late, of: s.achievableAgeMs });
            }
            const room = refreshRoom({
              most: perDay,
              left: perDay - spentToday,
              spentToday,
              coming: refreshesToday(series, { now: at, nextAt: at + step }),
            });
            for (const { candidate: s } of chooseDue(series, { now: at, tickMs: step, room })) {
              s.refreshAt = lastRefreshTime(s, at);
              s.dueAt = s.refreshAt + s.refreshAfterMs;
              s.waitsSince = at;
              s.refreshes++;
              spentToday++;
            }
            expect(spentToday).toBeLessThanOrEqual(perDay);
          }
          // To get there, each series needs one of the requests that are not planned.
          const mostDays = 3 + 3 * (oldest / DAY) + series.length / (perDay * (1 - HEADROOM));
          if (series.length > 0 && mostDays < 90) expect(settledAt / DAY).toBeLessThan(mostDays);
          expect(worst).toEqual({ late: 0, of: 0 });
        },
      ),
      { numRuns: Number(process.env.RUNS ?? 60) },
    );
  });

  it('meets a target although requests are sent only at ticks, by sending them one tick earlier', () => {
    const hourly = { interval: '1h', targetAgeMs: 2 * HOUR, series: 10 } as const;
    const tickMs = HOUR / 2;
    const [tier] = planFreshness({ tiers: [daily(hourly)], requestsPerDay: null, tickMs }).tiers;
    expect(tier).toMatchObject({ refreshAfterMs: 1.5 * HOUR, achievableAgeMs: 2 * HOUR });
    // No refresh is more frequent than the ticks. A shorter target cannot be met and is not promised.
    const [short] = planFreshness({
      tiers: [daily({ ...hourly, targetAgeMs: HOUR / 2 })],
      requestsPerDay: null,
      tickMs,
    }).tiers;
    expect(short).toMatchObject({ refreshAfterMs: HOUR / 2, achievableAgeMs: HOUR });
  });

  it('makes series whose answers are about days due at each midnight, however long the ticks, and adds one tick to their age', () => {
    const ofDays = (targetAgeMs: number, requestsPerDay: number) =>
      planFreshness({
        tiers: [daily({ isOfDays: true, targetAgeMs, rowsPerRequest: 1, series: 40 })],
        requestsPerDay,
        tickMs: HOUR / 2,
      }).tiers[0]!;
    expect(ofDays(DAY, 100)).toMatchObject({ refreshAfterMs: DAY, achievableAgeMs: DAY + HOUR / 2, keepsUp: true });
    expect(ofDays(2 * DAY, 100)).toMatchObject({ refreshAfterMs: DAY, requestsPerDay: 40 });
    // The last day is requested at midnight and the open day twice. The last day says nothing about the time after midnight.
    expect(ofDays(12 * HOUR, 120)).toMatchObject({ refreshAfterMs: 8 * HOUR, requestsPerDay: 120 });
    expect(ofDays(12 * HOUR, 119)).toMatchObject({ refreshAfterMs: 12 * HOUR, requestsPerDay: 80 });
    expect(ofDays(12 * HOUR, 79)).toMatchObject({ refreshAfterMs: DAY, requestsPerDay: 40 });
    // Every second day is never final.
    expect(ofDays(12 * HOUR, 39)).toMatchObject({ refreshAfterMs: 2 * DAY, requestsPerDay: 20, keepsUp: false });
  });

  it('does not alternate between every second and every third day when the number of requests is at the border', () => {
    const daysOf = (requestsPerDay: number, before: number | null) => {
      const tier = daily({ isOfDays: true, targetAgeMs: DAY, rowsPerRequest: 1, series: 40, refreshAfterMs: before });
      return planFreshness({ tiers: [tier], requestsPerDay, tickMs: HOUR / 2 }).tiers[0]!.refreshAfterMs! / DAY;
    };
    expect(daysOf(20, null)).toBe(2);
    expect(daysOf(20, 3 * DAY)).toBe(3);
    expect(daysOf(21.5, 3 * DAY)).toBe(2);
    expect(daysOf(20, 2 * DAY)).toBe(2);
    expect(daysOf(19, 2 * DAY)).toBe(3);
    // The same holds when all targets are met.
    expect([daysOf(39.9, DAY), daysOf(40, 2 * DAY), daysOf(41, 2 * DAY), daysOf(42, 2 * DAY), daysOf(40, DAY)]).toEqual(
      [2, 2, 2, 1, 1],
    );
    // The interval is as short as the spare requests allow, whatever it was before, and always divides the day.
    expect([daysOf(40, 5 * DAY), daysOf(42, 5 * DAY), daysOf(41.6, 1.25 * DAY)]).toEqual([2, 1, 1]);
  });
});

describe('the room for refreshes', () => {
  it('gives late series what the day has left beside the refreshes that will become due', () => {
    const room = (spentToday: number, coming: number) => refreshRoom({ most: 2_400, left: 3_000, spentToday, coming });
    expect(room(0, 2_160)).toEqual({ all: 3_000, late: 240 });
    expect(room(0, 1_080)).toMatchObject({ late: 1_320 });
    expect(room(1_310, 1_080)).toMatchObject({ late: 10 });
    expect(room(2_500, 90)).toMatchObject({ late: -190 });
  });

  it('is at most what day and month have left, and unlimited when nothing is limited', () => {
    expect(refreshRoom({ most: 2_400, left: 7, spentToday: 0, coming: 3 })).toEqual({ all: 7, late: 4 });
    expect(refreshRoom({ most: null, left: 500, spentToday: 0, coming: 300, atOnce: 90 })).toEqual({
      all: 90,
      late: 90,
    });
    const any = Number.POSITIVE_INFINITY;
    expect(refreshRoom({ most: null, left: any, spentToday: 5, coming: 3 })).toEqual({ all: any, late: any });
  });

  it('counts coming refreshes at the runs of the day, and leaves those due after the last run to the next day', () => {
    const series = [{ dueAt: 10 * HOUR, refreshAfterMs: 6 * HOUR, series: 2 }];
    const coming = (hours: number, everyHours: number) =>
      refreshesToday(series, { now: hours * HOUR, nextAt: (hours + everyHours) * HOUR });
    // At 10:00, 16:00 and 22:00.
    expect(coming(0, 1)).toBe(6);
    expect(coming(10, 1)).toBe(4);
    expect(coming(12, 6)).toBe(2);
    expect(coming(0, 24)).toBe(0);
    expect(refreshesToday([{ dueAt: null, refreshAfterMs: HOUR, series: 2 }], { now: 0, nextAt: HOUR })).toBe(0);
  });
});

describe('the budget for refreshes', () => {
  const at = (text: string) => Date.parse(text);
  const state = (
    now: string,
    spent: { day: number; month: number },
    limits: { day: number | null; month: number },
  ) => ({
    now: at(now),
    month: { start: 0, reset: at('2024-04-01T00:00:00Z'), spent: spent.month, limit: limits.month },
    day: { start: 0, reset: 0, spent: spent.day, limit: limits.day },
    rate: { limit: 10, now: 10, nextFree: 0 },
  });
  const nothing = () => ({ day: 0, month: 0 });

  it('is what the plan sustains after the other schedules, and no more than the rest of the month can pay for', () => {
    const fresh = state('2024-03-02T00:00:00Z', { day: 0, month: 0 }, { day: 1_000, month: 30_000 });
    expect(freshnessBudget({ state: fresh, reserved: nothing })).toEqual({
      planned: 900,
      most: 1_000,
      mostPerDay: 1_000,
      left: 1_000,
      coming: 0,
    });
    const reserved = () => ({ day: 100, month: 3_000 });
    expect(freshnessBudget({ state: fresh, reserved })).toEqual({
      planned: 810,
      most: 900,
      mostPerDay: 900,
      left: 900,
      coming: 0,
    });
    const late = state('2024-03-22T00:00:00Z', { day: 0, month: 29_000 }, { day: 1_000, month: 30_000 });
    expect(freshnessBudget({ state: late, reserved: nothing })).toEqual({
      planned: 90,
      most: 100,
      mostPerDay: 100,
      left: 1_000,
      coming: 0,
    });
    const spent = state('2024-03-22T00:00:00Z', { day: 0, month: 31_000 }, { day: 1_000, month: 30_000 });
    expect(freshnessBudget({ state: spent, reserved: nothing })).toEqual({
      planned: 0,
      most: 0,
      mostPerDay: 0,
      left: 0,
      coming: 0,
    });
    const unlimited = { ...fresh, month: { ...fresh.month, limit: null }, day: { ...fresh.day, limit: null } };
    // 855 a day at most, minus what the schedules need.
    const slow = { ...unlimited, rate: { ...fresh.rate, limit: 0.01 } };
    expect(freshnessBudget({ state: slow, reserved }).most).toBe(755);
    const rate = { ...fresh.rate, limit: null };
    const none = { planned: null, most: null, mostPerDay: null, left: null, coming: 0 };
    expect(freshnessBudget({ state: { ...unlimited, rate }, reserved: nothing })).toEqual(none);
  });

  it('does not shrink when backfills have used their share, and gives them no second share of the rest', () => {
    const planned = (backfillSpent: number, others: number) =>
      freshnessBudget({
        state: state('2024-03-02T00:00:00Z', { day: 0, month: backfillSpent + others }, { day: null, month: 30_000 }),
        reserved: nothing,
        backfillSpent,
      }).planned;
    expect(planned(0, 0)).toBeCloseTo(900);
    expect(planned(3_000, 0)).toBeCloseTo(900);
    expect(planned(0, 3_000)).toBeCloseTo(810);
    // What backfills used while few series were tracked is gone.
    expect(planned(15_000, 0)).toBeCloseTo(500);
  });

  it('stays the same all day, however many refreshes it has paid for', () => {
    const budget = (now: string, spentToday: number, others = 0) => {
      const { most, planned } = freshnessBudget({
        state: state(now, { day: spentToday, month: 20_000 + others + spentToday }, { day: null, month: 30_000 }),
        reserved: nothing,
        spentToday,
      });
      return { most, planned };
    };
    const morning = budget('2024-03-12T00:00:00Z', 0);
    expect(morning).toEqual({ most: 500, planned: 450 });
    expect(budget('2024-03-12T18:00:00Z', 337)).toEqual(morning);
    // Other requests, for new series and retries, reduce the budget of all coming days.
    expect(budget('2024-03-12T18:00:00Z', 337, 200)).toEqual({ most: 490, planned: 441 });
    expect(budget('2024-03-31T18:00:00Z', 9_800)).toEqual({ most: 1_000, planned: 900 });
  });

  it('ignores a few requests that backfills used beyond their share, so that ages do not grow a little again and again', () => {
    const planned = (left: number) =>
      freshnessBudget({
        state: state('2024-03-12T00:00:00Z', { day: 0, month: 30_000 - left }, { day: null, month: 30_000 }),
        reserved: nothing,
        backfillSpent: 20_000 - left,
      }).planned;
    expect([planned(20_000), planned(18_000), planned(17_800)]).toEqual([900, 900, 900]);
    expect(planned(17_000)).toBe(850);
  });

  it('is divided among the runs of a day', () => {
    expect(freshnessPerRun(0, 48)).toBe(0);
    expect(freshnessPerRun(960, 48)).toBe(20);
    expect(freshnessPerRun(12, 48)).toBe(0.25);
    expect(freshnessPerRun(960, 0)).toBe(0);
  });
});
