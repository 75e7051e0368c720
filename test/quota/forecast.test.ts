import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { type ForecastArgs, forecast, forecastEach, forecastFrom } from '../../src/quota/forecast.ts';
import { type Need, reservedAt } from '../../src/quota/reservation.ts';

const at = (text: string) => Date.parse(text);
const NOON = at('2024-03-10T12:00:00Z');
const nothing = () => ({ day: 0, month: 0 });
const base = { spent: { day: 0, month: 0 }, now: NOON, reserved: nothing };

describe('a forecast', () => {
  it('follows the rate when nothing else limits it', () => {
    const limits = { perSecond: 10, perDay: null, perMonth: null };
    expect(forecast({ ...base, limits, requests: 1001 })).toEqual({
      finishAt: NOON + 101_000,
      bindingWindow: 'second',
      perDay: 855_445,
    });
    expect(forecast({ ...base, limits, requests: 0 }).finishAt).toBe(NOON);
    expect(forecast({ ...base, limits, requests: 1 })).toMatchObject({ finishAt: NOON, bindingWindow: null });
  });

  it('waits for the days that a daily limit requires', () => {
    const limits = { perSecond: 10, perDay: 1000, perMonth: null };
    const spent = { day: 400, month: 400 };
    expect(forecast({ ...base, spent, limits, requests: 600 })).toMatchObject({ bindingWindow: 'second' });
    // 600 today, 1,000 on each of two days, the last one on the third day.
    expect(forecast({ ...base, spent, limits, requests: 2601 })).toEqual({
      finishAt: at('2024-03-13T00:00:02Z'),
      bindingWindow: 'day',
      perDay: 1000,
    });
  });

  it('waits for the months that a monthly limit requires, for years if need be', () => {
    const limits = { perSecond: 10, perDay: null, perMonth: 20_000 };
    const result = forecast({ ...base, limits, requests: 500_000 });
    expect(result.bindingWindow).toBe('month');
    expect(result.perDay).toBe(666);
    // The 25th month is April 2026. Its 20,000 requests take 101 ms each.
    expect(result.finishAt).toBe(at('2026-03-01T00:00:02Z') + 19_999 * 101);
  });

  it('says never when the schedules need all requests', () => {
    const reserved = () => ({ day: 10, month: 0 });
    const limits = { perSecond: 10, perDay: 10, perMonth: null };
    expect(forecast({ ...base, limits, reserved, requests: 1 })).toEqual({
      finishAt: null,
      bindingWindow: 'day',
      perDay: 0,
    });
    expect(forecast({ ...base, limits: { ...limits, perMonth: 0 }, requests: 1 }).bindingWindow).toBe('month');
  });

  it('says now when there are no limits', () => {
    const limits = { perSecond: null, perDay: null, perMonth: null };
    expect(forecast({ ...base, limits, requests: 1e9 })).toEqual({ finishAt: NOON, bindingWindow: null, perDay: null });
  });

  it('agrees with sending the requests one by one', () => {
    const limit = fc.option(fc.integer({ min: 0, max: 40 }));
    const arbitrary = fc.record({
      requests: fc.integer({ min: 0, max: 300 }),
      limits: fc.record({
        // Gaps of whole milliseconds, so that adding them up equals multiplying them.
        perSecond: fc.option(fc.constantFrom(10.1, 1.01, 0.101, 0.00101, 0.0000101)),
        perDay: limit,
        perMonth: limit,
      }),
      spent: fc
        .integer({ min: 0, max: 10 })
        .chain((day) => fc.integer({ min: 0, max: 20 }).map((more) => ({ day, month: day + more }))),
      now: fc.integer({ min: at('2024-01-30T00:00:00Z'), max: at('2024-03-02T00:00:00Z') }),
      needs: fc.array(
        fc.record({
          name: fc.constant('x'),
          requests: fc.integer({ min: 1, max: 2 }),
          ticks: fc.constantFrom(12 * HOUR, DAY, 7 * DAY, 30 * DAY).map(every),
        }),
        { maxLength: 2 },
      ),
    });
    fc.assert(
      fc.property(arbitrary, ({ needs, ...rest }) => {
        const args = { ...rest, reserved: (instant: number) => reservedAt(instant, needs) };
        const { finishAt } = forecast(args);
        // With an interruption on the way.
        const { requests, ...terms } = args;
        expect(forecastEach([Math.floor(requests / 3), requests], terms)[1]!.finishAt).toBe(finishAt);
        const slowly = oneByOne(args);
        if (slowly === null) expect(finishAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(args.now + HORIZON);
        else expect(finishAt).toBe(slowly);
      }),
      { numRuns: 300 },
    );
  });
});

const HORIZON = 3 * 365 * DAY;
/** Days since 1970 and their dates, which take most of the time to compute. */
const DAYS = new Map<number, string>();

/** The rules of the ledger, one request at a time. Null when it takes longer than `HORIZON`. */
function oneByOne({ requests, limits, spent, now, reserved }: ForecastArgs): number | null {
  const gap = limits.perSecond === null ? 0 : Math.round(1010 / limits.perSecond);
  const dayOf = (t: number) => {
    const number = Math.floor(t / DAY);
    const day = DAYS.get(number) ?? new Date(t).toISOString().slice(0, 10);
    DAYS.set(number, day);
    return day;
  };
  const monthOf = (t: number) => dayOf(t).slice(0, 7);
  const next = (t: number, same: (t: number) => string) => {
    let border = Math.floor(t / DAY) * DAY;
    while (same(border) === same(t)) border += DAY;
    return border;
  };
  const used = new Map<string, number>([
    [dayOf(now), spent.day],
    [monthOf(now), spent.month],
  ]);
  const aside = (t: number, same: (t: number) => string, window: 'day' | 'month') =>
    reserved(same(t) === same(now) ? now : at(window === 'day' ? dayOf(t) : `${monthOf(t)}-01`))[window];
  let free = now;
  let last = now;
  for (let i = 0; i < requests; ) {
    for (const [limited, same] of [
      [limits.perMonth !== null, monthOf],
      [limits.perDay !== null, dayOf],
    ] as const) {
      if (!limited) continue;
      if (same(free + 2000) !== same(free)) free = next(free, same) + 2000;
      if (same(free - 2000) !== same(free)) free = next(free - 2000, same) + 2000;
    }
    if (free - now > HORIZON) return null;
    const month = used.get(monthOf(free)) ?? 0;
    const day = used.get(dayOf(free)) ?? 0;
    if (limits.perMonth !== null && month + aside(free, monthOf, 'month') >= limits.perMonth)
      free = next(free, monthOf);
    else if (limits.perDay !== null && day + aside(free, dayOf, 'day') >= limits.perDay) free = next(free, dayOf);
    else {
      used.set(monthOf(free), month + 1);
      used.set(dayOf(free), day + 1);
      last = free;
      free += gap;
      i++;
    }
  }
  return last;
}

/** Ticks at the multiples of a period. */
function every(periodMs: number): Need['ticks'] {
  return (from, to) => Math.max(0, Math.ceil(to / periodMs) - Math.ceil(from / periodMs));
}

describe('the reservation', () => {
  const needs: readonly Need[] = [
    { name: 'coins', requests: 2, ticks: every(DAY) },
    { name: 'account', requests: 1, ticks: every(6 * HOUR), isAccountRequest: true },
  ];

  it('is what the schedules will request until the end of the day and of the month, tick by tick', () => {
    expect(reservedAt(at('2024-03-10T00:00:00Z'), needs)).toEqual({
      day: 2 + 4,
      month: 22 * (2 + 4),
      account: { day: 4, month: 22 * 4 },
    });
    // On the 31st only the account's run at 18:00 is left, and at 18:01 not even that.
    expect(reservedAt(at('2024-03-31T17:59:59.999Z'), needs)).toMatchObject({ day: 1, month: 1 });
    expect(reservedAt(at('2024-03-31T18:01:00Z'), needs)).toMatchObject({ day: 0, month: 0 });
  });

  it('includes a run that is due in this minute', () => {
    expect(reservedAt(at('2024-03-31T18:00:59.999Z'), needs)).toMatchObject({ day: 1, month: 1 });
    // Nothing of the day before counts.
    expect(reservedAt(at('2024-03-31T00:00:30Z'), needs)).toMatchObject({ day: 2 + 4, month: 2 + 4 });
  });
});

describe('a forecast from the state of an account', () => {
  const limits = { perSecond: 10, perDay: 1000, perMonth: 20_000 };
  const standing = (hold: number | null, spent = 1000, perMonth: number | null = 20_000) => ({
    accountId: 'me',
    now: NOON,
    day: { start: at('2024-03-10T00:00:00Z'), reset: at('2024-03-11T00:00:00Z'), spent, limit: 1000 },
    month: { start: at('2024-03-01T00:00:00Z'), reset: at('2024-04-01T00:00:00Z'), spent, limit: perMonth },
    rate: { limit: 10, now: 10, nextFree: NOON },
    hold: hold === null ? null : { until: hold, reason: 'quota exhausted' as const, message: '' },
    outage: null,
  });
  const finish = (state: ReturnType<typeof standing>, requests: number) =>
    forecastFrom(state, { requests, limits, reserved: nothing }).finishAt;

  it('starts a new day after waiting for the end of the current one', () => {
    const next = at('2024-03-11T00:05:00Z');
    expect(finish(standing(next), 11)).toBe(next + 1_010);
    expect(finish(standing(null), 11)).toBeLessThan(next);
    // A new month starts after a hold as well, whatever was spent in the month before.
    const april = at('2024-04-01T00:05:00Z');
    expect(finish(standing(april, 20_000), 11)).toBe(april + 1_010);
  });

  it('uses the month that the upstream has reported when it has less than the plan', () => {
    expect(finish(standing(null, 0, 100), 101)).toBeGreaterThan(at('2024-04-01T00:00:00Z'));
  });
});
