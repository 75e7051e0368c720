/** Reads instants as a session in UTC prints them (`2024-01-01 00:00:00.123456+00`), and writes instants for Postgres. */
import type { Instant } from '../../clock.ts';

const ZERO = '0'.charCodeAt(0);
/** Length of `2024-01-01 00:00:00`. */
const TO_SECONDS = 19;

/**
 * Reads `infinity` as `Infinity`. Microseconds become a fraction of a millisecond, so that the result equals the column it came from. An instant
 * later than a `Date` can hold (the year 275760) becomes the latest one that it can hold. The function parses by hand, because it reads whole
 * pages of rows, for which a regular expression is too slow.
 * @throws Error when `text` is not what a session in UTC prints.
 */
export function readInstant(text: string): Instant {
  // `Date.UTC` reads the years 0 to 99 as 1900 to 1999.
  const isUsual = text[0] !== '0' && text[4] === '-' && text[10] === ' ' && text[13] === ':' && text.endsWith('+00');
  if (!isUsual) return readUnusual(text);
  const digits = (at: number) => 10 * text.charCodeAt(at) + text.charCodeAt(at + 1) - 11 * ZERO;
  const year = 100 * digits(0) + digits(2);
  const seconds = Date.UTC(year, digits(5) - 1, digits(8), digits(11), digits(14), digits(17));
  const end = text.length - 3;
  if (end === TO_SECONDS) return seconds;
  return text[TO_SECONDS] === '.' ? seconds + millisecondsOf(text.slice(TO_SECONDS + 1, end)) : readUnusual(text);
}

/** Milliseconds from the digits after the point. There are at most six. */
function millisecondsOf(digits: string): number {
  return Number(digits.padEnd(6, '0')) / 1000;
}

/** The latest instant of a `Date`, in milliseconds. Postgres continues to the year 294276, and begins later than `Date`. */
const LATEST = 8.64e15;

const UNUSUAL = /^(\d{4,6})(-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00( BC)?$/;

/** Reads infinities, and years that have more than four digits, begin with a zero, or are BC. */
function readUnusual(text: string): Instant {
  if (text === 'infinity') return Number.POSITIVE_INFINITY;
  if (text === '-infinity') return Number.NEGATIVE_INFINITY;
  const [, digits, day, time, fraction = '', era] = UNUSUAL.exec(text) ?? [];
  if (digits === undefined) throw new Error(`not an instant in UTC: ${text}`);
  const year = era === undefined ? Number(digits) : 1 - Number(digits);
  const signed = `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(6, '0')}`;
  const at = Date.parse(`${signed}${day}T${time}Z`);
  // Never NaN: it is neither before nor after any instant, so a span that ends there would be empty.
  return Number.isNaN(at) ? LATEST : at + millisecondsOf(fraction);
}

/** Writes to the microsecond, which is the precision of Postgres. @throws RangeError for NaN, and for instants that a `Date` cannot hold. */
export function writeInstant(at: Instant): string {
  if (at === Number.POSITIVE_INFINITY) return 'infinity';
  if (at === Number.NEGATIVE_INFINITY) return '-infinity';
  const microseconds = Math.round((at - Math.floor(at)) * 1000);
  const date = new Date(Math.floor(at) + (microseconds === 1000 ? 1 : 0));
  const text = date.toISOString();
  const fraction = microseconds % 1000 === 0 ? '' : String(microseconds).padStart(3, '0');
  const year = date.getUTCFullYear();
  if (year > 0 && year < 10_000) return fraction === '' ? text : `${text.slice(0, -1)}${fraction}Z`;
  // For these years ISO 8601 has a sign and six digits, and it has a year 0. Postgres has neither.
  const rest = text.slice(text.indexOf('-', 1), -1);
  return `${String(year > 0 ? year : 1 - year).padStart(4, '0')}${rest}${fraction}Z${year > 0 ? '' : ' BC'}`;
}
