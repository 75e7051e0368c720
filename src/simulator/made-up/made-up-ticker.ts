/** Tickers of the made-up market: the price is the close of the candle that is open now. */
import type { Instant } from '../../clock.ts';
import type { Ticker, TickerQuote } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { Quote } from '../../core/candle.ts';
import { DAY, HOUR } from '../../core/interval.ts';
import { dollarsPer } from '../rates.ts';
import { lastBarBefore, type MadeUpSeries, visitBars } from './made-up-candle.ts';
import type { MadeUpCoin } from './made-up-coin.ts';
import type { MadeUpWorld } from './made-up-world.ts';

const MINUTE = 60_000;

export function madeUpTicker(world: MadeUpWorld, coin: MadeUpCoin, quotes: readonly string[], now: Instant): Ticker {
  return {
    id: coin.id,
    name: coin.name,
    symbol: coin.symbol,
    rank: coin.index + 1,
    circulating_supply: coin.supply,
    total_supply: coin.supply,
    max_supply: coin.index === 0 ? 21_000_000 : 0,
    beta_value: round(0.5 + coin.volatility * 10, 6),
    first_data_at: formatTime(coin.start),
    last_updated: formatTime(Math.floor(now / MINUTE) * MINUTE),
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteOf(world, coin, symbol, now)])),
  };
}

function quoteOf(world: MadeUpWorld, coin: MadeUpCoin, symbol: string, now: Instant): TickerQuote {
  const { series, perUnit, priceAt } = pricesIn(world, coin, symbol);
  const price = priceAt(now);
  const change = (ms: number) => percentChange(priceAt(now - ms), price);
  const volume = volumeOfDay(series, now);
  const marketCap = price === null ? null : price * coin.supply;
  const change24h = change(DAY);
  const ath = symbol === 'USD' ? allTimeHigh(series, now) : null;
  return {
    price,
    volume_24h: volume === null ? null : volume / perUnit(now),
    volume_24h_change_24h: percentChange(volumeOfDay(series, now - DAY), volume),
    market_cap: marketCap !== null && symbol === 'USD' ? Math.floor(marketCap) : marketCap,
    market_cap_change_24h: change24h,
    percent_change_15m: change(15 * MINUTE),
    percent_change_30m: change(30 * MINUTE),
    percent_change_1h: change(HOUR),
    percent_change_6h: change(6 * HOUR),
    percent_change_12h: change(12 * HOUR),
    percent_change_24h: change24h,
    percent_change_7d: change(7 * DAY),
    percent_change_30d: change(30 * DAY),
    percent_change_1y: change(365 * DAY),
    ath_price: ath?.price ?? null,
    ath_date: ath && formatTime(ath.at),
    percent_from_price_ath: ath && percentChange(ath.price, price),
  };
}

function pricesIn(world: MadeUpWorld, coin: MadeUpCoin, symbol: string) {
  const quote: Quote = symbol === 'BTC' ? 'btc' : 'usd';
  const series = world.series(coin, quote);
  // Anything but usd and btc is the dollar price over what one unit costs in dollars.
  const perUnit = (at: Instant) => (symbol === 'ETH' ? dollarsNow(world, 'ETH', at) : (dollarsPer(symbol) ?? 1));
  const priceAt = (at: Instant): number | null => {
    const last = lastBarBefore(series, at);
    return last && last.bar.close / perUnit(at);
  };
  return { series, perUnit, priceAt };
}

/** What a coin costs, and what was traded of it in a day; as its ticker says. */
export type Spot = { readonly price: number | null; readonly volume: number | null };

export function spotOf(world: MadeUpWorld, coin: MadeUpCoin, symbol: string, now: Instant): Spot {
  const { series, perUnit, priceAt } = pricesIn(world, coin, symbol);
  const volume = volumeOfDay(series, now);
  return { price: priceAt(now), volume: volume === null ? null : volume / perUnit(now) };
}

/** Dollars for one unit of `BTC` or `ETH`. */
export function dollarsNow(world: MadeUpWorld, symbol: string, now: Instant): number {
  const coin = symbol === 'ETH' ? (world.coins[1] ?? world.coins[0]!) : world.coins[0]!;
  return lastBarBefore(world.series(coin, 'usd'), now)?.bar.close ?? 1;
}

/** Of the 24 hour candles before the current one; null where all of them are. */
function volumeOfDay(series: MadeUpSeries, now: Instant): number | null {
  const hour = Math.floor(now / HOUR) * HOUR;
  let sum: number | null = null;
  visitBars(series, '1h', hour - DAY, hour - 1, (_, bar) => {
    if (bar.volume >= 0) sum = (sum ?? 0) + bar.volume;
    return true;
  });
  return sum;
}

const COARSE_DAYS = 64;

/** The highest closed day near the highest of every 64th one: the top of the mountain, if not always its highest stone. */
function allTimeHigh(series: MadeUpSeries, now: Instant): { price: number; at: Instant } | null {
  let best: { price: number; at: Instant } | null = null;
  const look = (from: Instant, to: Instant) =>
    visitBars(series, '24h', from, Math.min(to, now - DAY), (at, bar) => {
      if (!best || bar.high > best.price) best = { price: bar.high, at };
      return true;
    });
  const first = Math.floor(series.coin.start / DAY) * DAY;
  for (let at = first; at < now; at += COARSE_DAYS * DAY) look(at, at);
  const top = best as { price: number; at: Instant } | null;
  if (top) look(top.at - COARSE_DAYS * DAY, top.at + COARSE_DAYS * DAY);
  const today = lastBarBefore(series, now);
  if (today && (!best || today.bar.high > (best as { price: number }).price)) {
    best = { price: today.bar.high, at: today.openTime };
  }
  return best;
}

function percentChange(from: number | null, to: number | null): number | null {
  return from === null || to === null || from === 0 ? null : round((to / from - 1) * 100, 2);
}

function round(value: number, digits: number): number {
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}
