/** Currencies of the simulated markets: exchange rates, price conversion by way of the dollar, and trading pairs. */
import type { Instant } from '../clock.ts';
import type { PriceConversion } from '../contract/record/catalogue.ts';
import { findFiat } from '../contract/record/fiats.ts';
import { formatTime } from '../contract/time.ts';

/** Fixed exchange rates of fiat currencies, roughly those of 2024. */
const DOLLARS_PER: Readonly<Record<string, number>> = {
  USD: 1,
  EUR: 1.08,
  PLN: 0.25,
  KRW: 0.00073,
  GBP: 1.27,
  CAD: 0.73,
  JPY: 0.0066,
  RUB: 0.011,
  TRY: 0.03,
  NZD: 0.6,
  AUD: 0.66,
  CHF: 1.12,
  UAH: 0.025,
  HKD: 0.128,
  SGD: 0.74,
  NGN: 0.0007,
  PHP: 0.0175,
  MXN: 0.055,
  BRL: 0.19,
  THB: 0.028,
  CLP: 0.00105,
  CNY: 0.138,
  CZK: 0.043,
  DKK: 0.145,
  HUF: 0.0027,
  IDR: 0.000062,
  ILS: 0.27,
  INR: 0.012,
  MYR: 0.21,
  NOK: 0.093,
  PKR: 0.0036,
  SEK: 0.095,
  TWD: 0.031,
  ZAR: 0.054,
  VND: 0.00004,
  BOB: 0.145,
  COP: 0.00025,
  PEN: 0.27,
  ARS: 0.001,
  ISK: 0.0072,
};

/** Dollars per unit of a currency by its upper-case symbol; `undefined` when it is not a fiat currency (BTC and ETH are coins). */
export function dollarsPer(symbol: string): number | undefined {
  return DOLLARS_PER[symbol];
}

/** The price of one unit in dollars, and its time. */
type Priced = { readonly name: string; readonly dollars: number | null; readonly at: Instant };

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

/** A part of a whole in percent, with six digits; 0 of nothing. */
export function percentOf(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1e8) / 1e6;
}
