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
  chooseDueSeries,
  freshnessRoom,
  type RefreshCandidate,
  refreshAtAfter,
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

/** Up to six tiers of some priorities. */
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
  it('2,000 daily series with 1,000 requests a day are two days old', () => {
    expect(plan(1_000, daily({}))).toEqual({
      tiers: [{ id: 1, achievableAgeMs: 2 * DAY, refreshAfterMs: 2 * DAY, requestsPerDay: 1_000, keepsUp: true }],
      requestsPerDay: 1_000,
      wantedPerDay: 2_000,
      dailyRequests: 0,
    });
  });

  it('meets every target, and costs no more than that, when there is enough', () => {
    const { tiers, requestsPerDay } = plan(
      10_000,
      daily({ series: 100 }),
      daily({ id: 2, interval: '1h', targetAgeMs: HOUR, series: 10 }),
    );
    expect(tiers.map((t) => t.achievableAgeMs)).toEqual([DAY, HOUR]);
    expect(requestsPerDay).toBe(340);
    expect(plan(null, daily({})).tiers[0]?.achievableAgeMs).toBe(DAY);
  });

  it('serves the higher priority first, and leaves a tenth to the lower ones', () => {
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

  it('a lower priority is never better off, however few its series', () => {
    const [list, all] = plan(100, daily({ priority: 20, series: 1_000 }), daily({ id: 2, series: 1 })).tiers;
    expect(list!.achievableAgeMs).toBeLessThanOrEqual(all!.achievableAgeMs!);
    expect(list!.achievableAgeMs! / DAY).toBeCloseTo(10.01);
  });

  it('without any request nothing is promised', () => {
    expect(plan(0, daily({})).tiers[0]).toMatchObject({ achievableAgeMs: null, requestsPerDay: 0, keepsUp: false });
  });

  it('says when candles come faster than requests can bring them', () => {
    const fine = daily({ interval: '5m', series: 1_000, targetAgeMs: DAY });
    expect(plan(1_000, fine).tiers[0]).toMatchObject({ achievableAgeMs: DAY, keepsUp: true });
    expect(plan(500, fine).tiers[0]).toMatchObject({ achievableAgeMs: 2 * DAY, keepsUp: false });
    // A target of three days would leave candles out: one request holds thirty and a half hours.
    expect(plan(null, { ...fine, targetAgeMs: 3 * DAY }).tiers[0]?.achievableAgeMs).toBe(366 * 5 * 60_000);
  });

  it('never costs more than the budget, and starves nobody', () => {
    fc.assert(
      fc.property(tiersOf(5_000), fc.integer({ min: 1, max: 100_000 }), (tiers, requestsPerDay) => {
        const planned = planFreshness({ tiers, requestsPerDay });
        expect(planned.requestsPerDay).toBeLessThanOrEqual(requestsPerDay * (1 + 1e-9));
        for (const tier of planned.tiers) expect(tier.achievableAgeMs).toBeGreaterThan(0);
      }),
    );
  });

  it('a higher priority is never worse off than a lower one', () => {
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

  it('more budget makes nothing older, and another series nothing younger', () => {
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

describe('choosing who is asked next', () => {
  const candidate = (seriesId: number, rest: Partial<RefreshCandidate>): RefreshCandidate => ({
    seriesId,
    priority: 0,
    interval: '24h',
    refreshAfterMs: DAY,
    askedAt: null,
    refreshAt: null,
    rank: seriesId,
    ...rest,
  });
  const now = 100 * DAY;

  it('takes the oldest relative to its age first, then those never asked by age, priority and rank, then the nearly due', () => {
    const chosen = chooseDueSeries(
      [
        candidate(1, { askedAt: now - 0.96 * DAY }),
        candidate(2, { askedAt: now - 3 * HOUR, refreshAfterMs: HOUR, interval: '1h' }),
        candidate(3, { askedAt: now - 2 * DAY }),
        candidate(4, { askedAt: now - 0.9 * DAY }),
        candidate(5, { rank: 7 }),
        candidate(6, { rank: 3 }),
        candidate(7, { rank: 0 }),
        candidate(8, { priority: 20, rank: 900 }),
        candidate(9, { refreshAfterMs: HOUR, rank: 901 }),
      ],
      now,
      10,
    );
    expect(chosen.map((c) => c.seriesId)).toEqual([2, 3, 9, 8, 6, 5, 7, 1]);
    expect(chooseDueSeries(chosen, now, 2).map((c) => c.seriesId)).toEqual([2, 3]);
    expect(chooseDueSeries(chosen, now, -1)).toEqual([]);
  });

  it('of equally late ones the one that brings more rows comes first', () => {
    const late = { askedAt: now - DAY };
    const chosen = chooseDueSeries([candidate(1, late), candidate(2, { ...late, interval: '5m' })], now, 1);
    expect(chosen[0]?.seriesId).toBe(2);
  });

  /** From look to look. */
  const STEPS = [10 * 60_000, HOUR / 2, 6 * HOUR];
  it('never spends more than the budget of a day, and asks every series within its achievable age', () => {
    fc.assert(
      fc.property(
        tiersOf(40),
        fc.integer({ min: 100, max: 3_000 }),
        fc.constantFrom(...STEPS),
        (tiers, perDay, step) => {
          const plan = planFreshness({ tiers, requestsPerDay: perDay * HEADROOM, tickMs: step });
          const planned = new Map(plan.tiers.map((t) => [t.id, t]));
          const isTight = plan.wantedPerDay > 0.8 * perDay * HEADROOM;
          let nextId = 0;
          const series = tiers.flatMap((tier) =>
            Array.from({ length: tier.series }, () => ({
              ...candidate(++nextId, { priority: tier.priority, interval: tier.interval }),
              refreshAfterMs: planned.get(tier.id)!.refreshAfterMs!,
              achievableAgeMs: planned.get(tier.id)!.achievableAgeMs!,
              askedAt: null as number | null,
              refreshAt: null as number | null,
              waitsSince: 0,
            })),
          );
          const oldest = Math.max(...series.map((s) => s.achievableAgeMs));
          const end = Math.min(60 * DAY, 5 * Math.max(oldest, DAY));
          // At first all want their turn at once. Afterwards the figure holds to the millisecond where a fifth of the requests is to spare; where they are
          // short, many that are due at the same tick may have to wait for the next ones.
          const settledAt = 3 * Math.max(oldest, DAY);
          const slack = (age: number) => (isTight ? age / 5 + 3 * step + (3 * DAY) / perDay : 0);
          const worst = { late: 0, of: 0 };
          let spentToday = 0;
          for (let at = 0; at < end; at += step) {
            if (at % DAY === 0) spentToday = 0;
            // Just before the tick it is as old as it becomes.
            for (const s of at < settledAt ? [] : series) {
              const late = at - s.waitsSince - s.achievableAgeMs - slack(s.achievableAgeMs);
              if (late > worst.late) Object.assign(worst, { late, of: s.achievableAgeMs });
            }
            const room = freshnessRoom({ perDay, spentToday, now: at, nextAt: at + step });
            for (const s of room === 0 ? [] : chooseDueSeries(series, at, room)) {
              s.refreshAt = refreshAtAfter(s, at);
              s.askedAt = at;
              s.waitsSince = at;
              spentToday++;
            }
            expect(spentToday).toBeLessThanOrEqual(perDay);
          }
          expect(worst).toEqual({ late: 0, of: 0 });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('a target is met although requests are sent at ticks only: they are sent as much earlier', () => {
    const hourly = { interval: '1h', targetAgeMs: 2 * HOUR, series: 10 } as const;
    const tickMs = HOUR / 2;
    const [tier] = planFreshness({ tiers: [daily(hourly)], requestsPerDay: null, tickMs }).tiers;
    expect(tier).toMatchObject({ refreshAfterMs: 1.5 * HOUR, achievableAgeMs: 2 * HOUR });
    // No refresh is more frequent than the ticks: a target as short as that cannot be met, and is not promised.
    const [short] = planFreshness({
      tiers: [daily({ ...hourly, targetAgeMs: HOUR / 2 })],
      requestsPerDay: null,
      tickMs,
    }).tiers;
    expect(short).toMatchObject({ refreshAfterMs: HOUR / 2, achievableAgeMs: HOUR });
  });

  it('what is known of days only is due at each midnight, however long the ticks, and a tick older until it comes', () => {
    const plan = planFreshness({
      tiers: [daily({ isDaily: true, rowsPerRequest: 1, series: 40 })],
      requestsPerDay: 100,
      tickMs: HOUR / 2,
    });
    expect(plan).toMatchObject({
      tiers: [{ refreshAfterMs: DAY, achievableAgeMs: DAY + HOUR / 2, keepsUp: true }],
      dailyRequests: 40,
    });
    const room = (hours: number, spentToday: number) =>
      freshnessRoom({ perDay: 100, dailyRequests: 40, spentToday, now: hours * HOUR, nextAt: hours * HOUR });
    expect(room(0, 0)).toBe(46);
    expect(room(12, 40)).toBe(36);
    expect(room(23.75, 40)).toBe(60);
  });
});

describe('the room of freshness', () => {
  const DAILY = 1_000;
  it.each([
    ['every ten minutes', 10 * 60_000],
    ['every half hour', HOUR / 2],
    ['every six hours', 6 * HOUR],
    ['once a day', DAY],
  ])('looked at %s, all of a day can be asked, each part of it when its time comes', (_, step) => {
    let spentToday = 0;
    for (let now = 0; now < DAY; now += step) {
      const room = freshnessRoom({ perDay: DAILY, spentToday, now, nextAt: now + step });
      spentToday += room;
      const part = Math.min(1, (now + Math.max(step, (1 - HEADROOM) * DAY)) / DAY);
      expect(Math.abs(spentToday - DAILY * part)).toBeLessThan(DAILY * (HOUR / 4 / DAY));
    }
    expect(spentToday).toBe(DAILY);
  });
});

describe('the budget of freshness', () => {
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

  it('is what the plan sustains after the other schedules, and what is left of the month lasts for', () => {
    const fresh = state('2024-03-02T00:00:00Z', { day: 0, month: 0 }, { day: 1_000, month: 30_000 });
    expect(freshnessBudget({ state: fresh, reserved: nothing })).toEqual({ planned: 900, most: 1_000 });
    const reserved = () => ({ day: 100, month: 3_000 });
    expect(freshnessBudget({ state: fresh, reserved })).toEqual({ planned: 810, most: 900 });
    const late = state('2024-03-22T00:00:00Z', { day: 0, month: 29_000 }, { day: 1_000, month: 30_000 });
    expect(freshnessBudget({ state: late, reserved: nothing })).toEqual({ planned: 90, most: 100 });
    const spent = state('2024-03-22T00:00:00Z', { day: 0, month: 31_000 }, { day: 1_000, month: 30_000 });
    expect(freshnessBudget({ state: spent, reserved: nothing })).toEqual({ planned: 0, most: 0 });
    const unlimited = { ...fresh, month: { ...fresh.month, limit: null }, day: { ...fresh.day, limit: null } };
    // 855 a day at most, of which the schedules have theirs.
    const slow = { ...unlimited, rate: { ...fresh.rate, limit: 0.01 } };
    expect(freshnessBudget({ state: slow, reserved }).most).toBe(755);
    const rate = { ...fresh.rate, limit: null };
    const none = { planned: null, most: null };
    expect(freshnessBudget({ state: { ...unlimited, rate }, reserved: nothing })).toEqual(none);
  });

  it('does not shrink when backfills have had what is theirs: there is no second share of what they left', () => {
    const planned = (backfillSpent: number, others: number) =>
      freshnessBudget({
        state: state('2024-03-02T00:00:00Z', { day: 0, month: backfillSpent + others }, { day: null, month: 30_000 }),
        reserved: nothing,
        backfillSpent,
      }).planned;
    expect(planned(0, 0)).toBeCloseTo(900);
    expect(planned(3_000, 0)).toBeCloseTo(900);
    expect(planned(0, 3_000)).toBeCloseTo(810);
    // What they took while little was tracked is gone.
    expect(planned(15_000, 0)).toBeCloseTo(500);
  });

  it('is spread over the day, with a tenth of it in advance, and is never more than a day’s', () => {
    const room = (time: string, spentToday: number) => {
      const now = at(`2024-03-02T${time}Z`);
      return freshnessRoom({ perDay: 2_400, spentToday, now, nextAt: now });
    };
    expect(room('00:00:00', 0)).toBe(240);
    expect(room('12:00:00', 0)).toBe(1_440);
    expect(room('12:00:00', 1_430)).toBe(10);
    expect(room('23:50:00', 2_390)).toBe(10);
    expect(room('23:59:59', 2_500)).toBe(0);
    expect(freshnessRoom({ perDay: null, spentToday: 5, now: 0, nextAt: 0 })).toBe(Number.POSITIVE_INFINITY);
  });

  it('is shared out among the runs of a day', () => {
    expect(freshnessPerRun(0, 48)).toBe(0);
    expect(freshnessPerRun(960, 48)).toBe(20);
    expect(freshnessPerRun(12, 48)).toBe(0.25);
    expect(freshnessPerRun(960, 0)).toBe(0);
  });
});
