/** The warehouse as a source of market data: what upstream has told, answered as upstream would. It never writes. */
import type { Clock } from '../clock.ts';
import type { Candles } from '../contract/market-data.ts';
import type { Sql } from '../store/connect.ts';
import { createOhlcvView } from './ohlcv.ts';
import { createOverviewViews } from './overview.ts';
import { createTickerViews } from './tickers.ts';
import { createVersions } from './versions.ts';

/** Postgres cannot be asked for a text with the character 0; nothing has such an id. */
function isPossible(id: string): boolean {
  return !id.includes('\0');
}

export function createWarehouse({ sql, clock }: { readonly sql: Sql; readonly clock: Clock }): Candles {
  const versions = createVersions(sql);
  const ohlcv = createOhlcvView({ sql, clock, versions });
  const { ticker, tickers } = createTickerViews({ sql, versions });
  return {
    ohlcv: async (query) => (isPossible(query.coinId) ? ohlcv(query) : null),
    tickers,
    ticker: async (query) => (isPossible(query.coinId) ? ticker(query) : null),
    ...createOverviewViews({ sql, versions }),
  };
}
