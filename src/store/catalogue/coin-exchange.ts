/** Exchanges on which coins are traded. */
import type { Instant } from '../../clock.ts';
import type { CoinExchange } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { plainKey, plainNumber } from './column-values.ts';
import { keepListed, type ListedTable } from './soft-deleted-list.ts';

const EXCHANGES: ListedTable = {
  table: 'coin_exchange',
  scope: 'coin_id',
  keys: ['coin_id', 'exchange_id'],
  values: ['name', 'fiats', 'adjusted_volume_24h_share'],
};

export async function writeCoinExchanges(
  sql: SqlOrTransaction,
  {
    coinId,
    exchanges,
    at,
    isWhole,
  }: {
    readonly coinId: string;
    readonly exchanges: readonly CoinExchange[];
    readonly at: Instant;
    readonly isWhole: boolean;
  },
): Promise<void> {
  const rows = exchanges.map((exchange) => ({
    coin_id: coinId,
    exchange_id: plainKey(exchange.id),
    name: exchange.name,
    fiats: (exchange.fiats ?? []).map((fiat) => fiat.symbol),
    adjusted_volume_24h_share: plainNumber(exchange.adjusted_volume_24h_share),
  }));
  await keepListed(sql, EXCHANGES, { of: coinId, rows, at, isWhole });
}
