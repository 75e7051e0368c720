/** Forecasts when a number of requests will have been sent: it applies the ledger's rules to the days and months ahead. */
import type { Instant } from '../clock.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../core/calendar.ts';
import { DAY } from '../core/interval.ts';
import { gapMs, HALF_LIFE_MS } from './adaptive-rate.ts';
import { GRACE_MS } from './ledger.ts';
import type { Limits, QuotaState, Reserved } from './quota.ts';

export type ForecastArgs = {
  readonly requests: number;
  readonly limits: Limits;
  /** Requests spent in the day and the month of `now`. */
  readonly spent: { readonly day: number; readonly month: number };
  /** When the first request may be sent: later than the clock when there is a hold. */
  readonly now: Instant;
  /** How many times slower than the limit the rate is at `now`, after 429s; default 1. */
  readonly slowdown?: number;
  /** The reservation from an instant to the end of its windows. */
  readonly reserved: (at: Instant) => Reserved;
};

export type Forecast = {
  /** When the last request is sent, if only sending takes time; `now` for zero requests; null = never. */
  readonly finishAt: Instant | null;
  /** The longest window that the requests wait for ('second' = only the rate); null when they do not wait. */
  readonly bindingWindow: 'second' | 'day' | 'month' | null;
  /** Requests a day that can be sustained month after month; null = any number. */
  readonly perDay: number | null;
};

/** A forecast longer than this means never. */
const FOREVER_MS = 400 * 365 * DAY;

/** Pure. Takes one step for each day or month that passes, for any number of requests. */
export function forecast({ requests, ...rest }: ForecastArgs): Forecast {
  return forecastEach([requests], rest)[0]!;
}

/** The same for several numbers of requests in ascending order. It takes as many steps as for the last number alone. */
export function forecastEach(
  ascending: readonly number[],
  { limits, spent, now, slowdown = 1, reserved }: Omit<ForecastArgs, 'requests'>,
): Forecast[] {
  const { perDay, perMonth } = limits;
  const gap = gapMs(limits.perSecond);
  const dayIsLimited = perDay !== null;
  const rooms = {
    day: dayIsLimited ? perDay - spent.day - reserved(now).day : Number.POSITIVE_INFINITY,
    month: perMonth !== null ? perMonth - spent.month - reserved(now).month : Number.POSITIVE_INFINITY,
  };
  let day = dayStart(now);
  let month = monthStart(now);
  let at = now;
  let done = 0;
  let binding: Forecast['bindingWindow'] = null;
  const sustained = sustainedPerDay(limits, gap, now, reserved);
  return ascending.map((requests) => {
    if (gap > 0 && requests > 1) binding ??= 'second';
    const finishAt = goOn(requests - done);
    done = requests;
    return { finishAt, bindingWindow: binding, perDay: sustained };
  });

  function goOn(more: number): Instant | null {
    let left = more;
    if (left > 0 && done > 0) at += gap;
    while (left > 0) {
      at = outsideBorders(at, dayIsLimited, perMonth !== null);
      if (at - now > FOREVER_MS) return null;
      if (perMonth !== null && monthStart(at) > month) {
        month = monthStart(at);
        rooms.month = perMonth - reserved(month).month;
      }
      if (dayIsLimited && dayStart(at) > day) {
        day = dayStart(at);
        rooms.day = perDay - reserved(day).day;
      }
      if (rooms.month <= 0) {
        binding = 'month';
        at = monthReset(at);
        continue;
      }
      if (rooms.day <= 0) {
        if (binding !== 'month') binding = 'day';
        at = dayReset(at);
        continue;
      }
      const end = dayIsLimited ? dayReset(at) : perMonth !== null ? monthReset(at) : Number.POSITIVE_INFINITY;
      const fitting = gap === 0 ? Number.POSITIVE_INFINITY : Math.ceil((end - GRACE_MS - at) / gap);
      const sent = Math.min(left, rooms.day, rooms.month, fitting);
      left -= sent;
      rooms.day -= sent;
      rooms.month -= sent;
      const gaps = left === 0 ? sent - 1 : sent;
      at += gaps * gap + lagMs(1 + (slowdown - 1) * 2 ** (-(at - now) / HALF_LIFE_MS), gaps * gap);
    }
    return Math.ceil(at);
  }
}

/**
 * The same from the state of an account. No request is sent during a hold, and a window that ends during it starts again at zero. The limits
 * of day and month are those of the ledger.
 */
export function forecastFrom(
  state: QuotaState,
  { requests, ...terms }: Pick<ForecastArgs, 'requests' | 'limits' | 'reserved'>,
): Forecast {
  return forecastEachFrom(state, [requests], terms)[0]!;
}

export function forecastEachFrom(
  state: QuotaState,
  ascending: readonly number[],
  { limits, reserved }: Pick<ForecastArgs, 'limits' | 'reserved'>,
): Forecast[] {
  const { day, month, rate } = state;
  const from = Math.max(state.now, state.hold?.until ?? 0);
  return forecastEach(ascending, {
    limits: { ...limits, perDay: day.limit, perMonth: month.limit },
    spent: { day: from < day.reset ? day.spent : 0, month: from < month.reset ? month.spent : 0 },
    now: from,
    slowdown: rate.limit === null || rate.now === null ? 1 : rate.limit / rate.now,
    reserved,
  });
}

/**
 * The milliseconds to add to work that takes `fullMs` at the full rate, when the rate begins `slowdown` times slower and recovers
 * (`slowdownAt`).
 */
function lagMs(slowdown: number, fullMs: number): number {
  if (slowdown <= 1 || fullMs <= 0) return 0;
  const halfLives = fullMs / HALF_LIFE_MS;
  // The integral of the recovering rate, solved for the time. After a few hundred half-lives it equals its limit.
  if (halfLives > 500) return HALF_LIFE_MS * Math.log2(slowdown);
  return HALF_LIFE_MS * Math.log2(slowdown * 2 ** halfLives - slowdown + 1) - fullMs;
}

/** No request is sent within the grace around the border of a limited window (`takeRequests`). */
function outsideBorders(at: Instant, days: boolean, months: boolean): Instant {
  const afterDay = days ? dayStart(at + GRACE_MS) + GRACE_MS : at;
  const afterMonth = months ? monthStart(at + GRACE_MS) + GRACE_MS : at;
  return Math.max(at, afterDay, afterMonth);
}

/** Requests a day in a month of thirty days, none of them used yet. */
function sustainedPerDay(limits: Limits, gap: number, now: Instant, reserved: ForecastArgs['reserved']): number | null {
  const { perDay, perMonth } = limits;
  const bounds = [
    // The schedules use a part of the rate, too.
    ...(gap > 0 ? [DAY / gap - reserved(dayReset(now)).day] : []),
    ...(perDay === null ? [] : [perDay - reserved(dayReset(now)).day]),
    ...(perMonth === null ? [] : [(perMonth - reserved(monthReset(now)).month) / 30]),
  ];
  return bounds.length === 0 ? null : Math.max(0, Math.floor(Math.min(...bounds)));
}
