/** The fields that every market of an exchange has in both simulated worlds. */

export const US_DOLLARS = { id: 'usd-us-dollars', name: 'US Dollars', symbol: 'USD' };

type Currency = { readonly id: string; readonly name: string; readonly symbol: string };

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
