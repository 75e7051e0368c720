/** Reads address fields that several screens have. Each function throws BadAddress, which names the field. */
import type { Instant } from '../../clock.ts';
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

/** A date, or a date-time in UTC. */
export function readInstant(params: URLSearchParams, name: string): Instant | null {
  const text = readText(params, name);
  if (text === null) return null;
  const match = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)Z?)?$/.exec(text);
  const at = match === null ? Number.NaN : Date.parse(`${match[1]}T${match[2] ?? '00:00'}Z`);
  if (Number.isNaN(at))
    throw new BadAddress(
      `${name} must be a date like 2026-01-31 or a time in UTC like 2026-01-31T12:00, got ${JSON.stringify(text)}.`,
    );
  return at;
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
