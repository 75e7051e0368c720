/** The recorded market: real candles of bitcoin, ether and litecoin on one exchange, in the upstream's format. Only exchange rates are made up. */
import type { Clock, Instant } from '../../clock.ts';
import type { CoinDetails } from '../../contract/record/catalogue.ts';
import type { Catalogue, MarketData } from '../../contract/record/market-data.ts';
import {
  type CoinSummary,
  type Exchange,
  exchangeSchema,
  type GlobalOverview,
  globalSchema,
  type Ticker,
} from '../../contract/record/records.ts';
import { formatTime, parseTime } from '../../contract/time.ts';
import { convertBy, percentOf, spotMarket, US_DOLLARS } from '../currencies.ts';
import { type CandlesBetween, historyOf } from '../history.ts';
import { find, findCoins, searchable, searchBy } from '../search.ts';
import { type RecordedSeries, readRecordedSeries } from './recorded-series.ts';
import { COINS, lastUpdated, RATES_SEED, recordedCandles, recordedTicker, volumeOfDay } from './recorded-ticker.ts';

type Quotes = readonly string[];
/** The market at the instant of its clock. */
type Now = {
  readonly clock: Clock;
  readonly all: readonly RecordedSeries[];
  ticker(coin: CoinSummary, quotes: Quotes): Ticker;
  exchange(quotes: Quotes): Exchange;
};

/**
 * The candles end in 2020 (`24h`) and 2022 (`1h`), and all of them have closed: none is open at any clock. If the clock is before their end, candles
 * after the clock are not shown. Throws when the data files are missing.
 */
export function createRecordedMarket({
  clock,
  series: all = readRecordedSeries(),
}: {
  clock: Clock;
  /** Series that were already read, so that markets with different clocks can share them. */
  series?: readonly RecordedSeries[];
}): MarketData {
  const now: Now = {
    clock,
    all,
    ticker: (coin, quotes) => recordedTicker(all, coin, quotes, clock.now()),
    exchange: (quotes) => bitstamp(all, quotes, clock.now()),
  };
  return {
    ohlcv: (query) => ofCoin(query.coinId, () => recordedCandles(all, query, clock.now())),
    tickers: async ({ quotes }) => COINS.map((coin) => now.ticker(coin, quotes)),
    ticker: ({ coinId, quotes }) => ofCoin(coinId, (coin) => now.ticker(coin, quotes)),
    coins: async () => COINS,
    global: async () => overview(now),
    exchanges: async ({ quotes }) => [now.exchange(quotes)],
    ...coinCatalogue(now),
    ...exchangeCatalogue(now),
    tags: async () => [],
    tag: async () => null,
    person: async () => null,
    platforms: async () => [],
    contracts: async () => null,
    coinOfContract: async () => null,
    // Ids of other providers are not recorded.
    mapping: async ({ provider, id }) => {
      const coin = provider === 'coinpaprika' ? COINS.find((one) => one.id === id) : undefined;
      const none = { coinmarketcap: '', coingecko: '', cryptocompare: '', isin: '', dti: '', updated_at: '' };
      return coin === undefined ? null : { coinpaprika: id, ...none };
    },
    idChanges: async () => [],
    search: async (query) => {
      const known = COINS.map((coin) => searchable(coin, [coin.symbol, coin.name, coin.id], coin.rank ?? 0));
      const { id, name, adjusted_rank: rank } = now.exchange(['USD']);
      return searchBy(query, {
        currencies: () => findCoins(known, query),
        icos: () => [],
        exchanges: () => find([searchable({ id, name, rank }, [name])], query.q, query.limit),
        people: () => [],
        tags: () => [],
      });
    },
    convert: async (query) => {
      const priced = (coinId: string) => {
        const coin = COINS.find(({ id }) => id === coinId);
        if (!coin) return null;
        const { quotes, last_updated } = now.ticker(coin, ['USD']);
        const at = last_updated === null ? clock.now() : parseTime(last_updated);
        return { name: coin.name, dollars: quotes.USD?.price ?? null, at };
      };
      return convertBy(priced, { ...query, now: clock.now(), seed: RATES_SEED });
    },
  };
}

/** Calls `make` for a recorded coin; null for any other coin. */
async function ofCoin<T>(coinId: string, make: (coin: CoinSummary) => T): Promise<T | null> {
  const coin = COINS.find(({ id }) => id === coinId);
  return coin ? make(coin) : null;
}

function coinCatalogue({ all, clock, ticker, exchange }: Now) {
  const candlesOf = (coinId: string): CandlesBetween => {
    return (interval, from, to, limit) =>
      recordedCandles(all, { coinId, interval, quote: 'usd', from, to: to - 1, limit }, clock.now());
  };
  return {
    coin: (coinId) => ofCoin(coinId, (coin) => detailsOf(coin, ticker(coin, ['USD']))),
    coinEvents: (coinId) => ofCoin(coinId, () => []),
    coinExchanges: (coinId) =>
      ofCoin(coinId, () => {
        const { id, name, fiats } = exchange(['USD']);
        return [{ id, name, fiats, adjusted_volume_24h_share: 100 }];
      }),
    coinMarkets: ({ coinId, quotes }) =>
      ofCoin(coinId, (coin) => {
        const { fields, rest } = marketOf(coin, ticker(coin, quotes));
        const { id, name } = exchange(['USD']);
        return [{ exchange_id: id, exchange_name: name, ...fields, adjusted_volume_24h_share: 100, ...rest }];
      }),
    tickerHistory: (query) =>
      ofCoin(query.coinId, ({ id }) => (query.quote === 'usd' ? historyOf(query, candlesOf(id)) : [])),
  } satisfies Partial<Catalogue>;
}

function exchangeCatalogue({ ticker, exchange }: Now) {
  const volumeOf = (coin: CoinSummary) => ticker(coin, ['USD']).quotes.USD?.volume_24h ?? 0;
  return {
    exchange: async ({ exchangeId, quotes }) => (exchangeId === BITSTAMP ? exchange(quotes) : null),
    exchangeMarkets: async ({ exchangeId, quotes }) => {
      if (exchangeId !== BITSTAMP) return null;
      const total = COINS.reduce((sum, coin) => sum + volumeOf(coin), 0);
      return COINS.map((coin) => {
        const { fields, rest } = marketOf(coin, ticker(coin, quotes));
        return { ...fields, reported_volume_24h_share: percentOf(volumeOf(coin), total), ...rest };
      });
    },
  } satisfies Partial<Catalogue>;
}

function marketOf(coin: CoinSummary, ticker: Ticker) {
  const quotes = Object.entries(ticker.quotes).map(([symbol, { price, volume_24h }]) => [
    symbol,
    { price, volume_24h },
  ]);
  return {
    fields: spotMarket(coin, US_DOLLARS, null),
    rest: { quotes: Object.fromEntries(quotes), last_updated: ticker.last_updated },
  };
}

/** The schema fills every number that is not recorded with null. */
function overview({ all, clock, ticker }: Now): GlobalOverview {
  return globalSchema.parse({
    volume_24h_usd: COINS.reduce((sum, { id }) => sum + (volumeOfDay(all, id, clock.now()) ?? 0), 0),
    cryptocurrencies_number: COINS.length,
    volume_24h_change_24h: ticker(COINS[0]!, ['USD']).quotes.USD!.volume_24h_change_24h,
    last_updated: Math.floor(lastUpdated(all, clock.now()) / 1_000),
  });
}

const BITSTAMP = 'bitstamp';

function bitstamp(all: readonly RecordedSeries[], quotes: readonly string[], now: Instant): Exchange {
  const sum = (symbol: string) => {
    const volumes = COINS.map((coin) => recordedTicker(all, coin, [symbol], now).quotes[symbol]!.volume_24h ?? 0);
    return Math.floor(volumes.reduce((total, volume) => total + volume, 0));
  };
  const quoteOf = (symbol: string) => ({ reported_volume_24h: sum(symbol), adjusted_volume_24h: sum(symbol) });
  return exchangeSchema.parse({
    id: BITSTAMP,
    name: 'Bitstamp',
    type: ['cex', 'spot'],
    active: true,
    website_status: true,
    api_status: true,
    markets_data_fetched: true,
    adjusted_rank: 1,
    reported_rank: 1,
    currencies: COINS.length,
    markets: COINS.length,
    fiats: [{ name: US_DOLLARS.name, symbol: US_DOLLARS.symbol }],
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteOf(symbol)])),
    last_updated: formatTime(lastUpdated(all, now)),
  });
}

/** When each coin began. Other unrecorded values are null. */
const STARTED: Readonly<Record<string, string>> = {
  'btc-bitcoin': '2009-01-03T00:00:00Z',
  'eth-ethereum': '2015-07-30T00:00:00Z',
  'ltc-litecoin': '2011-10-07T00:00:00Z',
};

function detailsOf(coin: CoinSummary, ticker: Ticker): CoinDetails {
  return {
    ...coin,
    tags: [],
    team: [],
    description: null,
    message: '',
    open_source: true,
    started_at: STARTED[coin.id] ?? null,
    development_status: 'Working product',
    hardware_wallet: true,
    proof_type: null,
    org_structure: null,
    hash_algorithm: null,
    links: {},
    links_extended: [],
    first_data_at: ticker.first_data_at,
    last_data_at: ticker.last_updated,
  };
}
