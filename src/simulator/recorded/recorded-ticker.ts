/** The recorded coins: their candles and tickers as they were known at a given instant. */
import type { Instant } from '../../clock.ts';
import type { OhlcvCandle, OhlcvQuery } from '../../contract/record/market-data.ts';
import type { CoinSummary, Ticker, TickerQuote } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { Candle } from '../../core/candle.ts';
import { DAY, HOUR, INTERVAL_MS } from '../../core/interval.ts';
import { dollarsPer } from '../exchange-rates.ts';
import { type Peak, tickerQuote } from '../ticker-quote.ts';
import type { RecordedSeries } from './recorded-series.ts';

type AllSeries = readonly RecordedSeries[];

/** The seed of the exchange rates, which are not recorded. */
export const RATES_SEED = 0;

export const COINS: readonly CoinSummary[] = [
  { id: 'btc-bitcoin', name: 'Bitcoin', symbol: 'BTC', rank: 1, is_new: false, is_active: true, type: 'coin' },
  { id: 'eth-ethereum', name: 'Ethereum', symbol: 'ETH', rank: 2, is_new: false, is_active: true, type: 'coin' },
  { id: 'ltc-litecoin', name: 'Litecoin', symbol: 'LTC', rank: 3, is_new: false, is_active: true, type: 'coin' },
];

/** The candles that had closed at `now`. */
export function recordedCandles(all: AllSeries, query: OhlcvQuery, now: Instant): OhlcvCandle[] {
  const series = query.quote === 'usd' && all.find((s) => s.coinId === query.coinId && s.interval === query.interval);
  if (!series) return [];
  const width = INTERVAL_MS[query.interval];
  return between(series.candles, query.from, Math.min(query.to, now - width) + 1)
    .slice(0, query.limit)
    .map((candle) => ({ ...candle, closeTime: candle.openTime + width - 1_000 }));
}

export function recordedTicker(all: AllSeries, coin: CoinSummary, quotes: readonly string[], now: Instant): Ticker {
  const last = lastClosed(all, coin.id, now);
  const first = Math.min(...all.filter((s) => s.coinId === coin.id).map((s) => s.candles[0]!.openTime));
  const quoteOf = (symbol: string) => recordedQuote(all, coin, symbol, last?.closedAt ?? now);
  return {
    id: coin.id,
    name: coin.name,
    symbol: coin.symbol,
    rank: coin.rank,
    circulating_supply: null,
    total_supply: null,
    max_supply: 0,
    beta_value: null,
    first_data_at: formatTime(first),
    last_updated: last && formatTime(last.closedAt),
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteOf(symbol)])),
  };
}

/** When the newest closed candle of any coin closed; 0 before the first. */
export function lastUpdated(all: AllSeries, now: Instant): Instant {
  return Math.max(0, ...COINS.map((coin) => lastClosed(all, coin.id, now)?.closedAt ?? 0));
}

/** Dollars traded in the day before `at`: the sum of the hours if there are hourly candles, or else the last day. */
export function volumeOfDay(all: AllSeries, coinId: string, at: Instant): number | null {
  for (const interval of ['1h', '24h'] as const) {
    const candles = all.find((s) => s.coinId === coinId && s.interval === interval)?.candles ?? [];
    const day = between(candles, at - DAY, at - INTERVAL_MS[interval] + 1);
    if (day.length > 0) return day.reduce((sum, candle) => sum + candle.volume!, 0);
  }
  return null;
}

function recordedQuote(all: AllSeries, coin: CoinSummary, symbol: string, at: Instant): TickerQuote {
  const closeOf = (coinId: string, when: Instant) => lastClosed(all, coinId, when)?.candle.close ?? null;
  const perUnit = (when: Instant) => {
    const unit = COINS.find((one) => one.symbol === symbol);
    return unit ? closeOf(unit.id, when) : (dollarsPer(symbol, when, RATES_SEED) ?? null);
  };
  const priceAt = (when: Instant) => {
    const close = closeOf(coin.id, when);
    const unitPrice = perUnit(when);
    return close === null || unitPrice === null ? null : close / unitPrice;
  };
  const source = { priceAt, perUnit, volumeAt: (when: Instant) => volumeOfDay(all, coin.id, when), finestMs: HOUR };
  const peak = symbol === 'USD' ? allTimeHigh(all, coin.id, at) : null;
  return tickerQuote(source, at, { marketCapOf: () => null, peak });
}

function allTimeHigh(all: AllSeries, coinId: string, at: Instant): Peak | null {
  let peak: Peak | null = null;
  for (const { candles, interval } of all.filter((series) => series.coinId === coinId)) {
    for (const { openTime, high } of between(candles, 0, at - INTERVAL_MS[interval] + 1)) {
      if (!peak || high! > peak.price) peak = { price: high!, at: openTime };
    }
  }
  return peak;
}

/** The newest candle of a coin that had closed at `at`, from the interval whose candle is newer. */
function lastClosed(all: AllSeries, coinId: string, at: Instant): { closedAt: Instant; candle: Candle } | null {
  let best: { closedAt: Instant; candle: Candle } | null = null;
  for (const series of all.filter((one) => one.coinId === coinId)) {
    const width = INTERVAL_MS[series.interval];
    const candle = series.candles[firstAtOrAfter(series.candles, at - width + 1) - 1];
    if (candle && (!best || candle.openTime + width > best.closedAt))
      best = { closedAt: candle.openTime + width, candle };
  }
  return best;
}

/** The candles that open in `[from, to)`. */
function between(candles: readonly Candle[], from: Instant, to: Instant): readonly Candle[] {
  return candles.slice(firstAtOrAfter(candles, from), firstAtOrAfter(candles, to));
}

function firstAtOrAfter(candles: readonly Candle[], at: Instant): number {
  let low = 0;
  let high = candles.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (candles[middle]!.openTime < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
