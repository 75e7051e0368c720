/** Markets of coins, and what markets of coins and of exchanges have in common. */
import type { Instant } from '../../clock.ts';
import type { CoinMarket, ExchangeMarket } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { plainKey, plainNumber, plainText, plainTime } from './column-values.ts';
import { keepListed, type ListedTable } from './soft-deleted-list.ts';

/** Of one exchange there may be two markets of a pair: spot, and derivatives. */
export const MARKET_KEYS = ['base_currency_id', 'quote_currency_id', 'pair', 'category'];
export const MARKET_VALUES = ['market_url', 'fee_type', 'outlier', 'price', 'volume_24h', 'updated_at'];

const MARKETS: ListedTable = {
  table: 'coin_market',
  scope: 'coin_id',
  keys: ['coin_id', 'exchange_id', ...MARKET_KEYS],
  values: [...MARKET_VALUES, 'adjusted_volume_24h_share'],
};

export async function writeCoinMarkets(
  sql: SqlOrTransaction,
  {
    coinId,
    markets,
    at,
    isWhole,
  }: {
    readonly coinId: string;
    readonly markets: readonly CoinMarket[];
    readonly at: Instant;
    readonly isWhole: boolean;
  },
): Promise<void> {
  const rows = markets.map((market) => ({
    coin_id: coinId,
    exchange_id: plainKey(market.exchange_id),
    ...marketRow(market),
    adjusted_volume_24h_share: plainNumber(market.adjusted_volume_24h_share),
  }));
  await keepListed(sql, MARKETS, { of: coinId, rows, at, isWhole });
}

export function marketRow(market: CoinMarket | ExchangeMarket) {
  const usd = market.quotes?.USD;
  return {
    base_currency_id: plainKey(market.base_currency_id),
    quote_currency_id: plainKey(market.quote_currency_id),
    pair: plainKey(market.pair),
    category: plainKey(market.category),
    market_url: plainText(market.market_url),
    fee_type: plainText(market.fee_type),
    outlier: market.outlier ?? null,
    price: plainNumber(usd?.price),
    volume_24h: plainNumber(usd?.volume_24h),
    updated_at: plainTime(market.last_updated),
  };
}
