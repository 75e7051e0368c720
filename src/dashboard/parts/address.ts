/** Reads address fields that several screens have. Each function throws BadAddress, which names the field. */
import type { Instant } from '../../clock.ts';
import { parseDate, parseTime } from '../../contract/time.ts';
import { isQuote, type Quote } from '../../core/candle.ts';
import { type Interval, isInterval } from '../../core/interval.ts';
import { BadAddress } from '../bad-address.ts';

/** Null when the field is absent, or empty as a form sends it. */
export function readText(params: URLSearchParams, name: string, longest = 100): string | null {
  const text = (params.get(name) ?? '').trim();
  if (text === '') return null;
  if (text.length > longest || /\p{Cc}/u.test(text))
    throw new BadAddress(`${name} must be one line of at most ${longest} characters, got ${text.length}.`);
  return text;
}

/** The number of a row. */
export function readNumber(params: URLSearchParams, name: string): number | null {
  const text = readText(params, name);
  if (text === null) return null;
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new BadAddress(`${name} must be a whole number above 0, got ${JSON.stringify(text)}.`);
  return Number(text);
}

/** As `toInstant`. */
export function readInstant(params: URLSearchParams, name: string): Instant | null {
  const text = readText(params, name);
  return text === null ? null : toInstant(name, text);
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const DATE_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::[0-5]\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?$/;
/** A shorter number is more likely a year. Scripts send 0 for the beginning. */
const MILLISECONDS = /^(?:0|\d{10,14})$/;

/**
 * A date, a date-time in UTC unless it names a zone, or milliseconds since 1970.
 * Refuses 2024-02-31, which `Date.parse` reads as a day of March.
 */
function toInstant(name: string, text: string): Instant {
  const at = MILLISECONDS.test(text)
    ? Number(text)
    : DATE.test(text)
      ? parseDate(text)
      : DATE_TIME.test(text)
        ? parseTime(text)
        : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new BadAddress(
    `${name} must be a date like 2024-01-31 or a time in UTC like 2024-01-31T12:00, got ${JSON.stringify(text)}.`,
  );
}

/** As `toCandleTime`. */
export function readCandleTime(params: URLSearchParams, name: string): Instant | null {
  const text = readText(params, name);
  return text === null ? null : toCandleTime(name, text);
}

const LATEST_CANDLE = Date.UTC(2200, 0, 1);

/** As `toInstant`, where a candle can lie. */
export function toCandleTime(name: string, text: string): Instant {
  const at = toInstant(name, text);
  if (at >= 0 && at <= LATEST_CANDLE) return at;
  throw new BadAddress(`${name} must be a date between 1970 and 2200, got ${JSON.stringify(text)}.`);
}

export function readInterval(params: URLSearchParams): Interval | null {
  const text = readText(params, 'interval');
  if (text === null || isInterval(text)) return text;
  throw new BadAddress(`interval must be like 24h, 1h or prices-1d, got ${JSON.stringify(text)}.`);
}

export function readQuote(params: URLSearchParams): Quote | null {
  const text = readText(params, 'quote');
  if (text === null || isQuote(text)) return text;
  throw new BadAddress(`quote must be usd or btc, got ${JSON.stringify(text)}.`);
}

/** The same address with some fields set, and without those that are null. */
export function withFields(url: URL, fields: Readonly<Record<string, string | null>>): string {
  const params = new URLSearchParams(url.searchParams);
  // It refers to the action on the page before.
  params.delete('done');
  for (const [name, value] of Object.entries(fields)) {
    if (value === null) params.delete(name);
    else params.set(name, value);
  }
  for (const [name, value] of [...params]) if (value === '') params.delete(name);
  const text = params.toString();
  return text === '' ? url.pathname : `${url.pathname}?${text}`;
}
