/** The datasets of the catalogue: facts about coins and exchanges other than prices. Each is written as a whole. */
import { bytewise as c, type TableDataset, table } from './dataset.ts';

/** For rows that are marked when upstream no longer lists them. */
const SEEN = `
  first_seen_at instant
  last_seen_at instant
  gone_at instant?
`;
const MARKET = `
  base_currency_id text
  quote_currency_id text
  pair text
  category text
  market_url text?
  fee_type text?
  outlier boolean?
  price double?
  volume_24h double?
  updated_at instant?
`;
const MARKET_KEY = ['exchange_id', 'base_currency_id', 'quote_currency_id', 'pair', 'category'].map(c).join(', ');

export const CATALOGUE: readonly TableDataset[] = [
  table({
    name: 'coin_details',
    from: 'market.coin_detail',
    order: c('coin_id'),
    coin: 'coin_id',
    columns: `
      coin_id text
      as_of instant
      name text
      symbol text
      type text?
      is_active boolean?
      parent_id text?
      description text?
      message text?
      open_source boolean?
      hardware_wallet boolean?
      started_at instant?
      development_status text?
      proof_type text?
      org_structure text?
      hash_algorithm text?
      platform_id text?
      contract text?
      logo_url text?
      whitepaper_url text?
      first_data_at instant?
      last_data_at instant?
    `,
  }),
  table({
    name: 'coin_links',
    from: 'market.coin_link',
    order: `${c('coin_id')}, ${c('kind')}, ${c('url')}, valid_from`,
    coin: 'coin_id',
    columns: `
      coin_id text
      kind text
      url text
      valid_from instant
      valid_to instant?
    `,
  }),
  table({
    name: 'tags',
    from: 'market.tag',
    order: c('id'),
    columns: `
      id text
      name text
      type text?
      description text?
      coins integer?
      icos integer?
      ${SEEN}
    `,
  }),
  table({
    name: 'coin_tags',
    from: 'market.coin_tag',
    order: `${c('coin_id')}, ${c('tag_id')}, valid_from`,
    coin: 'coin_id',
    columns: `
      coin_id text
      tag_id text
      valid_from instant
      valid_to instant?
    `,
  }),
  table({
    name: 'people',
    from: 'market.person',
    order: c('id'),
    columns: `
      id text
      as_of instant
      name text
      description text?
      teams integer?
    `,
  }),
  table({
    name: 'positions',
    from: 'market.position',
    order: `${c('coin_id')}, ${c('person_id')}, ${c('position')}, valid_from`,
    coin: 'coin_id',
    columns: `
      coin_id text
      person_id text
      position text
      valid_from instant
      valid_to instant?
    `,
  }),
  table({
    name: 'platforms',
    from: 'market.platform',
    order: c('id'),
    columns: `
      id text
      ${SEEN}
    `,
  }),
  table({
    name: 'contracts',
    from: 'market.contract',
    order: `${c('platform_id')}, ${c('address')}, ${c('coin_id')}, valid_from`,
    coin: 'coin_id',
    columns: `
      platform_id text
      address text
      coin_id text
      type text?
      is_active boolean?
      valid_from instant
      valid_to instant?
    `,
  }),
  table({
    name: 'events',
    from: 'market.coin_event',
    order: `${c('coin_id')}, ${c('id')}`,
    coin: 'coin_id',
    columns: `
      coin_id text
      id text
      date instant
      date_to instant?
      name text
      description text?
      is_conference boolean?
      link text?
      proof_image_link text?
      ${SEEN}
    `,
  }),
];

export const EXCHANGES: readonly TableDataset[] = [
  table({
    name: 'exchanges',
    from: 'market.exchange',
    order: c('id'),
    columns: `
      id text
      name text
      types text = to_json(types)::text
      is_active boolean
      website_status boolean
      api_status boolean
      markets_data_fetched boolean
      description text?
      message text?
      links text = links::text
      fiats text = fiats::text
      adjusted_rank integer?
      reported_rank integer?
      currencies integer?
      markets integer?
      reported_volume_24h double?
      adjusted_volume_24h double?
      reported_volume_7d double?
      adjusted_volume_7d double?
      reported_volume_30d double?
      adjusted_volume_30d double?
      updated_at instant
      at instant
      first_seen_at instant
      last_seen_at instant
    `,
  }),
  table({
    name: 'coin_exchanges',
    from: 'market.coin_exchange',
    order: `${c('coin_id')}, ${c('exchange_id')}`,
    coin: 'coin_id',
    columns: `
      coin_id text
      exchange_id text
      name text
      fiats text = to_json(fiats)::text
      adjusted_volume_24h_share double?
      ${SEEN}
    `,
  }),
  table({
    name: 'coin_markets',
    from: 'market.coin_market',
    order: `${c('coin_id')}, ${MARKET_KEY}`,
    coin: 'coin_id',
    columns: `
      coin_id text
      exchange_id text
      ${MARKET}
      adjusted_volume_24h_share double?
      ${SEEN}
    `,
  }),
  table({
    name: 'exchange_markets',
    from: 'market.exchange_market',
    order: MARKET_KEY,
    columns: `
      exchange_id text
      ${MARKET}
      reported_volume_24h_share double?
      ${SEEN}
    `,
  }),
];
