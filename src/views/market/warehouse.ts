/** The warehouse as a source of market data. It answers with upstream's data, as upstream would. It never writes. */
import type { Clock } from '../../clock.ts';
import { confirmedNotFound, type NotFound } from '../../contract/answer/not-found.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createCatalogueViews } from './catalogue.ts';
import { createDataVersions, type OnCacheLookup } from './data-versions.ts';
import { createOhlcvView } from './ohlcv.ts';
import { createOverviewViews } from './overview.ts';
import { createPriceHistoryViews } from './price-history.ts';
import { createSearchView } from './search.ts';
import { createTickerViews } from './tickers.ts';

type WarehouseDeps = { readonly sql: Sql; readonly clock: Clock; readonly onCacheLookup?: OnCacheLookup };

export function createWarehouse({ sql, clock, onCacheLookup }: WarehouseDeps): MarketData<NotFound> {
  const versions = createDataVersions(sql, onCacheLookup);
  const { coins, findCoin, noCoin, global, exchanges, exchange } = createOverviewViews({ sql, clock, versions });
  const deps = { sql, clock, versions, noCoin };
  const { ticker, tickers } = createTickerViews(deps);
  const ohlcv = createOhlcvView(deps);
  const { tickerHistory, convert } = createPriceHistoryViews(deps, ticker);
  const findExchange = (exchangeId: string) => exchange({ exchangeId, quotes: ['USD'] });
  const catalogue = createCatalogueViews({ ...deps, findCoin, findExchange });
  return {
    hasProvenance: true,
    tickers,
    coins,
    global,
    exchanges,
    search: createSearchView(deps),
    ...withPossibleIds({ ...catalogue, ohlcv, ticker, exchange, tickerHistory, convert }),
  };
}

/** Postgres accepts no text with the character 0, so no such id exists. A query with one is answered without reading anything. */
function withPossibleIds<T extends Readonly<Record<string, (query: never) => Promise<unknown>>>>(views: T): T {
  const hasNul = (query: unknown) => JSON.stringify(query)?.includes('\\u0000') ?? false;
  const guarded = Object.entries(views).map(([name, view]) => [
    name,
    async (query: never) => (hasNul(query) ? confirmedNotFound(null) : view(query)),
  ]);
  return Object.fromEntries(guarded) as T;
}
