/** Parameters of the catalogue's endpoints and of ticker history; a problem names the parameter, the rule and what was given. */
import type { Instant } from '../../clock.ts';
import { DAY, HOUR } from '../../core/interval.ts';
import type { TickerResolution } from '../plan/plans.ts';
import { SEARCH_CATEGORIES, type SearchCategory } from '../record/catalogue.ts';
import type { SearchQuery, TickerHistoryQuery } from '../record/market-data.ts';
import { invalid, ok, type Parsed, parseCount, parseQuote, parseRange } from './parameters.ts';
import { AMOUNT, TAG_FIELDS, type TagField } from './tools.ts';

const MINUTE = 60_000;

/** Widths of the spans of a ticker history, in the upstream's spelling (upstream-api.md, 1.7). */
export const TICKER_WIDTHS: Readonly<Record<string, number>> = {
  '5m': 5 * MINUTE,
  '10m': 10 * MINUTE,
  '15m': 15 * MINUTE,
  '30m': 30 * MINUTE,
  '45m': 45 * MINUTE,
  '1h': HOUR,
  '2h': 2 * HOUR,
  '3h': 3 * HOUR,
  '6h': 6 * HOUR,
  '12h': 12 * HOUR,
  '24h': DAY,
  '1d': DAY,
  '7d': 7 * DAY,
  '14d': 14 * DAY,
  '30d': 30 * DAY,
  '90d': 90 * DAY,
  '365d': 365 * DAY,
};
export const TICKS = { byDefault: 1_000, most: 5_000 } as const;
export const SEARCH_LIMIT = { byDefault: 6, most: 250 } as const;
/** Rows of a page of `/changelog/ids` and `/tickers/simple`. */
export const PAGE_ROWS = 100;
const LAST_PAGE = 1_000_000;
const MAX_QUERY_LENGTH = 200;

export type TickerHistoryParameters = Omit<TickerHistoryQuery, 'coinId'> & {
  /** As given, before it is aligned to the grid: the plan's history limit applies to this one. */
  readonly start: Instant;
  readonly resolution: TickerResolution;
};

/** `start`, `end` (excluded; default now), `limit`, `interval`, `quote` of `/tickers/{id}/historical`. */
export function parseTickerHistoryParameters(query: URLSearchParams, now: Instant): Parsed<TickerHistoryParameters> {
  const intervalText = query.get('interval') || '5m';
  const widthMs = Object.hasOwn(TICKER_WIDTHS, intervalText) ? TICKER_WIDTHS[intervalText]! : null;
  if (widthMs === null) {
    return invalid('interval', `must be one of ${Object.keys(TICKER_WIDTHS).join(' ')}`, intervalText);
  }
  const quote = parseQuote(query.get('quote'));
  if (!quote.ok) return quote;
  const limit = parseCount('limit', query.get('limit'), TICKS.byDefault, TICKS.most);
  if (!limit.ok) return limit;
  const range = parseRange(query);
  if (!range.ok) return range;
  const { start, end } = range.value;
  return ok({
    start,
    resolution: widthMs < HOUR ? 'minute' : widthMs < DAY ? 'hourly' : 'daily',
    quote: quote.value,
    from: Math.ceil(start / widthMs) * widthMs,
    to: end ?? now,
    widthMs,
    limit: limit.value,
  });
}

/** `q`, `c`, `modifier`, `limit` of `/search`. The vendor's OpenAPI says `symbol_search`, the API document `symbol`. */
export function parseSearchParameters(query: URLSearchParams): Parsed<SearchQuery> {
  const q = query.get('q')?.trim();
  if (!q) return invalid('q', 'is required', null);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these cannot be part of a name.
  if (q.length > MAX_QUERY_LENGTH || /[\u0000-\u001f\u007f]|\p{Surrogate}/u.test(q)) {
    return invalid('q', `must be a text of at most ${MAX_QUERY_LENGTH} characters`, q);
  }
  const categories = parseListOf('c', query.get('c'), SEARCH_CATEGORIES);
  if (!categories.ok) return categories;
  const modifier = query.get('modifier');
  if (modifier && modifier !== 'symbol_search' && modifier !== 'symbol') {
    return invalid('modifier', 'must be symbol_search', modifier);
  }
  const limit = parseCount('limit', query.get('limit'), SEARCH_LIMIT.byDefault, SEARCH_LIMIT.most);
  if (!limit.ok) return limit;
  const wanted: readonly SearchCategory[] = categories.value ?? SEARCH_CATEGORIES;
  return ok({ q, categories: wanted, symbolOnly: Boolean(modifier), limit: limit.value });
}

/** `base_currency_id`, `quote_currency_id`, `amount` of `/price-converter`. */
export function parseConversionParameters(
  query: URLSearchParams,
): Parsed<{ readonly baseId: string; readonly quoteId: string; readonly amount: number }> {
  const baseId = query.get('base_currency_id');
  if (!baseId) return invalid('base_currency_id', 'is required', null);
  const quoteId = query.get('quote_currency_id');
  if (!quoteId) return invalid('quote_currency_id', 'is required', null);
  const text = query.get('amount') || '0';
  const amount = /^\+?\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,3})?$/i.test(text) ? Number(text) : NaN;
  if (Number.isNaN(amount)) return invalid('amount', AMOUNT.leastRule, text);
  if (amount > AMOUNT.most) return invalid('amount', AMOUNT.mostRule, text);
  return ok({ baseId, quoteId, amount });
}

/** `additional_fields` of `/tags`. */
export function parseTagFields(text: string | null): Parsed<readonly TagField[]> {
  const fields = parseListOf('additional_fields', text, TAG_FIELDS);
  return fields.ok ? ok(fields.value ?? []) : fields;
}

/** `page`, from 1. */
export function parsePage(text: string | null): Parsed<number> {
  return parseCount('page', text, 1, LAST_PAGE);
}

/** Null when the parameter is empty. */
function parseListOf<T extends string>(
  name: string,
  text: string | null,
  known: readonly T[],
): Parsed<readonly T[] | null> {
  const items = [...new Set((text ?? '').split(',').map((item) => item.trim()))].filter((item) => item !== '');
  if (items.length === 0) return ok(null);
  const unknown = items.find((item) => !(known as readonly string[]).includes(item));
  return unknown === undefined ? ok(items as T[]) : invalid(name, `must be of ${known.join(' ')}`, unknown);
}
