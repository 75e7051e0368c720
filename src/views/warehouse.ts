/** The warehouse as a source of market data: what upstream has told, answered as upstream would. It never writes. */
import type { Clock } from '../clock.ts';
import type { MarketData } from '../contract/market-data.ts';
import type { Sql } from '../store/connect.ts';
import { createCatalogueViews } from './catalogue.ts';
import { createOhlcvView } from './ohlcv.ts';
import { createOverviewViews } from './overview.ts';
import { createPriceHistoryViews } from './price-history.ts';
import { createSearchView } from './search.ts';
import { createTickerViews } from './tickers.ts';
import { createVersions, type OnKept } from './versions.ts';

export type WarehouseDeps = { readonly sql: Sql; readonly clock: Clock; readonly onKept?: OnKept };

export function createWarehouse({ sql, clock, onKept }: WarehouseDeps): MarketData {
  const versions = createVersions(sql, onKept);
  const { ticker, tickers } = createTickerViews({ sql, versions });
  const { coins, findCoin, global, exchanges, exchange } = createOverviewViews({ sql, versions });
  const ohlcv = createOhlcvView({ sql, clock, versions });
  const { tickerHistory, convert } = createPriceHistoryViews({ sql, clock, versions, ticker });
  const findExchange = (exchangeId: string) => exchange({ exchangeId, quotes: ['USD'] });
  const catalogue = createCatalogueViews({ sql, versions, findCoin, findExchange });
  return {
    saysBasis: true,
    ohlcv: async (query) => (isPossible(query.coinId) ? ohlcv(query) : null),
    tickers,
    ticker: async (query) => (isPossible(query.coinId) ? ticker(query) : null),
    coins,
    global,
    exchanges,
    ...catalogue,
    coin: async (id) => (isPossible(id) ? catalogue.coin(id) : null),
    coinEvents: async (id) => (isPossible(id) ? catalogue.coinEvents(id) : null),
    coinExchanges: async (id) => (isPossible(id) ? catalogue.coinExchanges(id) : null),
    coinMarkets: async (query) => (isPossible(query.coinId) ? catalogue.coinMarkets(query) : null),
    exchange: async (query) => (isPossible(query.exchangeId) ? exchange(query) : null),
    exchangeMarkets: async (query) => (isPossible(query.exchangeId) ? catalogue.exchangeMarkets(query) : null),
    tag: async (id) => (isPossible(id) ? catalogue.tag(id) : null),
    person: async (id) => (isPossible(id) ? catalogue.person(id) : null),
    contracts: async (id) => (isPossible(id) ? catalogue.contracts(id) : null),
    coinOfContract: async (query) =>
      isPossible(query.platformId) && isPossible(query.address) ? catalogue.coinOfContract(query) : null,
    tickerHistory: async (query) => (isPossible(query.coinId) ? tickerHistory(query) : null),
    convert: async (query) => (isPossible(query.baseId) && isPossible(query.quoteId) ? convert(query) : null),
    search: createSearchView({ sql, versions }),
  };
}

/** Postgres cannot be asked for a text with the character 0; nothing has such an id. */
function isPossible(id: string): boolean {
  return !id.includes('\0');
}
