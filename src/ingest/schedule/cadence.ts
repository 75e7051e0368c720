/**
 * A cadence: the instants of a cron expression in UTC. node-cron parses the expression and matches days. For everything else it uses the machine's
 * clock, so this file computes the next tick, the last tick and the number of ticks from the fields.
 */
import { createTask, type DetailedValidation, validateDetailed } from 'node-cron';
import type { Instant } from '../../clock.ts';
import { dayStart } from '../../core/calendar.ts';
import { DAY, MINUTE } from '../../core/interval.ts';
import { firstAtLeast } from '../../quota/coming-requests.ts';

export type Cadence = {
  /** The cron expression. */
  readonly cron: string;
  /** The first tick after `at`. */
  next(at: Instant): Instant;
  /** The last tick at or before `at`; null when there is none within years. */
  latest(at: Instant): Instant | null;
  /** The number of ticks in `[from, to)`. */
  count(from: Instant, to: Instant): number;
};

/** A leap day comes within eight years, also around 2100, which has none. */
const FAR_DAYS = 9 * 366;
const MOST_KNOWN_DAYS = 4_000;
const A_MONDAY = Date.UTC(2024, 0, 1);

/** `problem` completes a sentence that begins with the expression. */
export function parseCadence(text: string): { readonly ok: Cadence } | { readonly problem: string } {
  const cron = text.trim().replace(/\s+/g, ' ');
  const { fields, errors } = check(cron);
  if (fields === undefined) {
    const field = errors.find((error) => error.field !== 'expression');
    const why = field === undefined ? '' : ` (${reworded(field.message)})`;
    return {
      problem: `which is not a cron expression${why}; write minute, hour, day, month and weekday in UTC, like */15 * * * *`,
    };
  }
  const step = tooWideStep(cron);
  if (step !== null) return { problem: step };
  if (fields.second.some((second) => second !== 0)) {
    return { problem: 'which runs more than once a minute; leave the seconds out, like * * * * * for every minute' };
  }
  const times = timesOfDay(fields.hour, fields.minute);
  const isEveryDay = isAll(fields.dayOfMonth, 31) && isAll(fields.month, 12) && isAll(fields.dayOfWeek, 7);
  const cadence = createCadence(cron, times, isEveryDay ? null : dayMatcher(cron));
  if (!Number.isFinite(cadence.next(A_MONDAY))) return { problem: 'a day that never comes' };
  return { ok: cadence };
}

/** The cadence of an expression that is known to be valid. @throws RangeError for an invalid one. */
export function cadenceOf(cron: string): Cadence {
  const parsed = parseCadence(cron);
  if ('ok' in parsed) return parsed.ok;
  throw new RangeError(`${cron} ${parsed.problem}`);
}

/** From minute to weekday: after how many values each field starts again. */
const FIELDS = [
  ['minutes', 60, 'with every hour'],
  ['hours', 24, 'with every day'],
  ['days', 31, 'with every month'],
  ['months', 12, 'with every year'],
  ['weekdays', 7, 'with every week'],
] as const;

/** Cron accepts a step of 90 minutes, but then runs every hour: this returns the problem. */
function tooWideStep(cron: string): string | null {
  for (const [i, field] of cron.split(' ').slice(-FIELDS.length).entries()) {
    const [name, size, anew] = FIELDS[i]!;
    const wide = field.split(',').find((part) => Number(part.split('/')[1] ?? 0) > size);
    if (wide !== undefined)
      return `whose ${wide} is not a step: ${name} begin again ${anew}; write a step of at most ${size}`;
  }
  return null;
}

function check(cron: string): DetailedValidation {
  try {
    return validateDetailed(cron);
  } catch {
    return { valid: false, errors: [] };
  }
}

function reworded(message: string): string {
  return message.replace(' is a invalid expression for ', ' is not a valid ').replace(' week day', ' weekday');
}

function isAll(values: readonly (number | string)[], size: number): boolean {
  return new Set(values.filter((value) => typeof value === 'number')).size === size;
}

function timesOfDay(hours: readonly number[], minutes: readonly number[]): readonly number[] {
  const times = hours.flatMap((hour) => minutes.map((minute) => (hour * 60 + minute) * MINUTE));
  return [...new Set(times)].sort((a, b) => a - b);
}

/** Returns a test whether the expression includes the UTC day that begins at `start`. */
function dayMatcher(cron: string): (start: Instant) => boolean {
  // All nicknames for days mean midnight.
  const days = cron.startsWith('@') ? cron : `0 0 ${cron.split(' ').slice(-3).join(' ')}`;
  const task = createTask(days, () => undefined, { timezone: 'UTC' });
  // The task is never started. Without this call, node-cron's registry would keep it for ever.
  void task.destroy();
  // A match uses the machine's calendar, which is slow, so results are cached.
  const known = new Map<Instant, boolean>();
  return (start) => {
    const before = known.get(start);
    if (before !== undefined) return before;
    if (known.size >= MOST_KNOWN_DAYS) known.clear();
    const matches = task.match(new Date(start));
    known.set(start, matches);
    return matches;
  };
}

/** `isDay` null: the cadence includes every day. */
function createCadence(cron: string, times: readonly number[], isDay: ((start: Instant) => boolean) | null): Cadence {
  const ticksOn = (day: Instant) => (isDay === null || isDay(day) ? times : []);
  const daysIn = (from: Instant, to: Instant) => {
    if (isDay === null) return (to - from) / DAY;
    let days = 0;
    for (let day = from; day < to; day += DAY) if (isDay(day)) days++;
    return days;
  };
  return {
    cron,
    next: (at) => {
      for (let day = dayStart(at), i = 0; i <= FAR_DAYS; day += DAY, i++) {
        const ticks = ticksOn(day);
        const time = ticks[firstAtLeast(ticks, at - day + 1)];
        if (time !== undefined) return day + time;
      }
      return Number.POSITIVE_INFINITY;
    },
    latest: (at) => {
      for (let day = dayStart(at), i = 0; i <= FAR_DAYS; day -= DAY, i++) {
        const ticks = ticksOn(day);
        const time = ticks[firstAtLeast(ticks, at - day + 1) - 1];
        if (time !== undefined) return day + time;
      }
      return null;
    },
    count: (from, to) => {
      if (from >= to) return 0;
      const [first, last] = [dayStart(from), dayStart(to)];
      const whole = daysIn(first, last) * times.length;
      return whole + firstAtLeast(ticksOn(last), to - last) - firstAtLeast(ticksOn(first), from - first);
    },
  };
}

const GAPS_LOOKED_AT = { days: 32, ticks: 3_000 };

/** The longest time between two ticks, in milliseconds. */
export function longestGapMs({ next }: Cadence): number {
  let longest = 0;
  let at = next(A_MONDAY);
  const { days, ticks } = GAPS_LOOKED_AT;
  for (let i = 0; i < ticks && at < A_MONDAY + days * DAY; i++) {
    const following = next(at);
    longest = Math.max(longest, following - at);
    at = following;
  }
  return longest;
}
