/** Markets of exchanges. */
import type { Instant } from '../../clock.ts';
import type { ExchangeMarket } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { MARKET_KEYS, MARKET_VALUES, marketRow } from './coin-market.ts';
import { plainNumber } from './column-values.ts';
import { keepListed, type ListedTable } from './soft-deleted-list.ts';

const MARKETS: ListedTable = {
  table: 'exchange_market',
  scope: 'exchange_id',
  keys: ['exchange_id', ...MARKET_KEYS],
  values: [...MARKET_VALUES, 'reported_volume_24h_share'],
};

export async function writeExchangeMarkets(
  sql: SqlOrTransaction,
  {
    exchangeId,
    markets,
    at,
    isWhole,
  }: {
    readonly exchangeId: string;
    readonly markets: readonly ExchangeMarket[];
    readonly at: Instant;
    readonly isWhole: boolean;
  },
): Promise<void> {
  const rows = markets.map((market) => ({
    exchange_id: exchangeId,
    ...marketRow(market),
    reported_volume_24h_share: plainNumber(market.reported_volume_24h_share),
  }));
  await keepListed(sql, MARKETS, { of: exchangeId, rows, at, isWhole });
}
