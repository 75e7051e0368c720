/** Currencies of the simulated markets: price conversion through the dollar, and trading pairs. */
import type { Instant } from '../clock.ts';
import type { PriceConversion } from '../contract/record/catalogue.ts';
import { findFiat } from '../contract/record/fiats.ts';
import type { ConversionQuery } from '../contract/record/market-data.ts';
import { formatTime } from '../contract/time.ts';
import { dollarsPer } from './exchange-rates.ts';

/** The price of one unit in dollars, and the time of the price. */
type Priced = { readonly name: string; readonly dollars: number | null; readonly at: Instant };

/** `coinOf` looks up ids that are not fiat currencies. Null when one of the two ids is unknown. */
export function convertBy(
  coinOf: (id: string) => Priced | null,
  { baseId, quoteId, amount, now, seed }: ConversionQuery & { readonly now: Instant; readonly seed: number },
): PriceConversion | null {
  const base = fiatAt(baseId, now, seed) ?? coinOf(baseId);
  const quote = fiatAt(quoteId, now, seed) ?? coinOf(quoteId);
  if (!base || !quote) return null;
  return {
    base_currency_id: baseId,
    base_currency_name: base.name,
    base_price_last_updated: formatTime(base.at),
    quote_currency_id: quoteId,
    quote_currency_name: quote.name,
    quote_price_last_updated: formatTime(quote.at),
    amount,
    price: base.dollars === null || quote.dollars === null ? null : (amount * base.dollars) / quote.dollars,
  };
}

function fiatAt(id: string, now: Instant, seed: number): Priced | null {
  const fiat = findFiat(id);
  const dollars = fiat && dollarsPer(fiat.symbol, now, seed);
  return dollars === undefined ? null : { name: fiat!.name, dollars, at: Math.floor(now / 60_000) * 60_000 };
}

export const US_DOLLARS = { id: 'usd-us-dollars', name: 'US Dollars', symbol: 'USD' };

type Currency = { readonly id: string; readonly name: string; readonly symbol: string };

/** The fields that every trading pair has in both simulated markets. */
export function spotMarket(base: Currency, quote: Currency, marketUrl: string | null) {
  return {
    pair: `${base.symbol}/${quote.symbol}`,
    base_currency_id: base.id,
    base_currency_name: base.name,
    quote_currency_id: quote.id,
    quote_currency_name: quote.name,
    market_url: marketUrl,
    category: 'Spot',
    fee_type: 'Percentage',
    outlier: false,
  };
}

/** A part of a whole in percent, with six decimals; 0 if the whole is 0. */
export function percentOf(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1e8) / 1e6;
}
