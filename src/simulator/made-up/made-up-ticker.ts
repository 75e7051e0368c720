/** Tickers of the made-up market: the price is the close of the candle that is open now. */
import type { Instant } from '../../clock.ts';
import type { Ticker, TickerQuote } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { Quote } from '../../core/candle.ts';
import { DAY, HOUR, MINUTE } from '../../core/interval.ts';
import { dollarsPer } from '../exchange-rates.ts';
import { type Peak, tickerQuote } from '../ticker-quote.ts';
import { lastBarBefore, visitBars } from './made-up-candle.ts';
import type { MadeUpCoin, MadeUpSeries, MadeUpWorld } from './made-up-world.ts';

export function madeUpTicker(world: MadeUpWorld, coin: MadeUpCoin, quotes: readonly string[], now: Instant): Ticker {
  return {
    id: coin.id,
    name: coin.name,
    symbol: coin.symbol,
    rank: coin.index + 1,
    circulating_supply: coin.supply,
    total_supply: coin.supply,
    max_supply: coin.index === 0 ? 21_000_000 : 0,
    beta_value: Math.round((0.5 + coin.volatility * 10) * 1e6) / 1e6,
    first_data_at: formatTime(coin.start),
    last_updated: formatTime(Math.floor(now / MINUTE) * MINUTE),
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteOf(world, coin, symbol, now)])),
  };
}

function quoteOf(world: MadeUpWorld, coin: MadeUpCoin, symbol: string, now: Instant): TickerQuote {
  const inDollars = symbol === 'USD';
  return tickerQuote(pricesIn(world, coin, symbol), now, {
    marketCapOf: (price) => (inDollars ? Math.floor(price * coin.supply) : price * coin.supply),
    peak: inDollars ? allTimeHigh(world.series(coin, 'usd'), now) : null,
  });
}

function pricesIn(world: MadeUpWorld, coin: MadeUpCoin, symbol: string) {
  const quote: Quote = symbol === 'BTC' ? 'btc' : 'usd';
  const series = world.series(coin, quote);
  // In quotes other than usd and btc, a price is the dollar price divided by the dollars for one unit.
  const perUnit = (at: Instant) =>
    symbol === 'ETH' ? dollarsNow(world, 'ETH', at) : (dollarsPer(symbol, at, world.seed) ?? 1);
  const priceAt = (at: Instant): number | null => {
    const last = lastBarBefore(series, at);
    return last && last.bar.close / perUnit(at);
  };
  return { perUnit, priceAt, volumeAt: (at: Instant) => volumeOfDay(series, at), finestMs: 5 * MINUTE };
}

/** The price of a coin, and its volume of a day, as its ticker has them. */
export type Spot = { readonly price: number | null; readonly volume: number | null };

export function spotOf(world: MadeUpWorld, coin: MadeUpCoin, symbol: string, now: Instant): Spot {
  const { perUnit, priceAt, volumeAt } = pricesIn(world, coin, symbol);
  const volume = volumeAt(now);
  return { price: priceAt(now), volume: volume === null ? null : volume / perUnit(now) };
}

/** Dollars for one unit of `BTC` or `ETH`. */
export function dollarsNow(world: MadeUpWorld, symbol: string, now: Instant): number {
  const coin = symbol === 'ETH' ? (world.coins[1] ?? world.coins[0]!) : world.coins[0]!;
  return lastBarBefore(world.series(coin, 'usd'), now)?.bar.close ?? 1;
}

/** The volume of the 24 hour candles before the current one; null when the volume of each is null. */
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

/** The highest closed day near the highest of every 64th day, or the part of today so far: close to the true maximum, and cheap. */
function allTimeHigh(series: MadeUpSeries, now: Instant): Peak | null {
  const best = peakOfDays(series, Math.floor(now / DAY) * DAY);
  const today = lastBarBefore(series, now);
  if (today && (!best || today.bar.high > best.price)) return { price: today.bar.high, at: today.openTime };
  return best;
}

/** The peak of the days before today, in dollars. It is cached for the day, because it is most of the work of a ticker. */
const peaks = new WeakMap<MadeUpCoin, { readonly today: Instant; readonly peak: Peak | null }>();

function peakOfDays(series: MadeUpSeries, today: Instant): Peak | null {
  const known = peaks.get(series.coin);
  if (known?.today === today) return known.peak;
  const peak = findPeak(series, today);
  peaks.set(series.coin, { today, peak });
  return peak;
}

function findPeak(series: MadeUpSeries, today: Instant): Peak | null {
  let best: Peak | null = null;
  const look = (from: Instant, to: Instant) =>
    visitBars(series, '24h', from, Math.min(to, today - DAY), (at, bar) => {
      if (!best || bar.high > best.price) best = { price: bar.high, at };
      return true;
    });
  const first = Math.floor(series.coin.start / DAY) * DAY;
  for (let at = first; at < today; at += COARSE_DAYS * DAY) look(at, at);
  const top = best as Peak | null;
  if (top) look(top.at - COARSE_DAYS * DAY, top.at + COARSE_DAYS * DAY);
  return best;
}
