/** Instants as a session in UTC prints them (`2024-01-01 00:00:00.123456+00`), read and written. */
import type { Instant } from '../../clock.ts';

const ZERO = '0'.charCodeAt(0);
/** Length of `2024-01-01 00:00:00`. */
const TO_SECONDS = 19;

/**
 * `infinity` is `Infinity`. What a column holds beyond milliseconds is kept as a fraction, so that an instant that was read equals the
 * column it came from. What is later than a `Date` can hold (the year 275760) is read as the latest that it can. By hand and not with a regular
 * expression: pages of rows are read this way.
 * @throws Error when `text` is not what a session in UTC prints.
 */
export function readInstant(text: string): Instant {
  // `Date.UTC` takes the years 0 to 99 for those of the last century.
  const isUsual = text[0] !== '0' && text[4] === '-' && text[10] === ' ' && text[13] === ':' && text.endsWith('+00');
  if (!isUsual) return readUnusual(text);
  const digits = (at: number) => 10 * text.charCodeAt(at) + text.charCodeAt(at + 1) - 11 * ZERO;
  const year = 100 * digits(0) + digits(2);
  const seconds = Date.UTC(year, digits(5) - 1, digits(8), digits(11), digits(14), digits(17));
  const end = text.length - 3;
  if (end === TO_SECONDS) return seconds;
  return text[TO_SECONDS] === '.' ? seconds + millisecondsOf(text.slice(TO_SECONDS + 1, end)) : readUnusual(text);
}

/** Of the digits after the point, at most six. */
function millisecondsOf(digits: string): number {
  return Number(digits.padEnd(6, '0')) / 1000;
}

/** Of `Date`, in milliseconds. Postgres goes on to the year 294276, and begins later than `Date` does. */
const LATEST = 8.64e15;

const UNUSUAL = /^(\d{4,6})(-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00( BC)?$/;

/** Infinities, and years that have more than four digits, begin with a zero or lie before Christ. */
function readUnusual(text: string): Instant {
  if (text === 'infinity') return Number.POSITIVE_INFINITY;
  if (text === '-infinity') return Number.NEGATIVE_INFINITY;
  const [, digits, day, time, fraction = '', era] = UNUSUAL.exec(text) ?? [];
  if (digits === undefined) throw new Error(`not an instant in UTC: ${text}`);
  const year = era === undefined ? Number(digits) : 1 - Number(digits);
  const signed = `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(6, '0')}`;
  const at = Date.parse(`${signed}${day}T${time}Z`);
  // Not NaN, which is neither before nor after anything: a span that ends there would hold nothing.
  return Number.isNaN(at) ? LATEST : at + millisecondsOf(fraction);
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
