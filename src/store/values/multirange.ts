/** Reads and writes spans in the text form of Postgres: `{["2024-01-01 00:00:00+00","2024-02-01 00:00:00+00")}`. */
import type { Instant } from '../../clock.ts';
import { normalize, type Span, type Spans } from '../../core/span.ts';
import { readInstant } from './instant.ts';

/** Literal for a `tstzmultirange` parameter. ±Infinity becomes an open end. */
export function toMultirange(spans: Spans): string {
  return `{${spans.map(toRange).join(',')}}`;
}

/** Literal for a `tstzrange` parameter. ±Infinity becomes an open end; an empty span becomes `empty`. */
export function toRange({ from, to }: Span): string {
  if (!(from < to)) return 'empty';
  return `[${bound(from)},${bound(to)})`;
}

/** @throws Error when `text` is not what a session in UTC prints. */
export function parseMultirange(text: string): Span[] {
  if (!text.startsWith('{') || !text.endsWith('}')) throw new Error(`not a multirange: ${text}`);
  return normalize(splitRanges(text.slice(1, -1)).map(parseRange));
}

/** An `empty` range is `{ from: 0, to: 0 }`. @throws Error when `text` is not what a session in UTC prints. */
export function parseRange(text: string): Span {
  if (text === 'empty') return { from: 0, to: 0 };
  const match = /^[[(]"?([^",]*)"?,"?([^",]*)"?\)$/.exec(text);
  if (!match) throw new Error(`not a range of instants: ${text}`);
  return {
    // Microseconds are cut off: spans have whole milliseconds.
    from: match[1] === '' ? Number.NEGATIVE_INFINITY : Math.floor(readInstant(match[1]!)),
    to: match[2] === '' ? Number.POSITIVE_INFINITY : Math.floor(readInstant(match[2]!)),
  };
}

// ISO 8601 writes years of five digits with a sign, and Postgres reads them only without it. There are no candles in such years.
const YEAR_1 = new Date('0001-01-01T00:00:00Z').getTime();
const YEAR_10000 = Date.UTC(10_000, 0, 1);

function bound(at: Instant): string {
  if (!Number.isFinite(at)) return '';
  if (at < YEAR_1 || at >= YEAR_10000) throw new RangeError(`instant ${at} lies outside the years 1 to 9999`);
  return new Date(at).toISOString();
}

function splitRanges(list: string): string[] {
  return list === '' ? [] : list.split(/(?<=[)\]]),(?=[[(])/);
}
