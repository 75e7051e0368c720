/** The recorded market: real candles of bitcoin, ether and litecoin, answered as the upstream would. */
import type { Clock, Instant } from '../../clock.ts';
import type { MarketData, OhlcvCandle, OhlcvQuery } from '../../contract/record/market-data.ts';
import type { CoinSummary, Exchange, Ticker, TickerQuote } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { Candle } from '../../core/candle.ts';
import { DAY, HOUR, INTERVAL_MS } from '../../core/interval.ts';
import { dollarsPer } from '../rates.ts';
import { recordedCatalogue } from './recorded-catalogue.ts';
import { type RecordedSeries, readRecordedSeries } from './recorded-series.ts';

const COINS: readonly CoinSummary[] = [
  { id: 'btc-bitcoin', name: 'Bitcoin', symbol: 'BTC', rank: 1, is_new: false, is_active: true, type: 'coin' },
  { id: 'eth-ethereum', name: 'Ethereum', symbol: 'ETH', rank: 2, is_new: false, is_active: true, type: 'coin' },
  { id: 'ltc-litecoin', name: 'Litecoin', symbol: 'LTC', rank: 3, is_new: false, is_active: true, type: 'coin' },
];

/**
 * Its candles end in 2020 (`24h`) and 2022 (`1h`), and every one of them has closed: whatever the clock says, none is open.
 * On a clock that lies before their end, those of its future are not shown. Throws when the data files are missing.
 */
export function createRecordedMarket({
  clock,
  series: all = readRecordedSeries(),
}: {
  clock: Clock;
  /** What was read before, to be shared by markets with different clocks. */
  series?: readonly RecordedSeries[];
}): MarketData {
  const find = (coinId: string) => COINS.find((coin) => coin.id === coinId);
  const tickerOf = (coin: CoinSummary, quotes: readonly string[]) => recordedTicker(all, coin, quotes, clock.now());
  return {
    ohlcv: async (query) => (find(query.coinId) ? candlesOf(all, query, clock.now()) : null),
    tickers: async ({ quotes }) => COINS.map((coin) => tickerOf(coin, quotes)),
    ticker: async ({ coinId, quotes }) => {
      const coin = find(coinId);
      return coin ? tickerOf(coin, quotes) : null;
    },
    coins: async () => COINS,
    global: async () => {
      const volume = COINS.reduce((sum, { id }) => sum + (volumeOfDay(all, id, clock.now()) ?? 0), 0);
      const bitcoin = tickerOf(COINS[0]!, ['USD']).quotes.USD!;
      return {
        market_cap_usd: null,
        volume_24h_usd: volume,
        bitcoin_dominance_percentage: null,
        cryptocurrencies_number: COINS.length,
        market_cap_ath_value: null,
        market_cap_ath_date: null,
        volume_24h_ath_value: null,
        volume_24h_ath_date: null,
        volume_24h_percent_from_ath: null,
        volume_24h_percent_to_ath: null,
        market_cap_change_24h: null,
        volume_24h_change_24h: bitcoin.volume_24h_change_24h,
        last_updated: Math.floor(lastUpdated(all, clock.now()) / 1_000),
      };
    },
    exchanges: async ({ quotes }) => [bitstamp(all, quotes, clock.now())],
    ...recordedCatalogue({
      clock,
      coins: COINS,
      candlesOf: (coinId) => (interval, from, to, limit) =>
        candlesOf(all, { coinId, interval, quote: 'usd', from, to: to - 1, limit }, clock.now()),
      tickerOf,
      exchangeOf: (quotes) => bitstamp(all, quotes, clock.now()),
    }),
  };
}

function candlesOf(all: readonly RecordedSeries[], query: OhlcvQuery, now: Instant): OhlcvCandle[] {
  const series = query.quote === 'usd' && all.find((s) => s.coinId === query.coinId && s.interval === query.interval);
  if (!series) return [];
  const width = INTERVAL_MS[query.interval];
  const last = Math.min(query.to, now - width);
  const out: OhlcvCandle[] = [];
  for (let i = firstAtOrAfter(series.candles, query.from); i < series.candles.length && out.length < query.limit; i++) {
    const candle = series.candles[i]!;
    if (candle.openTime > last) break;
    out.push({ ...candle, closeTime: candle.openTime + width - 1_000 });
  }
  return out;
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

/** The newest candle of a coin that had closed at `at`, of whichever width is newer. */
function lastClosed(
  all: readonly RecordedSeries[],
  coinId: string,
  at: Instant,
): { closedAt: Instant; candle: Candle } | null {
  let best: { closedAt: Instant; candle: Candle } | null = null;
  for (const series of all) {
    if (series.coinId !== coinId) continue;
    const width = INTERVAL_MS[series.interval];
    const candle = series.candles[firstAtOrAfter(series.candles, at - width + 1) - 1];
    if (candle && (!best || candle.openTime + width > best.closedAt))
      best = { closedAt: candle.openTime + width, candle };
  }
  return best;
}

function lastUpdated(all: readonly RecordedSeries[], now: Instant): Instant {
  return Math.max(0, ...COINS.map((coin) => lastClosed(all, coin.id, now)?.closedAt ?? 0));
}

function recordedTicker(
  all: readonly RecordedSeries[],
  coin: CoinSummary,
  quotes: readonly string[],
  now: Instant,
): Ticker {
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

function recordedQuote(all: readonly RecordedSeries[], coin: CoinSummary, symbol: string, at: Instant): TickerQuote {
  const perUnit = (when: Instant) => {
    if (symbol === 'BTC') return lastClosed(all, 'btc-bitcoin', when)?.candle.close ?? null;
    if (symbol === 'ETH') return lastClosed(all, 'eth-ethereum', when)?.candle.close ?? null;
    return dollarsPer(symbol) ?? null;
  };
  const priceAt = (when: Instant) => {
    const close = lastClosed(all, coin.id, when)?.candle.close ?? null;
    const by = perUnit(when);
    return close === null || by === null ? null : close / by;
  };
  const price = priceAt(at);
  const change = (ms: number) => percentChange(priceAt(at - ms), price);
  const volume = volumeOfDay(all, coin.id, at);
  const by = perUnit(at);
  return {
    price,
    volume_24h: volume === null || by === null ? null : volume / by,
    volume_24h_change_24h: percentChange(volumeOfDay(all, coin.id, at - DAY), volume),
    market_cap: null,
    market_cap_change_24h: null,
    percent_change_15m: null,
    percent_change_30m: null,
    percent_change_1h: change(HOUR),
    percent_change_6h: change(6 * HOUR),
    percent_change_12h: change(12 * HOUR),
    percent_change_24h: change(DAY),
    percent_change_7d: change(7 * DAY),
    percent_change_30d: change(30 * DAY),
    percent_change_1y: change(365 * DAY),
    ...allTimeHigh(symbol === 'USD' ? all.filter((s) => s.coinId === coin.id) : [], at, price),
  };
}

function allTimeHigh(series: readonly RecordedSeries[], at: Instant, price: number | null) {
  let top: Candle | null = null;
  for (const { candles, interval } of series) {
    for (const candle of candles) {
      if (candle.openTime + INTERVAL_MS[interval] > at) break;
      if (!top || candle.high! > top.high!) top = candle;
    }
  }
  return {
    ath_price: top?.high ?? null,
    ath_date: top && formatTime(top.openTime),
    percent_from_price_ath: percentChange(top?.high ?? null, price),
  };
}

/** Dollars traded in the day before `at`: of the hours where there are hours, else of the last day. */
function volumeOfDay(all: readonly RecordedSeries[], coinId: string, at: Instant): number | null {
  for (const interval of ['1h', '24h'] as const) {
    const candles = all.find((s) => s.coinId === coinId && s.interval === interval)?.candles ?? [];
    const until = firstAtOrAfter(candles, at - INTERVAL_MS[interval] + 1);
    const day = candles.slice(firstAtOrAfter(candles, at - DAY), until);
    if (day.length > 0) return day.reduce((sum, candle) => sum + candle.volume!, 0);
  }
  return null;
}

function bitstamp(all: readonly RecordedSeries[], quotes: readonly string[], now: Instant): Exchange {
  const sum = (symbol: string) => {
    const volumes = COINS.map((coin) => recordedTicker(all, coin, [symbol], now).quotes[symbol]!.volume_24h ?? 0);
    return Math.floor(volumes.reduce((total, volume) => total + volume, 0));
  };
  const quoteOf = (symbol: string) => ({
    reported_volume_24h: sum(symbol),
    adjusted_volume_24h: sum(symbol),
    reported_volume_7d: null,
    adjusted_volume_7d: null,
    reported_volume_30d: null,
    adjusted_volume_30d: null,
  });
  return {
    id: 'bitstamp',
    name: 'Bitstamp',
    type: ['cex', 'spot'],
    active: true,
    website_status: true,
    api_status: true,
    description: null,
    message: null,
    links: {},
    markets_data_fetched: true,
    adjusted_rank: 1,
    reported_rank: 1,
    currencies: COINS.length,
    markets: COINS.length,
    fiats: [{ name: 'US Dollars', symbol: 'USD' }],
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteOf(symbol)])),
    last_updated: formatTime(lastUpdated(all, now)),
  };
}

function percentChange(from: number | null, to: number | null): number | null {
  return from === null || to === null || from === 0 ? null : Math.round((to / from - 1) * 10_000) / 100;
}
