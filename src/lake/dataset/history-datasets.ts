/** The datasets of snapshots: each row is a state at an instant. */
import { RATE_CHANGES } from '../../core/ticker.ts';
import { columnsOf, type HistoryDataset } from './dataset.ts';

const list = (names: readonly string[], type: string) => names.map((name) => `${name} ${type}`).join('\n');

export const HISTORIES: readonly HistoryDataset[] = [
  {
    kind: 'history',
    name: 'tickers',
    from: 'market.ticker_history',
    time: 'at',
    months: 1,
    order: 'coin_id collate "C", at',
    coin: 'coin_id',
    columns: columnsOf(`
      coin_id text
      at instant
      updated_at instant
      price double?
      volume_24h double?
      market_cap double?
      circulating_supply double?
      rank integer
    `),
  },
  {
    kind: 'history',
    name: 'global',
    from: 'market.global_history',
    time: 'at',
    months: 12,
    order: 'at',
    columns: columnsOf(`
      at instant
      updated_at instant
      coins integer?
      market_cap double?
      volume_24h double?
      bitcoin_dominance double?
      market_cap_change_24h double?
      volume_24h_change_24h double?
      market_cap_ath double?
      market_cap_ath_at instant?
      volume_24h_ath double?
      volume_24h_ath_at instant?
      volume_24h_percent_from_ath double?
      volume_24h_percent_to_ath double?
    `),
  },
  {
    kind: 'history',
    name: 'exchange_history',
    from: 'market.exchange_history',
    time: 'at',
    months: 12,
    order: 'exchange_id collate "C", at',
    columns: columnsOf(`
      exchange_id text
      at instant
      updated_at instant
      adjusted_rank integer?
      reported_rank integer?
      currencies integer?
      markets integer?
      reported_volume_24h double?
      adjusted_volume_24h double?
    `),
  },
  {
    kind: 'history',
    name: 'rates',
    from: 'market.rate',
    time: 'at',
    months: 12,
    order: 'currency collate "C", at',
    columns: columnsOf(`
      currency text
      at instant
      updated_at instant
      price double
      ${list(RATE_CHANGES, 'double?')}
    `),
  },
];
