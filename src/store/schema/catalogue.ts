/** The tables of the catalogue: every answer as received, and plain columns for analysts. */
import { sql } from 'drizzle-orm';
import { boolean, doublePrecision, index, integer, json, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytea, instant, market } from './columns.ts';

/** Columns of rows that are marked (`gone_at`) when upstream no longer lists them. */
const seen = () => ({
  firstSeenAt: instant('first_seen_at').notNull(),
  lastSeenAt: instant('last_seen_at').notNull(),
  goneAt: instant('gone_at'),
});
/** Columns of rows that end (`valid_to`) when upstream sends another value. */
const valid = () => ({ validFrom: instant('valid_from').notNull(), validTo: instant('valid_to') });

export const document = market.table(
  'document',
  {
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    asOf: instant('as_of').notNull(),
    changedAt: instant('changed_at').notNull(),
    goneAt: instant('gone_at'),
    isTruncated: boolean('is_truncated').notNull().default(false),
    fingerprint: bytea('fingerprint').notNull(),
    received: json('received').notNull(),
    receivedSha256: bytea('received_sha256'),
  },
  (t) => [primaryKey({ columns: [t.kind, t.id] })],
);

export const documentRevision = market.table(
  'document_revision',
  {
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to').notNull(),
    received: json('received').notNull(),
    receivedSha256: bytea('received_sha256'),
  },
  (t) => [primaryKey({ columns: [t.kind, t.id, t.validFrom] })],
);

export const coinDetail = market.table('coin_detail', {
  coinId: text('coin_id').primaryKey(),
  asOf: instant('as_of').notNull(),
  name: text('name').notNull(),
  symbol: text('symbol').notNull(),
  type: text('type'),
  isActive: boolean('is_active'),
  parentId: text('parent_id'),
  description: text('description'),
  message: text('message'),
  openSource: boolean('open_source'),
  hardwareWallet: boolean('hardware_wallet'),
  startedAt: instant('started_at'),
  developmentStatus: text('development_status'),
  proofType: text('proof_type'),
  orgStructure: text('org_structure'),
  hashAlgorithm: text('hash_algorithm'),
  platformId: text('platform_id'),
  contract: text('contract'),
  logoUrl: text('logo_url'),
  whitepaperUrl: text('whitepaper_url'),
  firstDataAt: instant('first_data_at'),
  lastDataAt: instant('last_data_at'),
});

export const coinLink = market.table(
  'coin_link',
  {
    coinId: text('coin_id').notNull(),
    kind: text('kind').notNull(),
    url: text('url').notNull(),
    ...valid(),
  },
  (t) => [primaryKey({ columns: [t.coinId, t.kind, t.url, t.validFrom] })],
);

export const position = market.table(
  'position',
  {
    coinId: text('coin_id').notNull(),
    personId: text('person_id').notNull(),
    position: text('position').notNull(),
    ...valid(),
  },
  (t) => [
    primaryKey({ columns: [t.coinId, t.personId, t.position, t.validFrom] }),
    index('position_of_person').on(t.personId),
  ],
);

export const coinTag = market.table(
  'coin_tag',
  { coinId: text('coin_id').notNull(), tagId: text('tag_id').notNull(), ...valid() },
  (t) => [primaryKey({ columns: [t.coinId, t.tagId, t.validFrom] }), index('coin_tag_of_tag').on(t.tagId)],
);

export const tag = market.table('tag', {
  id: text('id').primaryKey(),
  place: integer('place').notNull(),
  name: text('name').notNull(),
  type: text('type'),
  description: text('description'),
  coins: integer('coins'),
  icos: integer('icos'),
  ...seen(),
});

export const person = market.table('person', {
  id: text('id').primaryKey(),
  asOf: instant('as_of').notNull(),
  name: text('name').notNull(),
  description: text('description'),
  teams: integer('teams'),
});

export const platform = market.table('platform', {
  id: text('id').primaryKey(),
  place: integer('place').notNull(),
  ...seen(),
});

export const contract = market.table(
  'contract',
  {
    platformId: text('platform_id').notNull(),
    address: text('address').notNull(),
    coinId: text('coin_id').notNull(),
    type: text('type'),
    isActive: boolean('is_active'),
    ...valid(),
  },
  (t) => [
    primaryKey({ columns: [t.platformId, t.address, t.coinId, t.validFrom] }),
    index('contract_by_address').on(t.platformId, sql`lower(${t.address})`),
    index('contract_of_coin').on(t.coinId),
  ],
);

export const coinEvent = market.table(
  'coin_event',
  {
    coinId: text('coin_id').notNull(),
    id: text('id').notNull(),
    date: instant('date').notNull(),
    dateTo: instant('date_to'),
    name: text('name').notNull(),
    description: text('description'),
    isConference: boolean('is_conference'),
    link: text('link'),
    proofImageLink: text('proof_image_link'),
    ...seen(),
  },
  (t) => [primaryKey({ columns: [t.coinId, t.id] })],
);

export const coinExchange = market.table(
  'coin_exchange',
  {
    coinId: text('coin_id').notNull(),
    exchangeId: text('exchange_id').notNull(),
    name: text('name').notNull(),
    fiats: text('fiats').array().notNull(),
    adjustedVolume24hShare: doublePrecision('adjusted_volume_24h_share'),
    ...seen(),
  },
  (t) => [primaryKey({ columns: [t.coinId, t.exchangeId] }), index('coin_exchange_of_exchange').on(t.exchangeId)],
);

const marketKey = () => ({
  baseCurrencyId: text('base_currency_id').notNull(),
  quoteCurrencyId: text('quote_currency_id').notNull(),
  pair: text('pair').notNull(),
  category: text('category').notNull(),
});
const marketValues = () => ({
  marketUrl: text('market_url'),
  feeType: text('fee_type'),
  outlier: boolean('outlier'),
  price: doublePrecision('price'),
  volume24h: doublePrecision('volume_24h'),
  updatedAt: instant('updated_at'),
});

export const coinMarket = market.table(
  'coin_market',
  {
    coinId: text('coin_id').notNull(),
    exchangeId: text('exchange_id').notNull(),
    ...marketKey(),
    ...marketValues(),
    adjustedVolume24hShare: doublePrecision('adjusted_volume_24h_share'),
    ...seen(),
  },
  (t) => [
    primaryKey({
      name: 'coin_market_pk',
      columns: [t.coinId, t.exchangeId, t.baseCurrencyId, t.quoteCurrencyId, t.pair, t.category],
    }),
    index('coin_market_of_exchange').on(t.exchangeId),
  ],
);

export const exchangeMarket = market.table(
  'exchange_market',
  {
    exchangeId: text('exchange_id').notNull(),
    ...marketKey(),
    ...marketValues(),
    reportedVolume24hShare: doublePrecision('reported_volume_24h_share'),
    ...seen(),
  },
  (t) => [
    primaryKey({
      name: 'exchange_market_pk',
      columns: [t.exchangeId, t.baseCurrencyId, t.quoteCurrencyId, t.pair, t.category],
    }),
  ],
);
