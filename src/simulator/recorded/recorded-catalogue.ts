/** The catalogue of the recorded market: little was written down, and nothing is added to it. Three coins, one exchange, three markets. */
import type { Clock } from '../../clock.ts';
import type { CoinDetails, CoinExchange } from '../../contract/record/catalogue.ts';
import type { Catalogue } from '../../contract/record/market-data.ts';
import type { CoinSummary, Exchange, Ticker } from '../../contract/record/records.ts';
import { parseTime } from '../../contract/time.ts';
import { convertBy } from '../convert.ts';
import { type CandlesBetween, historyOf } from '../history.ts';
import { find } from '../search.ts';

export type RecordedParts = {
  readonly clock: Clock;
  readonly coins: readonly CoinSummary[];
  /** In US dollars, which is all there is. */
  candlesOf(coinId: string): CandlesBetween;
  tickerOf(coin: CoinSummary, quotes: readonly string[]): Ticker;
  exchangeOf(quotes: readonly string[]): Exchange;
};

const US_DOLLARS = { id: 'usd-us-dollars', name: 'US Dollars', symbol: 'USD' };

export function recordedCatalogue({ clock, coins, candlesOf, tickerOf, exchangeOf }: RecordedParts): Catalogue {
  const about = async <T>(coinId: string, make: (coin: CoinSummary) => T): Promise<T | null> => {
    const coin = coins.find(({ id }) => id === coinId);
    return coin ? make(coin) : null;
  };
  const isExchange = (exchangeId: string) => exchangeOf(['USD']).id === exchangeId;
  const exchangeRow = (): CoinExchange => {
    const { id, name, fiats } = exchangeOf(['USD']);
    return { id, name, fiats, adjusted_volume_24h_share: 100 };
  };
  const marketOf = (coin: CoinSummary, quotes: readonly string[]) => {
    const ticker = tickerOf(coin, quotes);
    return {
      fields: {
        pair: `${coin.symbol}/USD`,
        base_currency_id: coin.id,
        base_currency_name: coin.name,
        quote_currency_id: US_DOLLARS.id,
        quote_currency_name: US_DOLLARS.name,
        market_url: null,
        category: 'Spot',
        fee_type: 'Percentage',
        outlier: false,
      },
      rest: {
        quotes: Object.fromEntries(
          Object.entries(ticker.quotes).map(([symbol, { price, volume_24h }]) => [symbol, { price, volume_24h }]),
        ),
        last_updated: ticker.last_updated,
      },
    };
  };
  const volumeOf = (coin: CoinSummary) => tickerOf(coin, ['USD']).quotes.USD?.volume_24h ?? 0;

  return {
    coin: (coinId) => about(coinId, (coin) => detailsOf(coin, tickerOf(coin, ['USD']))),
    coinEvents: (coinId) => about(coinId, () => []),
    coinExchanges: (coinId) => about(coinId, () => [exchangeRow()]),
    coinMarkets: ({ coinId, quotes }) =>
      about(coinId, (coin) => {
        const { fields, rest } = marketOf(coin, quotes);
        const { id, name } = exchangeOf(['USD']);
        return [{ exchange_id: id, exchange_name: name, ...fields, adjusted_volume_24h_share: 100, ...rest }];
      }),
    tickerHistory: (query) =>
      about(query.coinId, ({ id }) => (query.quote === 'usd' ? historyOf(query, candlesOf(id)) : [])),
    exchange: async ({ exchangeId, quotes }) => (isExchange(exchangeId) ? exchangeOf(quotes) : null),
    exchangeMarkets: async ({ exchangeId, quotes }) => {
      if (!isExchange(exchangeId)) return null;
      const total = coins.reduce((sum, coin) => sum + volumeOf(coin), 0);
      return coins.map((coin) => {
        const { fields, rest } = marketOf(coin, quotes);
        const share = total === 0 ? 0 : Math.round((volumeOf(coin) / total) * 1e8) / 1e6;
        return { ...fields, reported_volume_24h_share: share, ...rest };
      });
    },
    tags: async () => [],
    tag: async () => null,
    person: async () => null,
    platforms: async () => [],
    contracts: async () => null,
    coinOfContract: async () => null,
    search: async ({ q, categories, symbolOnly, limit }) => {
      const wants = (category: (typeof categories)[number]) =>
        categories.includes(category) && (category === 'currencies' || !symbolOnly);
      const words = ({ id, name, symbol }: CoinSummary) => [symbol, name, id].map((word) => word.toLowerCase());
      const candidates = coins.filter(({ symbol }) => !symbolOnly || symbol.toLowerCase() === q.trim().toLowerCase());
      const { id, name, adjusted_rank: rank } = exchangeOf(['USD']);
      const exchange = { item: { id, name, rank }, words: [name.toLowerCase()], rank: 1 };
      return {
        ...(wants('currencies') && {
          currencies: find(
            candidates.map((coin) => ({ item: coin, words: words(coin), rank: coin.rank ?? 0 })),
            q,
            limit,
          ),
        }),
        ...(wants('icos') && { icos: [] }),
        ...(wants('exchanges') && { exchanges: find([exchange], q, limit) }),
        ...(wants('people') && { people: [] }),
        ...(wants('tags') && { tags: [] }),
      };
    },
    convert: async (query) => {
      const now = clock.now();
      const priced = (coinId: string) => {
        const coin = coins.find(({ id }) => id === coinId);
        if (!coin) return null;
        const { quotes, last_updated } = tickerOf(coin, ['USD']);
        return {
          name: coin.name,
          dollars: quotes.USD?.price ?? null,
          at: last_updated === null ? now : parseTime(last_updated),
        };
      };
      return convertBy(priced, { ...query, now });
    },
    idChanges: async () => [],
  };
}

/** What is generally known of the three; what nobody wrote down is null. */
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
