/** The tables of snapshots, except `market.ticker_history`, which is partitioned. */
import { sql } from 'drizzle-orm';
import { boolean, check, doublePrecision, integer, primaryKey, text } from 'drizzle-orm/pg-core';
import { EXCHANGE_VOLUMES } from '../../core/exchange.ts';
import { RATE_CHANGES, TICKER_NUMBERS, type TickerNumber } from '../../core/ticker.ts';
import { instant, jsonb, market } from './columns.ts';

const numbers = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, doublePrecision(name)])) as {
    [name in Name]: ReturnType<typeof doublePrecision<name>>;
  };

export const ticker = market.table('ticker', {
  coinId: text('coin_id').primaryKey(),
  updatedAt: instant('updated_at').notNull(),
  at: instant('at').notNull(),
  rank: integer('rank').notNull(),
  ...numbers<TickerNumber>(TICKER_NUMBERS),
  athAt: instant('ath_at'),
  position: integer('position'),
  answer: text('answer'),
  seenAt: instant('seen_at').notNull(),
});

export const globalHistory = market.table('global_history', {
  at: instant('at').primaryKey(),
  updatedAt: instant('updated_at').notNull(),
  coins: integer('coins'),
  marketCapAthAt: instant('market_cap_ath_at'),
  volume24hAthAt: instant('volume_24h_ath_at'),
  /** The JSON as upstream sent it, if it differs from what `globalRecord` writes. */
  answer: text('answer'),
  marketCap: doublePrecision('market_cap'),
  volume24h: doublePrecision('volume_24h'),
  bitcoinDominance: doublePrecision('bitcoin_dominance'),
  marketCapChange24h: doublePrecision('market_cap_change_24h'),
  volume24hChange24h: doublePrecision('volume_24h_change_24h'),
  marketCapAth: doublePrecision('market_cap_ath'),
  volume24hAth: doublePrecision('volume_24h_ath'),
  volume24hPercentFromAth: doublePrecision('volume_24h_percent_from_ath'),
  volume24hPercentToAth: doublePrecision('volume_24h_percent_to_ath'),
});

const counts = () => ({
  adjustedRank: integer('adjusted_rank'),
  reportedRank: integer('reported_rank'),
  currencies: integer('currencies'),
  markets: integer('markets'),
});

export const exchange = market.table('exchange', {
  id: text('id').primaryKey(),
  updatedAt: instant('updated_at').notNull(),
  at: instant('at').notNull(),
  name: text('name').notNull(),
  types: text('types').array().notNull(),
  isActive: boolean('is_active').notNull(),
  websiteStatus: boolean('website_status').notNull(),
  apiStatus: boolean('api_status').notNull(),
  marketsDataFetched: boolean('markets_data_fetched').notNull(),
  description: text('description'),
  message: text('message'),
  position: integer('position'),
  answer: text('answer'),
  links: jsonb('links').notNull(),
  fiats: jsonb('fiats').notNull(),
  ...counts(),
  ...numbers(EXCHANGE_VOLUMES),
  firstSeenAt: instant('first_seen_at').notNull(),
  lastSeenAt: instant('last_seen_at').notNull(),
});

export const rate = market.table(
  'rate',
  {
    currency: text('currency').notNull(),
    at: instant('at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    price: doublePrecision('price').notNull(),
    ...numbers(RATE_CHANGES),
  },
  (t) => [primaryKey({ columns: [t.currency, t.at] }), check('rate_price', sql`price > 0`)],
);

export const exchangeHistory = market.table(
  'exchange_history',
  {
    exchangeId: text('exchange_id').notNull(),
    at: instant('at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    ...counts(),
    ...numbers(['reported_volume_24h', 'adjusted_volume_24h']),
  },
  (t) => [primaryKey({ columns: [t.exchangeId, t.at] })],
);
