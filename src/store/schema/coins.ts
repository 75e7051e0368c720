/** The tables of coins: each coin as in the newest list, its changes, and ids that upstream has replaced. */
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant, market } from './columns.ts';

export const coin = market.table(
  'coin',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    symbol: text('symbol').notNull(),
    /** 0 if the coin has no rank. */
    rank: integer('rank').notNull(),
    type: text('type'),
    isNew: boolean('is_new').notNull(),
    isActive: boolean('is_active').notNull(),
    /** Beginning of the data of the coin. Null until upstream has reported it. */
    firstDataAt: instant('first_data_at'),
    firstSeenAt: instant('first_seen_at').notNull(),
    lastSeenAt: instant('last_seen_at').notNull(),
    rankSeenAt: instant('rank_seen_at').notNull(),
    position: integer('position'),
    answer: text('answer'),
  },
  (t) => [index('coin_by_rank').on(t.rank).where(sql`is_active and rank > 0`), index('coin_by_symbol').on(t.symbol)],
);

/** A column `coin_id` that references a known coin. */
export const ofCoin = () => text('coin_id').references(() => coin.id);

export const coinChange = market.table(
  'coin_change',
  {
    coinId: ofCoin().notNull(),
    seenAt: instant('seen_at').notNull(),
    field: text('field').notNull(),
    oldValue: text('old_value').notNull(),
    newValue: text('new_value').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.coinId, t.seenAt, t.field] }),
    check('coin_change_field', sql`field in ('name', 'symbol', 'is_active')`),
  ],
);

export const coinRename = market.table(
  'coin_rename',
  {
    oldId: text('old_id').primaryKey(),
    newId: text('new_id').notNull(),
    renamedAt: instant('renamed_at').notNull(),
    source: text('source').notNull(),
    currencyId: text('currency_id'),
    seenAt: instant('seen_at'),
  },
  () => [
    check('coin_rename_ids', sql`old_id <> new_id`),
    check('coin_rename_source', sql`source in ('coins', 'changelog')`),
  ],
);
