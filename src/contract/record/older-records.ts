/**
 * Two shorter forms of a ticker: `/tickers/simple`, and the deprecated `/ticker`, in which all values are text (upstream-api.md, 1.6 and
 * 1.27).
 */
import { z } from 'zod';
import { parseTime } from '../time.ts';
import type { Ticker } from './records.ts';

export const simpleTickerSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  symbol: z.string(),
  rank: z.number().nullable(),
  quotes: z.record(z.string(), z.looseObject({ price: z.number().nullable() })),
});
export const simpleTickersSchema = z.array(simpleTickerSchema);

export function simpleTickerOf({ id, name, symbol, rank, quotes }: Ticker): z.output<typeof simpleTickerSchema> {
  const prices = Object.entries(quotes).map(([key, { price }]) => [key, { price }] as const);
  return { id, name, symbol, rank, quotes: Object.fromEntries(prices) };
}

const text = z.string();
export const legacyTickerSchema = z.looseObject({
  id: text,
  name: text,
  symbol: text,
  rank: text,
  price_usd: text,
  price_btc: text,
  volume_24h_usd: text,
  market_cap_usd: text,
  circulating_supply: text,
  total_supply: text,
  max_supply: text,
  percent_change_1h: text,
  percent_change_24h: text,
  percent_change_7d: text,
  /** Unix seconds. */
  last_updated: text,
});
export const legacyTickersSchema = z.array(legacyTickerSchema);

/** `ticker` must have quotes in USD and BTC. Missing values become an empty text. */
export function legacyTickerOf(ticker: Ticker, showsSupply: boolean): z.output<typeof legacyTickerSchema> {
  const usd = ticker.quotes.USD;
  return {
    id: ticker.id,
    name: ticker.name,
    symbol: ticker.symbol,
    rank: write(ticker.rank),
    price_usd: write(usd?.price),
    price_btc: write(ticker.quotes.BTC?.price),
    volume_24h_usd: write(usd?.volume_24h),
    market_cap_usd: write(usd?.market_cap),
    circulating_supply: showsSupply ? write(ticker.circulating_supply) : '',
    total_supply: write(ticker.total_supply),
    max_supply: write(ticker.max_supply),
    percent_change_1h: write(usd?.percent_change_1h),
    percent_change_24h: write(usd?.percent_change_24h),
    percent_change_7d: write(usd?.percent_change_7d),
    last_updated: ticker.last_updated === null ? '' : String(Math.floor(parseTime(ticker.last_updated) / 1_000)),
  };
}

function write(value: number | null | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
