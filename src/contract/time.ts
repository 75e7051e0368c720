/** Instants in the API's format: RFC 3339 in UTC, whole seconds. `Date.parse` is too slow: a backfill parses two for each candle. */
import type { Instant } from '../clock.ts';
import { DAY } from '../core/interval.ts';

const ZERO = 48;
const DASH = 45;
const COLON = 58;

/**
 * Parses RFC 3339 (`2018-02-15T05:15:00Z`, also with fractions and offsets). A missing zone means UTC, because some of the
 * upstream's own examples have none (upstream-api.md, quirk 9). NaN for anything else; fractions of a millisecond are cut.
 */
export function parseTime(text: string): Instant {
  if (
    text.length === 20 &&
    text.charCodeAt(19) === 90 &&
    text.charCodeAt(10) === 84 &&
    text.charCodeAt(4) === DASH &&
    text.charCodeAt(7) === DASH &&
    text.charCodeAt(13) === COLON &&
    text.charCodeAt(16) === COLON
  ) {
    const hour = pair(text, 11);
    const minute = pair(text, 14);
    const second = pair(text, 17);
    const day = daysFromCivil(pair(text, 0) * 100 + pair(text, 2), pair(text, 5), pair(text, 8));
    return hour < 24 && minute < 60 && second < 60
      ? day * DAY + hour * 3_600_000 + minute * 60_000 + second * 1_000
      : NaN;
  }
  return parseUncommonTime(text);
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:([Zz])|([+-])(\d\d):?(\d\d))?$/;

function parseUncommonTime(text: string): Instant {
  const m = RFC_3339.exec(text);
  if (!m) return NaN;
  const [hour, minute, second] = [Number(m[4]), Number(m[5]), Number(m[6] ?? 0)];
  const [offsetHours, offsetMinutes] = [Number(m[10] ?? 0), Number(m[11] ?? 0)];
  if (hour > 23 || minute > 59 || second > 60 || offsetHours > 23 || offsetMinutes > 59) return NaN;
  const offset = (m[9] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000;
  const fraction = m[7] ? Math.floor(Number(`0.${m[7]}`) * 1_000) : 0;
  const day = daysFromCivil(Number(m[1]), Number(m[2]), Number(m[3]));
  return day * DAY + hour * 3_600_000 + minute * 60_000 + second * 1_000 + fraction - offset;
}

/** `yyyy-mm-dd` as midnight UTC; NaN for anything else. */
export function parseDate(text: string): Instant {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return NaN;
  return daysFromCivil(Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8, 10))) * DAY;
}

/** `2018-02-15T05:15:00Z`; fractions of a second are cut, as the upstream does. */
export function formatTime(at: Instant): string {
  const day = Math.floor(at / DAY);
  const second = Math.floor((at - day * DAY) / 1_000);
  let time = timesOfDay[second];
  if (time === undefined) {
    time = `T${TWO[(second / 3_600) | 0]}:${TWO[((second / 60) | 0) % 60]}:${TWO[second % 60]}Z`;
    timesOfDay[second] = time;
  }
  return formatDay(day) + time;
}

const TWO = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, '0'));
// Candles open and close at few times of the day, so each of these is formatted once.
const timesOfDay: (string | undefined)[] = new Array(86_400);
// The candles of all coins share the same few thousand days.
const dates = new Map<number, string>();
const MAX_DATES = 20_000;

function formatDay(day: number): string {
  let date = dates.get(day);
  if (date === undefined) {
    if (dates.size === MAX_DATES) dates.clear();
    date = new Date(day * DAY).toISOString().slice(0, 10);
    dates.set(day, date);
  }
  return date;
}

/** The number in two characters; NaN unless both are digits. */
function pair(text: string, at: number): number {
  const tens = text.charCodeAt(at) - ZERO;
  const units = text.charCodeAt(at + 1) - ZERO;
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : NaN;
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar; NaN when there is no such day. */
function daysFromCivil(year: number, month: number, day: number): number {
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= 31)) return NaN;
  // `Date.UTC` reads the years 0 to 99 as 1900 to 1999.
  const at = year >= 100 ? Date.UTC(year, month - 1, day) : new Date(0).setUTCFullYear(year, month - 1, day);
  return day <= 28 || new Date(at).getUTCDate() === day ? at / DAY : NaN;
}
