/** The datasets that are written as a whole: coins, and facts about series. The datasets of the catalogue are in a file of their own. */
import { bytewise as c, type TableDataset, table } from './dataset.ts';

/** Spans as JSON: `[["2024-01-01T00:00:00+00:00","2024-02-01T00:00:00+00:00"]]`; null for an infinite bound. */
const spans = (column: string) =>
  `(select coalesce(json_agg(json_build_array(lower(r), upper(r)) order by r), '[]') from unnest(${column}) r)::text`;
const NAME = `
  coin_id text
  quote text
  interval text = interval::text
`;
const BY_SERIES = `${c('coin_id')}, quote, ${c('interval::text')}`;
export const OF_COINS: readonly TableDataset[] = [
  table({
    name: 'coins',
    from: 'market.coin',
    order: c('id'),
    coin: 'id',
    columns: `
      id text
      name text
      symbol text
      rank integer
      type text?
      is_new boolean
      is_active boolean
      first_data_at instant?
      first_seen_at instant
      last_seen_at instant
    `,
  }),
  table({
    name: 'coin_changes',
    from: 'market.coin_change',
    order: `${c('coin_id')}, seen_at, field`,
    coin: 'coin_id',
    columns: `
      coin_id text
      seen_at instant
      field text
      old_value text
      new_value text
    `,
  }),
  table({
    name: 'coin_renames',
    from: 'market.coin_rename',
    order: c('old_id'),
    columns: `
      old_id text
      new_id text
      renamed_at instant
      source text
    `,
  }),
];

export const OF_SERIES: readonly TableDataset[] = [
  table({
    name: 'coverage',
    from: 'market.coverage',
    order: BY_SERIES,
    coin: 'coin_id',
    columns: `
      ${NAME}
      wanted_from instant?
      wanted_to instant?
      slots_wanted bigint
      slots_covered bigint
      slots_missing bigint
      slots_unsettled bigint
      slots_empty_once bigint
      slots_empty_twice bigint
      percent_complete double = percent_complete::float8
      covered text = ${spans('covered')}
    `,
  }),
  table({
    name: 'gaps',
    from: 'market.gaps',
    order: `${BY_SERIES}, gap_from, reason`,
    coin: 'coin_id',
    columns: `
      ${NAME}
      gap_from instant
      gap_to instant
      slots bigint
      reason text
      detail text?
      next_ask_at instant? = case when isfinite(next_ask_at) then next_ask_at end
    `,
  }),
  table({
    name: 'revisions',
    from: `(select s.coin_id, s.quote, s.interval, r.* from market.revision r join market.series s on s.id = r.series_id) revisions`,
    order: `${BY_SERIES}, open_time, coalesce(step, 0), id`,
    coin: 'coin_id',
    columns: `
      ${NAME}
      open_time instant
      seen_at instant
      known_at instant?
      step integer?
      reason text
      was_empty boolean
      open double?
      high double?
      low double?
      close double?
      volume double?
      market_cap double?
    `,
  }),
  table({
    name: 'evidence',
    from: `(select s.coin_id, s.quote, s.interval, e.* from market.evidence e join market.series s on s.id = e.series_id) evidence`,
    order: `${BY_SERIES}, number`,
    coin: 'coin_id',
    columns: `
      ${NAME}
      number integer
      kind text
      slots text = ${spans('slots')}
      known_at instant
      as_of instant
      candles integer
      digest text = encode(int8send(digest), 'hex')
      link text = encode(link, 'hex')
      body_sha256 text? = encode(body_sha256, 'hex')
      detail text?
    `,
  }),
];
