-- Candles from elsewhere (chandler import): tables of their own, so that nothing that reads upstream's series can take them for upstream's.

create table market.imported_series (
  id integer primary key generated always as identity,
  source text not null,
  coin_id text not null constraint imported_series_coin_id_coin_id_fk references market.coin,
  quote text not null,
  interval market.candle_interval not null,
  imported_at timestamptz not null,
  candles bigint not null default 0,
  first_open_time timestamptz,
  last_open_time timestamptz,
  digest bigint not null default 0,
  constraint imported_series_of_coin unique (source, coin_id, quote, interval),
  constraint imported_series_source check (source ~ '^[A-Za-z0-9._-]{1,63}$' and lower(source) <> 'upstream'),
  constraint imported_series_quote check (quote in ('usd', 'btc')),
  constraint imported_series_interval check (interval <= '24h')
);
comment on table market.imported_series is 'One row for each coin, quote and interval that chandler import has read from a source other than upstream. market.series knows nothing of them: they have no part in its coverage, gaps and evidence.';
comment on column market.imported_series.id is 'The number by which market.imported_candle names it. No number of market.series.';
comment on column market.imported_series.source is 'Where the candles come from: the name that was given to chandler import.';
comment on column market.imported_series.coin_id is 'market.coin.id.';
comment on column market.imported_series.quote is 'Currency of the prices: usd or btc.';
comment on column market.imported_series.interval is 'Width of its candles.';
comment on column market.imported_series.imported_at is 'When an import last changed it.';
comment on column market.imported_series.candles is 'How many candles it has.';
comment on column market.imported_series.first_open_time is 'Open time of its oldest candle.';
comment on column market.imported_series.last_open_time is 'Open time of its newest candle.';
comment on column market.imported_series.digest is 'Sum of market.candle_hash of all its candles, modulo 2^64, as in market.series: the same candles have the same digest wherever they are. Written by the import; chandler verify computes it again.';

create table market.imported_candle (
  open_time timestamptz not null,
  open double precision,
  high double precision,
  low double precision,
  close double precision,
  volume double precision,
  market_cap double precision,
  series_id integer not null,
  is_final boolean not null,
  constraint imported_candle_pkey primary key (series_id, open_time)
);
comment on table market.imported_candle is 'The candles of market.imported_series. Analysts want the view market.candles_all.';
comment on column market.imported_candle.open_time is 'Start of the candle.';
comment on column market.imported_candle.open is 'First price in the interval, in the quote currency. Null where the source has none.';
comment on column market.imported_candle.high is 'Highest price in the interval, in the quote currency.';
comment on column market.imported_candle.low is 'Lowest price in the interval, in the quote currency.';
comment on column market.imported_candle.close is 'Last price in the interval, in the quote currency.';
comment on column market.imported_candle.volume is 'Volume, as the source gives it: what it counts, and in which currency, the source knows.';
comment on column market.imported_candle.market_cap is 'Market capitalisation, as the source gives it.';
comment on column market.imported_candle.series_id is 'market.imported_series.id.';
comment on column market.imported_candle.is_final is 'What the source says; where it says nothing: whether the slot had ended, and a day or its own width had passed since, when it was imported.';

create view market.candles_all as
select
  'upstream' as source, coin_id, symbol, quote, interval, open_time, close_time, open, high, low, close, volume, market_cap, is_final, made_of
from market.candles
union all
select
  s.source, s.coin_id, co.symbol, s.quote, s.interval, c.open_time, c.open_time + market.width_of(s.interval) - interval '1 second',
  c.open, c.high, c.low, c.close, c.volume, c.market_cap, c.is_final, null
from market.imported_candle c
join market.imported_series s on s.id = c.series_id
join market.coin co on co.id = s.coin_id;
comment on view market.candles_all is 'The candles of market.candles (source upstream), and those that chandler import has read from elsewhere. A slot has a row for each source that knows it: filter by source, or compare them.';
comment on column market.candles_all.source is 'upstream, or the name that was given to chandler import.';
comment on column market.candles_all.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.candles_all.symbol is 'Symbol of the coin now; several coins may share one.';
comment on column market.candles_all.quote is 'Currency of the prices: usd or btc.';
comment on column market.candles_all.interval is 'Width of the candle.';
comment on column market.candles_all.open_time is 'Start of the candle.';
comment on column market.candles_all.close_time is 'Last second of the candle: open_time + width - 1 second.';
comment on column market.candles_all.open is 'First price in the interval, in the quote currency.';
comment on column market.candles_all.high is 'Highest price in the interval, in the quote currency.';
comment on column market.candles_all.low is 'Lowest price in the interval, in the quote currency.';
comment on column market.candles_all.close is 'Last price in the interval, in the quote currency.';
comment on column market.candles_all.volume is 'Volume, as the source gives it.';
comment on column market.candles_all.market_cap is 'Market capitalisation, as the source gives it.';
comment on column market.candles_all.is_final is 'Of upstream as in market.candles; else as in market.imported_candle.';
comment on column market.candles_all.made_of is 'As in market.candles; null of other sources.';
