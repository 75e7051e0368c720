/** The global overview of the made-up market. */
import type { Instant } from '../../clock.ts';
import type { GlobalOverview, Ticker } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';

/** Sums of the tickers, which must have a USD quote. */
export function madeUpGlobal(tickers: readonly Ticker[], now: Instant): GlobalOverview {
  const sum = (field: 'market_cap' | 'volume_24h') =>
    Math.floor(tickers.reduce((total, ticker) => total + (ticker.quotes.USD?.[field] ?? 0), 0));
  const marketCap = sum('market_cap');
  const volume = sum('volume_24h');
  const bitcoin = tickers.find((ticker) => ticker.id === 'btc-bitcoin')?.quotes.USD;
  const minute = Math.floor(now / 60_000) * 60_000;
  return {
    market_cap_usd: marketCap,
    volume_24h_usd: volume,
    bitcoin_dominance_percentage: marketCap === 0 ? 0 : round(((bitcoin?.market_cap ?? 0) / marketCap) * 100),
    cryptocurrencies_number: tickers.length,
    // The market as a whole has no history: its all-time high is now.
    market_cap_ath_value: marketCap,
    market_cap_ath_date: formatTime(minute),
    volume_24h_ath_value: volume,
    volume_24h_ath_date: formatTime(minute),
    volume_24h_percent_from_ath: 0,
    volume_24h_percent_to_ath: 0,
    market_cap_change_24h: bitcoin?.market_cap_change_24h ?? 0,
    volume_24h_change_24h: bitcoin?.volume_24h_change_24h ?? 0,
    last_updated: minute / 1_000,
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
