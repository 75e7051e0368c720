-- The market as it is now, and how it was at each snapshot: one answer of /tickers, /global or /exchanges is one snapshot.

-- Every snapshot rewrites every row: room on the page keeps that out of the index.
create table market.ticker (
  coin_id text primary key,
  updated_at timestamptz not null,
  at timestamptz not null,
  rank integer not null,
  price double precision,
  volume_24h double precision,
  volume_24h_change_24h double precision,
  market_cap double precision,
  market_cap_change_24h double precision,
  percent_change_15m double precision,
  percent_change_30m double precision,
  percent_change_1h double precision,
  percent_change_6h double precision,
  percent_change_12h double precision,
  percent_change_24h double precision,
  percent_change_7d double precision,
  percent_change_30d double precision,
  percent_change_1y double precision,
  ath_price double precision,
  ath_at timestamptz,
  percent_from_price_ath double precision,
  circulating_supply double precision,
  total_supply double precision,
  max_supply double precision,
  beta_value double precision,
  seen_at timestamptz not null,
  position integer,
  answer text
) with (fillfactor = 45);
comment on table market.ticker is 'The newest ticker of every coin, prices in US dollars. A coin that upstream no longer lists keeps its last one: see seen_at.';
comment on column market.ticker.coin_id is 'market.coin.id: btc-bitcoin.';
comment on column market.ticker.updated_at is 'When upstream last updated it, as it says itself; of two tickers the one updated later is the newer.';
comment on column market.ticker.at is 'Instant of the snapshot the values are of; the same row is in market.ticker_history under it.';
comment on column market.ticker.rank is 'Rank by market capitalisation, 1 is first; 0 when it has none.';
comment on column market.ticker.price is 'Price in US dollars. Null where upstream says null.';
comment on column market.ticker.volume_24h is 'Volume of the last 24 hours in US dollars.';
comment on column market.ticker.volume_24h_change_24h is 'Change of volume_24h in the last 24 hours, in percent.';
comment on column market.ticker.market_cap is 'Market capitalisation in US dollars.';
comment on column market.ticker.market_cap_change_24h is 'Change of market_cap in the last 24 hours, in percent.';
comment on column market.ticker.percent_change_15m is 'Change of the price in the last 15 minutes, in percent.';
comment on column market.ticker.percent_change_30m is 'Change of the price in the last 30 minutes, in percent.';
comment on column market.ticker.percent_change_1h is 'Change of the price in the last hour, in percent.';
comment on column market.ticker.percent_change_6h is 'Change of the price in the last 6 hours, in percent.';
comment on column market.ticker.percent_change_12h is 'Change of the price in the last 12 hours, in percent.';
comment on column market.ticker.percent_change_24h is 'Change of the price in the last 24 hours, in percent.';
comment on column market.ticker.percent_change_7d is 'Change of the price in the last 7 days, in percent.';
comment on column market.ticker.percent_change_30d is 'Change of the price in the last 30 days, in percent.';
comment on column market.ticker.percent_change_1y is 'Change of the price in the last year, in percent.';
comment on column market.ticker.ath_price is 'Highest price ever, in US dollars.';
comment on column market.ticker.ath_at is 'When the price was highest.';
comment on column market.ticker.percent_from_price_ath is 'How far the price is below its highest, in percent.';
comment on column market.ticker.circulating_supply is 'Coins in circulation; null where the plan does not show it.';
comment on column market.ticker.total_supply is 'Coins that exist.';
comment on column market.ticker.max_supply is 'Most coins there can be; 0 when there is no bound.';
comment on column market.ticker.beta_value is 'Beta of the coin, as upstream gives it.';
comment on column market.ticker.seen_at is 'Instant of the newest snapshot that lists the coin at all.';
comment on column market.ticker.position is 'Its place in the newest list that has it, from 0.';
comment on column market.ticker.answer is 'The JSON of upstream, where the other columns cannot reproduce it (an undocumented field, a missing one); null where they can.';

-- Partitions (market.ticker_history_2024m01) are made ahead of time: src/store/upkeep/partition.ts.
create table market.ticker_history (
  at timestamptz not null,
  updated_at timestamptz not null,
  price double precision,
  volume_24h double precision,
  market_cap double precision,
  circulating_supply double precision,
  rank integer not null,
  coin_id text not null,
  primary key (coin_id, at)
) partition by range (at);
-- Written in the order of time: a few bytes for each stretch of pages find all coins of one moment.
create index ticker_history_by_time on market.ticker_history using brin (at) with (autosummarize = on);
comment on table market.ticker_history is 'The tickers of every snapshot, prices in US dollars, partitioned by month. Removed when they are old (CHANDLER_KEEP_TICKERS).';
comment on column market.ticker_history.at is 'Instant of the snapshot: no fact in it is newer.';
comment on column market.ticker_history.updated_at is 'When upstream last updated the ticker, as it says itself; the instant of the snapshot where it says nothing.';
comment on column market.ticker_history.price is 'Price in US dollars. Null where upstream says null.';
comment on column market.ticker_history.volume_24h is 'Volume of the last 24 hours in US dollars.';
comment on column market.ticker_history.market_cap is 'Market capitalisation in US dollars.';
comment on column market.ticker_history.circulating_supply is 'Coins in circulation; null where the plan does not show it.';
comment on column market.ticker_history.rank is 'Rank by market capitalisation, 1 is first; 0 when it has none.';
comment on column market.ticker_history.coin_id is 'market.coin.id: btc-bitcoin.';

create table market.global_history (
  at timestamptz primary key,
  updated_at timestamptz not null,
  market_cap double precision,
  volume_24h double precision,
  bitcoin_dominance double precision,
  coins integer,
  market_cap_change_24h double precision,
  volume_24h_change_24h double precision,
  market_cap_ath double precision,
  market_cap_ath_at timestamptz,
  volume_24h_ath double precision,
  volume_24h_ath_at timestamptz,
  volume_24h_percent_from_ath double precision,
  volume_24h_percent_to_ath double precision,
  answer text
);
comment on table market.global_history is 'The market as a whole at every snapshot.';
comment on column market.global_history.at is 'Instant of the snapshot: no fact in it is newer.';
comment on column market.global_history.updated_at is 'When upstream last updated it, as it says itself; the instant of the snapshot where it says nothing.';
comment on column market.global_history.market_cap is 'Market capitalisation of all coins, in US dollars.';
comment on column market.global_history.volume_24h is 'Volume of the last 24 hours, in US dollars.';
comment on column market.global_history.bitcoin_dominance is 'Share of bitcoin in the market capitalisation, in percent.';
comment on column market.global_history.coins is 'How many coins upstream counts.';
comment on column market.global_history.market_cap_change_24h is 'Change of market_cap in the last 24 hours, in percent.';
comment on column market.global_history.volume_24h_change_24h is 'Change of volume_24h in the last 24 hours, in percent.';
comment on column market.global_history.market_cap_ath is 'Highest market capitalisation ever, in US dollars.';
comment on column market.global_history.market_cap_ath_at is 'When it was highest.';
comment on column market.global_history.volume_24h_ath is 'Highest volume of 24 hours ever, in US dollars, as upstream gives it (outliers included).';
comment on column market.global_history.volume_24h_ath_at is 'When it was highest.';
comment on column market.global_history.volume_24h_percent_from_ath is 'How far volume_24h is below its highest, in percent.';
comment on column market.global_history.volume_24h_percent_to_ath is 'How far volume_24h would have to rise to its highest, in percent; upstream writes at most 9999.99.';
comment on column market.global_history.answer is 'The JSON of upstream, where it is written otherwise than the other columns would be; null where it is not.';

create table market.exchange (
  id text primary key,
  updated_at timestamptz not null,
  at timestamptz not null,
  name text not null,
  types text[] not null,
  is_active boolean not null,
  website_status boolean not null,
  api_status boolean not null,
  markets_data_fetched boolean not null,
  description text,
  message text,
  links jsonb not null,
  fiats jsonb not null,
  adjusted_rank integer,
  reported_rank integer,
  currencies integer,
  markets integer,
  reported_volume_24h double precision,
  adjusted_volume_24h double precision,
  reported_volume_7d double precision,
  adjusted_volume_7d double precision,
  reported_volume_30d double precision,
  adjusted_volume_30d double precision,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  position integer,
  answer text
);
comment on table market.exchange is 'Every exchange ever seen, as last seen, volumes in US dollars. Rows are never deleted.';
comment on column market.exchange.id is 'Upstream id: binance.';
comment on column market.exchange.updated_at is 'When upstream last updated it, as it says itself; the instant of the snapshot where it says nothing.';
comment on column market.exchange.at is 'Instant of the snapshot the values are of.';
comment on column market.exchange.name is 'Name, as last seen.';
comment on column market.exchange.types is 'What kind it is: cex, dex, perpetuals, spot, otc, other.';
comment on column market.exchange.is_active is 'False once upstream has stopped following it.';
comment on column market.exchange.website_status is 'Does its web page answer, as upstream sees it?';
comment on column market.exchange.api_status is 'Does its API answer, as upstream sees it?';
comment on column market.exchange.markets_data_fetched is 'Does upstream have its markets?';
comment on column market.exchange.description is 'Description, where there is one.';
comment on column market.exchange.message is 'What upstream wants known about it, where there is something.';
comment on column market.exchange.links is 'Addresses by kind: {"website": ["https://…"], "twitter": []}.';
comment on column market.exchange.fiats is 'Fiat currencies traded: [{"name": "US Dollars", "symbol": "USD"}].';
comment on column market.exchange.adjusted_rank is 'Rank by adjusted volume, 1 is first; null when it has none.';
comment on column market.exchange.reported_rank is 'Rank by reported volume, 1 is first; null when it has none.';
comment on column market.exchange.currencies is 'How many currencies it trades.';
comment on column market.exchange.markets is 'How many markets it has.';
comment on column market.exchange.reported_volume_24h is 'Volume of 24 hours as it reports itself.';
comment on column market.exchange.adjusted_volume_24h is 'Volume of 24 hours as upstream believes it.';
comment on column market.exchange.reported_volume_7d is 'Volume of 7 days as it reports itself.';
comment on column market.exchange.adjusted_volume_7d is 'Volume of 7 days as upstream believes it.';
comment on column market.exchange.reported_volume_30d is 'Volume of 30 days as it reports itself.';
comment on column market.exchange.adjusted_volume_30d is 'Volume of 30 days as upstream believes it.';
comment on column market.exchange.first_seen_at is 'Instant of the first snapshot that held it.';
comment on column market.exchange.last_seen_at is 'Instant of the newest snapshot that held it.';
comment on column market.exchange.position is 'Its place in the newest list that has it, from 0.';
comment on column market.exchange.answer is 'The JSON of upstream, where it is written otherwise than the other columns would be; null where it is not.';

create table market.exchange_history (
  exchange_id text not null,
  at timestamptz not null,
  updated_at timestamptz not null,
  adjusted_rank integer,
  reported_rank integer,
  currencies integer,
  markets integer,
  reported_volume_24h double precision,
  adjusted_volume_24h double precision,
  constraint exchange_history_exchange_id_at_pk primary key (exchange_id, at)
);
comment on table market.exchange_history is 'Ranks and volumes of every exchange at every snapshot, in US dollars.';
comment on column market.exchange_history.exchange_id is 'market.exchange.id.';
comment on column market.exchange_history.at is 'Instant of the snapshot: no fact in it is newer.';
comment on column market.exchange_history.updated_at is 'When upstream last updated it, as it says itself; the instant of the snapshot where it says nothing.';
comment on column market.exchange_history.adjusted_rank is 'Rank by adjusted volume, 1 is first; null when it has none.';
comment on column market.exchange_history.reported_rank is 'Rank by reported volume, 1 is first; null when it has none.';
comment on column market.exchange_history.currencies is 'How many currencies it trades.';
comment on column market.exchange_history.markets is 'How many markets it has.';
comment on column market.exchange_history.reported_volume_24h is 'Volume of 24 hours as it reports itself.';
comment on column market.exchange_history.adjusted_volume_24h is 'Volume of 24 hours as upstream believes it.';
