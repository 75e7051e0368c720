/** The records of the API on the wire: types, and tolerant parsers (they ignore unknown fields; the problem of a wrong type names the field). */
import { z } from 'zod';

/** A missing number, null and "" become null: the upstream's documents have all three (upstream-api.md, "Numbers"). */
const number = z
  .union([z.number(), z.null(), z.literal('')], { error: 'expected number' })
  .optional()
  .transform((value) => (typeof value === 'number' ? value : null));
const text = z.string({ error: 'expected string' });
/** A missing text, null and "" become null. */
const optionalText = z
  .union([z.string(), z.null()], { error: 'expected string' })
  .optional()
  .transform((value) => value || null);
const flag = z.boolean({ error: 'expected boolean' });
const optionalFlag = z
  .union([z.boolean(), z.null()], { error: 'expected boolean' })
  .optional()
  .transform((value) => value ?? false);

function list<S extends z.ZodType>(item: S) {
  return z
    .array(item, { error: 'expected array' })
    .nullish()
    .transform((value): z.output<S>[] => value ?? []);
}

const tickerQuote = z.object({
  price: number,
  volume_24h: number,
  volume_24h_change_24h: number,
  market_cap: number,
  market_cap_change_24h: number,
  percent_change_15m: number,
  percent_change_30m: number,
  percent_change_1h: number,
  percent_change_6h: number,
  percent_change_12h: number,
  percent_change_24h: number,
  percent_change_7d: number,
  percent_change_30d: number,
  percent_change_1y: number,
  ath_price: number,
  ath_date: optionalText,
  percent_from_price_ath: number,
});

/** `/tickers/{id}`. `rank` 0 = inactive, `max_supply` 0 = none; `circulating_supply` is null when the plan does not include it. */
export const tickerSchema = z.object({
  id: text,
  name: text,
  symbol: text,
  rank: number,
  circulating_supply: number,
  total_supply: number,
  max_supply: number,
  beta_value: number,
  /** RFC 3339. */
  first_data_at: optionalText,
  last_updated: optionalText,
  /** Keyed by upper-case symbol; only the requested quotes. */
  quotes: z.record(z.string(), tickerQuote, { error: 'expected object' }),
});
export const tickersSchema = z.array(tickerSchema, { error: 'expected array' });

/** A row of `/coins`. `rank` 0 = inactive. */
export const coinSummarySchema = z.object({
  id: text,
  name: text,
  symbol: text,
  rank: number,
  is_new: optionalFlag,
  is_active: flag,
  /** `coin` or `token`. */
  type: optionalText,
});
export const coinsSchema = z.array(coinSummarySchema, { error: 'expected array' });

/** `/global`; `last_updated` is unix **seconds**. */
export const globalSchema = z.object({
  market_cap_usd: number,
  volume_24h_usd: number,
  bitcoin_dominance_percentage: number,
  cryptocurrencies_number: number,
  market_cap_ath_value: number,
  market_cap_ath_date: optionalText,
  volume_24h_ath_value: number,
  volume_24h_ath_date: optionalText,
  volume_24h_percent_from_ath: number,
  volume_24h_percent_to_ath: number,
  market_cap_change_24h: number,
  volume_24h_change_24h: number,
  last_updated: number,
});

const exchangeQuote = z.object({
  reported_volume_24h: number,
  adjusted_volume_24h: number,
  reported_volume_7d: number,
  adjusted_volume_7d: number,
  reported_volume_30d: number,
  adjusted_volume_30d: number,
});

/** A row of `/exchanges`. */
export const exchangeSchema = z.object({
  id: text,
  name: text,
  type: list(text),
  active: optionalFlag,
  website_status: optionalFlag,
  api_status: optionalFlag,
  description: optionalText,
  message: optionalText,
  links: z
    .record(z.string(), list(text), { error: 'expected object' })
    .nullish()
    .transform((value) => value ?? {}),
  markets_data_fetched: optionalFlag,
  adjusted_rank: number,
  reported_rank: number,
  currencies: number,
  markets: number,
  fiats: list(z.object({ name: text, symbol: text })),
  quotes: z
    .record(z.string(), exchangeQuote, { error: 'expected object' })
    .nullish()
    .transform((value) => value ?? {}),
  last_updated: optionalText,
});
export const exchangesSchema = z.array(exchangeSchema, { error: 'expected array' });

/** `/users/me` and `/key/info` have the same body. `requests_made` and `requests_left` are −1 when unlimited. */
export const accountInfoSchema = z.object({
  /** Usually a `PlanName`; the type is text because the vendor adds plans. */
  plan: text,
  plan_started_at: optionalText,
  plan_status: optionalText,
  portal_url: optionalText,
  usage: z.object(
    {
      message: optionalText,
      current_month: z.object({ requests_made: number, requests_left: number }, { error: 'expected object' }),
    },
    { error: 'expected object' },
  ),
});

export type TickerQuote = z.output<typeof tickerQuote>;
export type Ticker = z.output<typeof tickerSchema>;
export type CoinSummary = z.output<typeof coinSummarySchema>;
export type GlobalOverview = z.output<typeof globalSchema>;
export type Exchange = z.output<typeof exchangeSchema>;
export type AccountInfo = z.output<typeof accountInfoSchema>;

export type ParsedRecord<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

/** Parses `body` with `schema`. A problem names the first invalid field: `[3].rank: expected number, got string "12"`. */
export function readRecord<S extends z.ZodType>(schema: S, body: unknown): ParsedRecord<z.output<S>> {
  const result = schema.safeParse(body);
  if (result.success) return { ok: true, value: result.data };
  const issue = result.error.issues[0]!;
  const expected = issue.message.startsWith('expected') ? issue.message : `expected ${shapeName(issue)}`;
  const value = valueAt(body, issue.path);
  return { ok: false, problem: `${formatPath(issue.path)}: ${expected}, got ${describeValue(value)}` };
}

/** Describes a value for a problem: its type, and the shortened value itself. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (typeof value === 'object') return 'object';
  const text = JSON.stringify(value) ?? String(value);
  return `${typeof value} ${text.length > 40 ? `${text.slice(0, 39)}…` : text}`;
}

function shapeName(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_type') return 'a value of another shape';
  return `${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[key];
  return value;
}

function formatPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'body';
  return path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? String(key) : `.${String(key)}`))
    .join('');
}
