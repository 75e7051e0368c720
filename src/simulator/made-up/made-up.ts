/** The made-up market: a seeded, consistent world of coins. It answers like the upstream at any instant of its clock. */
import type { Clock, Instant } from '../../clock.ts';
import type { MarketData, OhlcvCandle, OhlcvQuery } from '../../contract/record/market-data.ts';
import type { CoinSummary, GlobalOverview, Ticker } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { ceilToGrid, DAY, floorToGrid, INTERVAL_MS } from '../../core/interval.ts';
import { hashText, mix, unit } from '../hash.ts';
import { append, type Bar, barUntil, toCandle, visitBars } from './made-up-candle.ts';
import { createMadeUpCatalogue } from './made-up-catalogue.ts';
import { createMadeUpExchanges } from './made-up-exchanges.ts';
import { madeUpTicker } from './made-up-ticker.ts';
import type { MadeUpCoin, MadeUpSeries, MadeUpWorld } from './made-up-world.ts';
import { memoPerMinute } from './memo.ts';

/** The share `rate` of closed candles that first have other values, and get their final values `afterMs` after the close. */
export type Revisions = { readonly rate: number; readonly afterMs: number };

export function createMadeUpMarket({
  world,
  clock,
  revisions,
}: {
  world: MadeUpWorld;
  clock: Clock;
  revisions?: Revisions;
}): MarketData {
  const known = (coinId: string): MadeUpCoin | null => {
    const coin = world.find(coinId);
    return coin && coin.start < clock.now() ? coin : null;
  };
  const active = () => {
    const now = clock.now();
    return world.coins.filter((coin) => coin.start < now && now < coin.end);
  };
  const allTickers = memoPerMinute((quotes: string, now) =>
    active().map((coin) => madeUpTicker(world, coin, quotes.split(','), now)),
  );
  const tickers = (quotes: readonly string[]) => allTickers(quotes.join(), clock.now());
  const exchanges = createMadeUpExchanges(world);
  const catalogue = createMadeUpCatalogue({
    world,
    clock,
    exchanges,
    summaryOf,
    candlesOf: (coin, quote, now) => (interval, from, to, limit) =>
      candlesAt(
        world.series(coin, quote),
        { coinId: coin.id, quote, interval, from, to: to - 1, limit },
        now,
        revisions,
      ),
  });
  return {
    ...catalogue,
    ohlcv: async (query) => {
      const coin = known(query.coinId);
      return coin && candlesAt(world.series(coin, query.quote), query, clock.now(), revisions);
    },
    tickers: async ({ quotes }) => tickers(quotes),
    ticker: async ({ coinId, quotes }) => {
      const coin = known(coinId);
      return coin && clock.now() < coin.end ? madeUpTicker(world, coin, quotes, clock.now()) : null;
    },
    coins: async () => {
      const now = clock.now();
      return world.coins.filter((coin) => coin.start < now).map((coin) => summaryOf(coin, now));
    },
    global: async () => madeUpGlobal(tickers(['USD']), clock.now()),
    exchanges: async ({ quotes }) => exchanges.all(quotes, clock.now()),
  };
}

/** The candles of a query as they are known at `now`; the last one may still be open. */
function candlesAt(series: MadeUpSeries, query: OhlcvQuery, now: Instant, revisions?: Revisions): OhlcvCandle[] {
  const { interval, from, to, limit } = query;
  const width = INTERVAL_MS[interval];
  const out: OhlcvCandle[] = [];
  visitBars(series, interval, from, Math.min(to, now - width), (openTime, bar) => {
    const early = revisions && isPreliminary(series, query, openTime, now, revisions);
    out.push(toCandle(series.coin, openTime, openTime + width - 1_000, early ? preliminary(bar) : bar));
    return out.length < limit;
  });
  const open = floorToGrid(now, interval);
  // At the instant when a slot opens, nothing has happened in it yet.
  if (out.length < limit && open >= from && open <= to && open < now) {
    const bar = openBar(series, open, now);
    if (bar) {
      const closeTime = Math.min(Math.ceil(now / 60_000) * 60_000, open + width - 1_000);
      out.push(toCandle(series.coin, open, closeTime, bar));
    }
  }
  return out;
}

function openBar(series: MadeUpSeries, open: Instant, now: Instant): Bar | null {
  let whole: Bar | null = null;
  visitBars(series, '5m', open, ceilToGrid(now, '5m') - 1, (at, bar) => {
    const part = barUntil(series.coin, bar, at, now);
    whole = whole ? append(whole, part) : part;
    return true;
  });
  return whole;
}

function isPreliminary(
  { coin, quote }: MadeUpSeries,
  { interval }: OhlcvQuery,
  openTime: Instant,
  now: Instant,
  { rate, afterMs }: Revisions,
): boolean {
  const width = INTERVAL_MS[interval];
  return (
    now < openTime + width + afterMs && unit(mix(hashText(coin.key, `${quote} ${interval}`), openTime / 60_000)) < rate
  );
}

/** The first values of a bar that is revised later: plausible, but wrong. */
function preliminary(bar: Bar): Bar {
  const close = bar.low + (bar.high - bar.low) * unit(mix(bar.key, 51));
  return { ...bar, close, volume: bar.volume < 0 ? -1 : Math.floor(bar.volume * 0.97) };
}

function summaryOf(coin: MadeUpCoin, now: Instant): CoinSummary {
  const isActive = now < coin.end;
  return {
    id: coin.id,
    name: coin.name,
    symbol: coin.symbol,
    rank: isActive ? coin.index + 1 : 0,
    is_new: now - coin.start < 5 * DAY,
    is_active: isActive,
    type: coin.type,
  };
}

/** Sums of the tickers, which must have a USD quote. */
function madeUpGlobal(tickers: readonly Ticker[], now: Instant): GlobalOverview {
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
    // The whole market has no history: its all-time high is now.
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
