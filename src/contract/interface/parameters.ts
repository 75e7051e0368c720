/** Parses the parameters of requests; a problem names the parameter and the rule. */
import type { Instant } from '../../clock.ts';
import { isQuote, QUOTES, type Quote } from '../../core/candle.ts';
import { ceilToGrid, DAY, INTERVAL_MS, INTERVALS, type Interval, isInterval } from '../../core/interval.ts';
import { TOO_MANY_QUOTES } from '../answer/errors.ts';
import { MAX_CANDLES } from '../plan/plans.ts';
import type { OhlcvQuery } from '../record/market-data.ts';
import { parseDate, parseTime } from '../time.ts';

export type Parsed<T> = { readonly ok: true; readonly value: T } | Invalid;

export type Invalid = {
  readonly ok: false;
  readonly message: string;
  /** The parameter that is wrong. */
  readonly parameter: string;
};

/** `start` as given, before it is aligned to the grid: the plan's history limit applies to this one. */
export type OhlcvParameters = Omit<OhlcvQuery, 'coinId'> & { readonly start: Instant };

/** One year: the 366 days of a leap year, from the first to the last instant (decision 5). */
const MAX_RANGE_MS = 366 * DAY;

/** `start`, `end`, `limit`, `interval`, `quote` of `/coins/{id}/ohlcv/historical` (decisions 1 to 5). */
export function parseOhlcvParameters(query: URLSearchParams): Parsed<OhlcvParameters> {
  const interval = parseInterval(query.get('interval'));
  if (!interval.ok) return interval;
  const quote = parseQuote(query.get('quote'));
  if (!quote.ok) return quote;
  // The default depends on whether there is an `end` (decision 3).
  const limit = parseCount('limit', query.get('limit'), query.get('end') ? MAX_CANDLES : 1, MAX_CANDLES);
  if (!limit.ok) return limit;
  const range = parseRange(query);
  if (!range.ok) return range;
  const { start, end } = range.value;
  const from = ceilToGrid(start, interval.value);
  const to = end ?? from + (limit.value - 1) * INTERVAL_MS[interval.value];
  if (end !== null && end - start > MAX_RANGE_MS) {
    return invalid('end', 'must be at most one year after start', query.get('end'));
  }
  return ok({ start, from, to, limit: limit.value, interval: interval.value, quote: quote.value });
}

/** The one parameter of `/coins/{id}/ohlcv/latest` and `/today`. */
export function parseQuote(text: string | null): Parsed<Quote> {
  if (!text) return ok('usd');
  const lower = text.toLowerCase();
  return isQuote(lower) ? ok(lower) : invalid('quote', `must be ${QUOTES.join(' or ')}`, text);
}

const TIME_FORMATS =
  'must be a date (2018-02-15), an RFC 3339 time (2018-02-15T05:15:00Z) or unix seconds (1518671700)';

/** Any of the three formats that the upstream takes; null for anything else. A date is midnight UTC. */
export function parseInstant(text: string): Instant | null {
  if (/^\d{1,11}$/.test(text)) return Number(text) * 1_000;
  const at = text.length === 10 ? parseDate(text) : parseTime(text);
  return Number.isNaN(at) ? null : at;
}

function parseInterval(text: string | null): Parsed<Interval> {
  if (!text) return ok('24h');
  return isInterval(text) ? ok(text) : invalid('interval', `must be one of ${INTERVALS.join(' ')}`, text);
}

/** `start`, and `end`; null without one. */
export function parseRange(query: URLSearchParams): Parsed<{ readonly start: Instant; readonly end: Instant | null }> {
  const startText = query.get('start');
  if (!startText) return invalid('start', 'is required', null);
  const start = parseInstant(startText);
  if (start === null) return invalid('start', TIME_FORMATS, startText);
  const endText = query.get('end');
  if (!endText) return ok({ start, end: null });
  const end = parseInstant(endText);
  if (end === null) return invalid('end', TIME_FORMATS, endText);
  return end < start ? invalid('end', 'must not be before start', endText) : ok({ start, end });
}

/** A whole number from 1 to `most`. */
export function parseCount(name: string, text: string | null, byDefault: number, most: number): Parsed<number> {
  if (!text) return ok(byDefault);
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= most ? ok(value) : invalid(name, `must be a whole number from 1 to ${most}`, text);
}

/** The quotes of `/tickers` and `/exchanges` (upstream-api.md, 1.4). */
export const TICKER_QUOTES =
  'BTC ETH USD EUR PLN KRW GBP CAD JPY RUB TRY NZD AUD CHF UAH HKD SGD NGN PHP MXN BRL THB CLP CNY CZK DKK HUF IDR ILS INR MYR NOK PKR SEK TWD ZAR VND BOB COP PEN ARS ISK'.split(
    ' ',
  ) as readonly string[];

/** `quotes` of tickers and exchanges: at most three of `TICKER_QUOTES`, upper-case, each once; default USD. */
export function parseQuotes(text: string | null): Parsed<readonly string[]> {
  if (!text) return ok(['USD']);
  const quotes = [...new Set(text.split(',').map((quote) => quote.trim().toUpperCase()))];
  if (quotes.length > 3) return { ok: false, message: TOO_MANY_QUOTES, parameter: 'quotes' };
  const unknown = quotes.find((quote) => !TICKER_QUOTES.includes(quote));
  return unknown === undefined ? ok(quotes) : invalid('quotes', `must be of ${TICKER_QUOTES.join(' ')}`, unknown);
}

export function ok<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

/** Begins like the upstream's texts, then adds the rule and the given value (decision 6). */
export function invalid(name: string, rule: string, given: string | null): Invalid {
  const got = given === null ? '' : `, got "${given.length > 40 ? `${given.slice(0, 39)}…` : given}"`;
  return { ok: false, message: `invalid parameters: ${name} ${rule}${got}`, parameter: name };
}
