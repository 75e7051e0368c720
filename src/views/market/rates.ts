/** Converts prices from dollars into other currencies: divides them by a ticker of the same snapshot (decision 43). */
import type { Instant } from '../../clock.ts';
import { FIATS } from '../../contract/record/fiats.ts';
import type { Exchange, Ticker, TickerQuote } from '../../contract/record/records.ts';
import { RATE_CHANGES, type RateChange } from '../../core/ticker.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** Currencies with a ticker of their own. */
const COINS: Readonly<Record<string, string>> = { BTC: 'btc-bitcoin', ETH: 'eth-ethereum' };

/** One unit of a currency in dollars at an instant, and its changes in percent. */
type Rate = { readonly price: number; readonly at: Instant } & Readonly<Record<RateChange, number | null>>;
const rateOf = createRecordReader<Rate>(['price', 'at', ...RATE_CHANGES]);
/** By symbol and instant of the snapshot. */
export type Rates = (symbol: string, at: Instant) => Rate | null;

/** For a snapshot without a ticker of the currency, one that is at most this much older is used. */
const MAX_AGE = '1 hour';
/** Under the smallest plan, the rates of the other currencies are read once a day. Without a fresh rate, values are null, never invented. */
const MAX_FIAT_AGE = '36 hours';
/** A snapshot is a little older than rates that were read just after it. */
const MAX_AHEAD = '15 minutes';
const IS_FIAT: ReadonlySet<string> = new Set(FIATS.map(({ symbol }) => symbol).filter((symbol) => symbol !== 'USD'));

/** The rates of these currencies at these snapshots. */
export async function readRates(sql: Sql, symbols: readonly string[], ats: readonly Instant[]): Promise<Rates> {
  const found = new Map<string, Rate>();
  const fiats = symbols.filter((symbol) => IS_FIAT.has(symbol));
  if (fiats.length > 0 && ats.length > 0) {
    const rows = await sql<(CamelCased<Rate> & { readonly currency: string; readonly snapshot: Instant })[]>`
      select a.at as snapshot, r.* from unnest(${ats as Instant[]}::timestamptz[]) as a(at)
      cross join unnest(${fiats}::text[]) as f(currency)
      cross join lateral (
        select currency, price, at, ${sql(RATE_CHANGES as unknown as string[])} from market.rate
        where currency = f.currency and at <= a.at + ${MAX_AHEAD}::interval and at > a.at - ${MAX_FIAT_AGE}::interval
        order by at desc limit 1) r`;
    for (const row of rows) found.set(`${row.currency} ${row.snapshot}`, rateOf(row));
  }
  for (const symbol of symbols) {
    const coinId = COINS[symbol];
    if (coinId === undefined || ats.length === 0) continue;
    const rows = await sql<(CamelCased<Rate> & { readonly snapshot: Instant })[]>`
      select a.at as snapshot, h.price, h.at, ${sql(RATE_CHANGES.map((name) => `t.${name}`))}
      from unnest(${ats as Instant[]}::timestamptz[]) as a(at)
      cross join lateral (
        select price, at from market.ticker_history
        where coin_id = ${coinId} and at <= a.at and at > a.at - ${MAX_AGE}::interval and price > 0
        order by at desc limit 1) h
      left join market.ticker t on t.coin_id = ${coinId} and t.at = h.at`;
    for (const row of rows) found.set(`${symbol} ${row.snapshot}`, rateOf(row));
  }
  return (symbol, at) => found.get(`${symbol} ${at}`) ?? null;
}

/** Whether any of these currencies needs a rate. */
export function needsRates(quotes: readonly string[]): boolean {
  return quotes.some((symbol) => symbol in COINS || IS_FIAT.has(symbol));
}

/** Whether the rate of one of these currencies is missing at one of these snapshots. */
export function lacksRates(quotes: readonly string[], ats: readonly Instant[], rates: Rates): boolean {
  return quotes.some((symbol) => symbol !== 'USD' && ats.some((at) => rates(symbol, at) === null));
}

/** Converted prices are as old as the oldest rate of the newest snapshot, if that is older than the prices in dollars. */
export function asOfRates(
  asOf: Instant | null,
  quotes: readonly string[],
  ats: readonly Instant[],
  rates: Rates,
): Instant | null {
  if (asOf === null || ats.length === 0) return asOf;
  const newest = ats.reduce((a, b) => Math.max(a, b));
  return quotes.reduce((oldest, symbol) => Math.min(oldest, rates(symbol, newest)?.at ?? oldest), asOf);
}

/** Converts a ticker from dollars into these currencies. */
export function tickerIn(ticker: Ticker, quotes: readonly string[], at: Instant, rates: Rates): Ticker {
  const usd = ticker.quotes.USD;
  if (usd === undefined || (quotes.length === 1 && quotes[0] === 'USD')) return ticker;
  const converted: Record<string, TickerQuote> = {};
  for (const symbol of quotes) converted[symbol] = symbol === 'USD' ? usd : quoteIn(usd, rates(symbol, at));
  return { ...ticker, quotes: converted };
}

const IS_CHANGE: ReadonlySet<string> = new Set(RATE_CHANGES);
/** The fields in dollars. */
const IS_AMOUNT: ReadonlySet<string> = new Set(['price', 'volume_24h', 'market_cap']);
/** The fields whose value is the same as in dollars. */
const IS_UNCHANGED: ReadonlySet<string> = new Set(['volume_24h_change_24h', 'market_cap_change_24h']);

/**
 * Converts a quote as upstream does: without all-time high, and with the changes of volume and market cap in dollars (upstream-api.md, 1.4, and its
 * recorded answers).
 */
function quoteIn(usd: TickerQuote, rate: Rate | null): TickerQuote {
  // Creates one object and no temporary ones, because whole lists are converted while other requests wait.
  const quote: Record<string, unknown> = {};
  for (const name in usd) {
    const value = usd[name as keyof TickerQuote];
    if (rate === null) quote[name] = null;
    else if (IS_AMOUNT.has(name)) quote[name] = divide(value as number | null, rate.price);
    else if (IS_CHANGE.has(name)) quote[name] = changeIn(value as number | null, rate[name as keyof Rate]);
    else quote[name] = IS_UNCHANGED.has(name) ? value : null;
  }
  return quote as TickerQuote;
}

export function exchangeIn(exchange: Exchange, quotes: readonly string[], at: Instant, rates: Rates): Exchange {
  const usd = exchange.quotes.USD;
  if (usd === undefined || (quotes.length === 1 && quotes[0] === 'USD')) return exchange;
  const volumesIn = (symbol: string) => {
    const rate = rates(symbol, at);
    const volumes = Object.entries(usd).map(([name, value]) => [name, divide(value, rate?.price ?? null)]);
    return Object.fromEntries(volumes) as typeof usd;
  };
  const entries = quotes.map((symbol) => [symbol, symbol === 'USD' ? usd : volumesIn(symbol)]);
  return { ...exchange, quotes: Object.fromEntries(entries) as Exchange['quotes'] };
}

/** Upstream may write "" for a missing number. */
function divide(value: number | null, by: number | null): number | null {
  return typeof value === 'number' && by !== null ? value / by : null;
}

/** The change of a price in another currency, rounded as upstream does. All are in percent. */
function changeIn(percent: number | null, of: number | null): number | null {
  if (typeof percent !== 'number' || of === null || of <= -100) return null;
  return Math.round(((1 + percent / 100) / (1 + of / 100) - 1) * 10_000) / 100;
}

/** The current price in dollars of one unit of a currency without a coin, and its time; null: no fresh rate was received. */
export async function currentRate(
  sql: Sql,
  symbol: string,
  now: Instant,
): Promise<{ readonly price: number; readonly at: Instant; readonly updatedAt: Instant } | null> {
  const [row] = await sql<{ price: number; at: Instant; updatedAt: Instant }[]>`
    select price, at, updated_at from market.rate
    where currency = ${symbol} and at > ${now}::timestamptz - ${MAX_FIAT_AGE}::interval order by at desc limit 1`;
  return row ?? null;
}
