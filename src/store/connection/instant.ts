/** Instants as a session in UTC prints them (`2024-01-01 00:00:00.123456+00`), read and written: the type map of every connection. */
import type { Instant } from '../../clock.ts';

const [ZERO, DASH, COLON, SPACE, DOT, PLUS] = [...'0-: .+'].map((character) => character.charCodeAt(0)) as [
  number,
  number,
  number,
  number,
  number,
  number,
];

/** Length of `2024-01-01 00:00:00`. */
const TO_SECONDS = 19;

/**
 * `infinity` is `Infinity`. What a column holds beyond milliseconds is kept as a fraction, so that an instant that was read compares as
 * equal to the column it came from. By hand and not with a regular expression: pages of rows are read this way.
 * @throws Error when `text` is not what a session in UTC prints.
 */
export function readInstant(text: string): Instant {
  const at = (index: number) => text.charCodeAt(index);
  const twoDigits = (index: number) => 10 * at(index) + at(index + 1) - 11 * ZERO;
  const end = text.length - 3;
  const isUsual =
    // `Date.UTC` takes the years 0 to 99 for those of the last century.
    at(0) > ZERO &&
    at(4) === DASH &&
    at(10) === SPACE &&
    at(13) === COLON &&
    at(end) === PLUS &&
    at(end + 1) === ZERO &&
    at(end + 2) === ZERO;
  if (!isUsual) return readUnusual(text);
  const year = 100 * twoDigits(0) + twoDigits(2);
  const seconds = Date.UTC(year, twoDigits(5) - 1, twoDigits(8), twoDigits(11), twoDigits(14), twoDigits(17));
  if (end === TO_SECONDS) return seconds;
  if (at(TO_SECONDS) !== DOT) return readUnusual(text);
  return seconds + millisecondsOf(text.slice(TO_SECONDS + 1, end));
}

/** Of the digits after the point, at most six. */
function millisecondsOf(digits: string): number {
  return Number(digits.padEnd(6, '0')) / 1000;
}

const UNUSUAL = /^(\d{4,6})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?\+00( BC)?$/;

/** Infinities, and years that do not have four digits after Christ or begin with a zero. */
function readUnusual(text: string): Instant {
  if (text === 'infinity') return Number.POSITIVE_INFINITY;
  if (text === '-infinity') return Number.NEGATIVE_INFINITY;
  const match = UNUSUAL.exec(text);
  if (!match) throw new Error(`not an instant in UTC: ${text}`);
  const [year, month, day, hours, minutes, seconds] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const date = new Date(0);
  date.setUTCFullYear(match[8] === undefined ? year : 1 - year, month - 1, day);
  return date.setUTCHours(hours, minutes, seconds) + millisecondsOf(match[7] ?? '');
}

/** To the microsecond, which is all that Postgres keeps. @throws RangeError for NaN, and beyond what a `Date` can hold. */
export function writeInstant(at: Instant): string {
  if (at === Number.POSITIVE_INFINITY) return 'infinity';
  if (at === Number.NEGATIVE_INFINITY) return '-infinity';
  const microseconds = Math.round((at - Math.floor(at)) * 1000);
  const date = new Date(Math.floor(at) + (microseconds === 1000 ? 1 : 0));
  const text = date.toISOString();
  const fraction = microseconds % 1000 === 0 ? '' : String(microseconds).padStart(3, '0');
  const year = date.getUTCFullYear();
  if (year > 0 && year < 10_000) return fraction === '' ? text : `${text.slice(0, -1)}${fraction}Z`;
  // ISO 8601 has a sign and six digits there, and a year 0; Postgres has neither.
  const rest = text.slice(text.indexOf('-', 1), -1);
  return `${String(year > 0 ? year : 1 - year).padStart(4, '0')}${rest}${fraction}Z${year > 0 ? '' : ' BC'}`;
}
