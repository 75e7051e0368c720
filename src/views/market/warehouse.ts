/** The warehouse as a source of market data: what upstream has told, answered as upstream would. It never writes. */
import type { Clock } from '../../clock.ts';
import { type Absent, knownAbsent } from '../../contract/answer/not-found.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createCatalogueViews } from './catalogue.ts';
import { createVersions, type OnKept } from './data-versions.ts';
import { createOhlcvView } from './ohlcv.ts';
import { createOverviewViews } from './overview.ts';
import { createPriceHistoryViews } from './price-history.ts';
import { createSearchView } from './search.ts';
import { createTickerViews } from './tickers.ts';

export type WarehouseDeps = { readonly sql: Sql; readonly clock: Clock; readonly onKept?: OnKept };

export function createWarehouse({ sql, clock, onKept }: WarehouseDeps): MarketData<Absent> {
  const versions = createVersions(sql, onKept);
  const { ticker, tickers } = createTickerViews({ sql, versions });
  const { coins, findCoin, noCoin, global, exchanges, exchange } = createOverviewViews({ sql, versions });
  const ohlcv = createOhlcvView({ sql, clock, versions, noCoin });
  const { tickerHistory, convert } = createPriceHistoryViews({ sql, clock, versions, ticker, noCoin });
  const findExchange = (exchangeId: string) => exchange({ exchangeId, quotes: ['USD'] });
  const catalogue = createCatalogueViews({ sql, versions, findCoin, noCoin, findExchange });
  return {
    saysBasis: true,
    ohlcv: async (query) => (isPossible(query.coinId) ? ohlcv(query) : IMPOSSIBLE),
    tickers,
    ticker: async (query) => (isPossible(query.coinId) ? ticker(query) : IMPOSSIBLE),
    coins,
    global,
    exchanges,
    ...catalogue,
    coin: async (id) => (isPossible(id) ? catalogue.coin(id) : IMPOSSIBLE),
    coinEvents: async (id) => (isPossible(id) ? catalogue.coinEvents(id) : IMPOSSIBLE),
    coinExchanges: async (id) => (isPossible(id) ? catalogue.coinExchanges(id) : IMPOSSIBLE),
    coinMarkets: async (query) => (isPossible(query.coinId) ? catalogue.coinMarkets(query) : IMPOSSIBLE),
    exchange: async (query) => (isPossible(query.exchangeId) ? exchange(query) : IMPOSSIBLE),
    exchangeMarkets: async (query) => (isPossible(query.exchangeId) ? catalogue.exchangeMarkets(query) : IMPOSSIBLE),
    tag: async (id) => (isPossible(id) ? catalogue.tag(id) : IMPOSSIBLE),
    person: async (id) => (isPossible(id) ? catalogue.person(id) : IMPOSSIBLE),
    contracts: async (id) => (isPossible(id) ? catalogue.contracts(id) : IMPOSSIBLE),
    coinOfContract: async (query) =>
      isPossible(query.platformId) && isPossible(query.address) ? catalogue.coinOfContract(query) : IMPOSSIBLE,
    tickerHistory: async (query) => (isPossible(query.coinId) ? tickerHistory(query) : IMPOSSIBLE),
    convert: async (query) => (isPossible(query.baseId) && isPossible(query.quoteId) ? convert(query) : IMPOSSIBLE),
    search: createSearchView({ sql, versions }),
  };
}

const IMPOSSIBLE = knownAbsent(null);

/** Postgres cannot be asked for a text with the character 0; nothing has such an id. */
function isPossible(id: string): boolean {
  return !id.includes('\0');
}
