/** Parses instants as people type them: a date, a date-time with its zone, or relative to now. */
import type { Instant } from '../../clock.ts';
import { UsageError } from '../shell/exit.ts';
import { parseDuration } from './duration.ts';

const EXAMPLES = '2024-01-31, 2024-01-31T12:00Z or -30d';
const BEFORE_CANDLES = 'There are no candles before 1970-01-01.';
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3})\d*)?)?(Z|[+-]\d{2}:?\d{2})?$/i;

/**
 * An instant: a date is its UTC midnight, a date-time needs a zone, `-30d` and `-12h` count back from `now`, `now` is now.
 * @throws UsageError that says how to write a time
 */
export function parseTime(text: string, now: Instant): Instant {
  if (text === 'now') return now;
  if (/^[-+]?\d{1,3}$/.test(text)) {
    const days = text.replace(/^[-+]/, '');
    throw new UsageError(`A number needs its unit; for ${days} days before now write -${days}d.`);
  }
  if (/^-\d/.test(text) && !DATE.test(text)) {
    const at = now - parseDuration(text.slice(1), Number.POSITIVE_INFINITY);
    if (at < 0) throw new UsageError(BEFORE_CANDLES);
    return at;
  }
  if (/^\+?\d+(\.\d+)?(ms|[smhdw])$/.test(text)) {
    throw new UsageError(`A relative time counts back from now and begins with a minus: -${text.replace('+', '')}.`);
  }
  const date = DATE.exec(text);
  if (date) return midnight(text, date);
  const parts = DATE_TIME.exec(text);
  if (parts === null) throw new UsageError(`A time is a date, a date-time with its zone, or relative: ${EXAMPLES}.`);
  const [, day, hours, minutes, seconds = '0', fraction = '', zone] = parts;
  const dayStart = midnight(day!, DATE.exec(day!)!);
  if (zone === undefined) {
    throw new UsageError(`A date-time needs its zone: ${text}Z for UTC, or ${text}+02:00 for two hours ahead of UTC.`);
  }
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) {
    throw new UsageError('This time of day does not exist: hours go to 23, minutes and seconds to 59.');
  }
  const ofDay =
    (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000 + Number(fraction.padEnd(3, '0'));
  return dayStart + ofDay - zoneOffsetMs(zone);
}

/** @throws UsageError that names the option. */
export function timeOption(name: string, text: string, now: Instant): Instant {
  try {
    return parseTime(text, now);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${name} '${text}' is not a time. ${error.message}`);
    throw error;
  }
}

function midnight(text: string, parts: RegExpExecArray): Instant {
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  if (month < 1 || month > 12)
    throw new UsageError(`There is no month ${parts[2]}: a date is year-month-day, like 2024-01-31.`);
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (day < 1 || day > last) {
    throw new UsageError(`There is no ${text}: ${parts[1]}-${parts[2]} has ${last} days.`);
  }
  if (year < 1970) throw new UsageError(BEFORE_CANDLES);
  return Date.UTC(year, month - 1, day);
}

function zoneOffsetMs(zone: string): number {
  if (zone.toUpperCase() === 'Z') return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(-2));
  if (hours > 14 || minutes > 59) throw new UsageError(`There is no zone ${zone}: zones go from -12:00 to +14:00.`);
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
