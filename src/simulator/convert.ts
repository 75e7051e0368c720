/** Price conversion between coins and fiat currencies, by way of the dollar. */
import type { Instant } from '../clock.ts';
import type { PriceConversion } from '../contract/record/catalogue.ts';
import { findFiat } from '../contract/record/fiats.ts';
import { formatTime } from '../contract/time.ts';
import { dollarsPer } from './rates.ts';

/** The price of one unit in dollars, and its time. */
export type Priced = { readonly name: string; readonly dollars: number | null; readonly at: Instant };

/** `coinOf` looks up what is not a fiat currency. Null when one of the two ids is neither. */
export function convertBy(
  coinOf: (id: string) => Priced | null,
  { baseId, quoteId, amount, now }: { baseId: string; quoteId: string; amount: number; now: Instant },
): PriceConversion | null {
  const base = fiatAt(baseId, now) ?? coinOf(baseId);
  const quote = fiatAt(quoteId, now) ?? coinOf(quoteId);
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

function fiatAt(id: string, now: Instant): Priced | null {
  const fiat = findFiat(id);
  const dollars = fiat && dollarsPer(fiat.symbol);
  return dollars === undefined ? null : { name: fiat!.name, dollars, at: Math.floor(now / 60_000) * 60_000 };
}
