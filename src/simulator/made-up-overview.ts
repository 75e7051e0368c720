/** What the made-up market says of itself as a whole: the global overview and its exchanges. */
import type { Instant } from '../clock.ts';
import type { Exchange, GlobalOverview, Ticker } from '../contract/records.ts';
import { formatTime } from '../contract/time.ts';
import { hashText, mix, unit } from './hash.ts';
import type { MadeUpWorld } from './made-up-world.ts';
import { dollarsPer } from './rates.ts';

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
    // A made-up market has no past of its own as a whole: its record is now.
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

const NAMES =
  'Abacus Bellwether Caravel Driftwood Estuary Foundry Galleon Harbour Ironwood Juniper Keystone Lantern'.split(' ');

/** A dozen exchanges that share the market's volume, the first having the most. */
export function madeUpExchanges(
  world: MadeUpWorld,
  tickers: readonly Ticker[],
  quotes: readonly string[],
  now: Instant,
): Exchange[] {
  const volume = madeUpGlobal(tickers, now).volume_24h_usd ?? 0;
  const priceOf = (coinId: string) => tickers.find((ticker) => ticker.id === coinId)?.quotes.USD?.price ?? 1;
  const perUnit = (symbol: string) => dollarsPer(symbol) ?? priceOf(symbol === 'BTC' ? 'btc-bitcoin' : 'eth-ethereum');
  return NAMES.map((name, i) => {
    const key = hashText(world.seed, name);
    const share = (0.5 ** (i + 1) * (1 + unit(mix(key, 1)))) / 2;
    const quoteIn = (symbol: string) => {
      const day = Math.floor((volume * share) / perUnit(symbol));
      const adjusted = Math.floor(day * (0.7 + 0.3 * unit(mix(key, 2))));
      return {
        reported_volume_24h: day,
        adjusted_volume_24h: adjusted,
        reported_volume_7d: day * 7,
        adjusted_volume_7d: adjusted * 7,
        reported_volume_30d: day * 30,
        adjusted_volume_30d: adjusted * 30,
      };
    };
    return {
      id: name.toLowerCase(),
      name,
      type: unit(mix(key, 3)) < 0.7 ? ['cex', 'spot'] : ['dex'],
      active: true,
      website_status: true,
      api_status: true,
      description: null,
      message: null,
      links: { website: [`https://${name.toLowerCase()}.example/`], twitter: [] },
      markets_data_fetched: true,
      adjusted_rank: i + 1,
      reported_rank: i + 1,
      currencies: Math.min(tickers.length, 40 * (NAMES.length - i)),
      markets: Math.min(tickers.length, 40 * (NAMES.length - i)) * 2,
      fiats: [{ name: 'US Dollars', symbol: 'USD' }],
      quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteIn(symbol)])),
      last_updated: formatTime(Math.floor(now / 60_000) * 60_000),
    };
  });
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
