/** Parses instants and durations as users type them: a date, a date-time with its zone, relative to now; `90s`, `1h30m`. */
import type { Instant } from '../../clock.ts';
import * as api from '../../contract/time.ts';
import { formatInstant } from '../../core/format.ts';
import { UsageError } from '../shell/exit.ts';

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
type Unit = keyof typeof UNIT_MS;

const TEN_YEARS_MS = 10 * 365 * UNIT_MS.d;

/** Milliseconds. @throws UsageError that says how to write a duration */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms > TEN_YEARS_MS) throw new UsageError('It must not be longer than ten years.');
  return ms;
}

function durationMs(text: string): number {
  const parts = /^(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+$/.test(text) ? [...text.matchAll(/([\d.]+)(ms|[smhdw])/g)] : [];
  if (parts.length === 0) {
    const bare = /^\d+$/.test(text) ? `; write ${text}s, ${text}m or ${text}h` : '';
    throw new UsageError(`A duration is a number with its unit, like 90s, 5m, 2h or 1h30m${bare}.`);
  }
  return Math.round(parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNIT_MS[unit as Unit], 0));
}

const EXAMPLES = '2024-01-31, 2024-01-31T12:00Z or -30d';
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/i;

/**
 * An instant. A date means its UTC midnight, a date-time needs a zone, `-30d` and `now-12h` count back from `now`, and `now` is now.
 * @throws UsageError that says how to write a time
 */
export function parseTime(text: string, now: Instant): Instant {
  if (text === 'now') return now;
  const at = relativeTime(text.replace(/^now(?=-)/, ''), now) ?? absoluteTime(text);
  if (at < 0) throw new UsageError('There are no candles before 1970-01-01.');
  return at;
}

/** Null for a text that is not relative to now. */
function relativeTime(text: string, now: Instant): Instant | null {
  if (/^[-+]?\d{1,3}$/.test(text)) {
    const days = text.replace(/^[-+]/, '');
    throw new UsageError(`A number needs its unit; for ${days} days before now write -${days}d.`);
  }
  if (/^\+?\d+(\.\d+)?(ms|[smhdw])$/.test(text)) {
    throw new UsageError(`A relative time counts back from now and begins with a minus: -${text.replace('+', '')}.`);
  }
  return /^-\d/.test(text) ? now - durationMs(text.slice(1)) : null;
}

function absoluteTime(text: string): Instant {
  if (DATE.test(text)) return midnight(text);
  const parts = DATE_TIME.exec(text);
  if (parts === null) throw new UsageError(`A time is a date, a date-time with its zone, or relative: ${EXAMPLES}.`);
  const [, day, hours, minutes, seconds = '0', zone] = parts;
  midnight(day!);
  if (zone === undefined) {
    throw new UsageError(`A date-time needs its zone: ${text}Z for UTC, or ${text}+02:00 for two hours ahead of UTC.`);
  }
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) {
    throw new UsageError('This time of day does not exist: hours go to 23, minutes and seconds to 59.');
  }
  const at = api.parseTime(text);
  if (Number.isNaN(at) || Number(zone.slice(1, 3)) > 14) {
    throw new UsageError(`There is no zone ${zone}: zones go from -12:00 to +14:00.`);
  }
  return at;
}

function midnight(text: string): Instant {
  const at = api.parseDate(text);
  if (!Number.isNaN(at)) return at;
  const [year, month] = text.split('-');
  if (Number(month) < 1 || Number(month) > 12) {
    throw new UsageError(`There is no month ${month}: a date is year-month-day, like 2024-01-31.`);
  }
  const last = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  throw new UsageError(`There is no ${text}: ${year}-${month} has ${last} days.`);
}

/** The same, but the instant must not be in the future. @throws UsageError that names the option */
export function pastOption(name: string, text: string, now: Instant): Instant {
  const at = timeOption(name, text, now);
  if (at <= now) return at;
  throw new UsageError(`${name} ${text} lies in the future (now is ${formatInstant(now)}); choose an earlier time.`);
}

/** @throws UsageError that names the option */
export function timeOption(name: string, text: string, now: Instant): Instant {
  try {
    return parseTime(text, now);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${name} '${text}' is not a time. ${error.message}`);
    throw error;
  }
}
