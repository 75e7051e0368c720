/** One quote of a ticker, computed from the prices and volumes of any instant. */
import type { Instant } from '../clock.ts';
import type { TickerQuote } from '../contract/record/records.ts';
import { formatTime } from '../contract/time.ts';
import { DAY, HOUR, MINUTE } from '../core/interval.ts';

type PriceSource = {
  /** The price in units of the quote. */
  priceAt(at: Instant): number | null;
  /** The volume of the day before `at`, in the currency of the source. */
  volumeAt(at: Instant): number | null;
  /** The price of one unit of the quote at `at`, in the same currency. */
  perUnit(at: Instant): number | null;
  /** Milliseconds. Changes over a shorter time are unknown. */
  readonly finestMs: number;
};

export type Peak = { readonly price: number; readonly at: Instant };

export function tickerQuote(
  { priceAt, volumeAt, perUnit, finestMs }: PriceSource,
  at: Instant,
  { marketCapOf, peak }: { readonly marketCapOf: (price: number) => number | null; readonly peak: Peak | null },
): TickerQuote {
  const price = priceAt(at);
  const change = (ms: number) => (ms < finestMs ? null : percentChange(priceAt(at - ms), price));
  const volume = volumeAt(at);
  const unitPrice = perUnit(at);
  const marketCap = price === null ? null : marketCapOf(price);
  const change24h = change(DAY);
  return {
    price,
    volume_24h: volume === null || unitPrice === null ? null : volume / unitPrice,
    volume_24h_change_24h: percentChange(volumeAt(at - DAY), volume),
    market_cap: marketCap,
    market_cap_change_24h: marketCap === null ? null : change24h,
    percent_change_15m: change(15 * MINUTE),
    percent_change_30m: change(30 * MINUTE),
    percent_change_1h: change(HOUR),
    percent_change_6h: change(6 * HOUR),
    percent_change_12h: change(12 * HOUR),
    percent_change_24h: change24h,
    percent_change_7d: change(7 * DAY),
    percent_change_30d: change(30 * DAY),
    percent_change_1y: change(365 * DAY),
    ath_price: peak?.price ?? null,
    ath_date: peak && formatTime(peak.at),
    percent_from_price_ath: peak && percentChange(peak.price, price),
  };
}

function percentChange(from: number | null, to: number | null): number | null {
  return from === null || to === null || from === 0 ? null : Math.round((to / from - 1) * 100 * 100) / 100;
}
