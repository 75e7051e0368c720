-- The schemas, the coins, and everything about candles: series, candles in partitions, what is refused, revised or quarantined.

create schema if not exists market;
create schema if not exists ops;
comment on schema market is 'Market data for analysts. Times are UTC; a span [from, to) includes its start and not its end. Start with the view market.candles.';
comment on schema ops is 'Chandler''s own book-keeping. Its shape may change in any version: do not build on it.';

create type market.candle_interval as enum ('5m', '15m', '30m', '1h', '6h', '12h', '24h');
comment on type market.candle_interval is 'Width of a candle, in the upstream''s own spelling. market.width_of(interval) gives it as an interval.';

-- Every list of coins rewrites every coin: the fill factor leaves room for the next version of a row on its page.
create table market.coin (
  id text primary key,
  name text not null,
  symbol text not null,
  rank integer not null,
  type text,
  is_new boolean not null,
  is_active boolean not null,
  first_data_at timestamptz,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  rank_seen_at timestamptz not null,
  position integer,
  answer text
) with (fillfactor = 50);
create index coin_by_rank on market.coin (rank) where is_active and rank > 0;
create index coin_by_symbol on market.coin (symbol);
comment on table market.coin is 'Every coin ever seen in the upstream''s catalogue. Rows are never deleted: no survivorship bias.';
comment on column market.coin.id is 'Upstream id: btc-bitcoin.';
comment on column market.coin.name is 'Name, as last seen.';
comment on column market.coin.symbol is 'Ticker symbol, as last seen (not unique).';
comment on column market.coin.rank is 'Rank by market capitalisation, 1 is first; 0 when the coin has none.';
comment on column market.coin.type is 'coin or token; null where upstream does not say.';
comment on column market.coin.is_new is 'Upstream marks it as recently added.';
comment on column market.coin.is_active is 'False once upstream has stopped updating it.';
comment on column market.coin.first_data_at is 'Instant of the first data upstream has; null until upstream has sent it. Nothing before it is wanted.';
comment on column market.coin.first_seen_at is 'When the catalogue first held it.';
comment on column market.coin.last_seen_at is 'When the catalogue last held it.';
comment on column market.coin.rank_seen_at is 'When upstream last sent the rank.';
comment on column market.coin.position is 'Its place in the newest list that has it, from 0.';
comment on column market.coin.answer is 'The JSON of upstream in the list of coins, where it is written otherwise than the other columns would be; null where it is not.';

create table market.coin_change (
  coin_id text not null constraint coin_change_coin_id_coin_id_fk references market.coin,
  seen_at timestamptz not null,
  field text not null,
  old_value text not null,
  new_value text not null,
  constraint coin_change_coin_id_seen_at_field_pk primary key (coin_id, seen_at, field),
  constraint coin_change_field check (field in ('name', 'symbol', 'is_active'))
);
comment on table market.coin_change is 'Every change of a coin''s name, symbol or activity that we saw.';
comment on column market.coin_change.coin_id is 'market.coin.id.';
comment on column market.coin_change.seen_at is 'When we saw the new value.';
comment on column market.coin_change.field is 'name, symbol or is_active.';
comment on column market.coin_change.old_value is 'Value before.';
comment on column market.coin_change.new_value is 'Value since.';

create table market.coin_rename (
  old_id text primary key,
  new_id text not null,
  renamed_at timestamptz not null,
  source text not null,
  currency_id text,
  seen_at timestamptz,
  constraint coin_rename_ids check (old_id <> new_id),
  constraint coin_rename_source check (source in ('coins', 'changelog'))
);
comment on table market.coin_rename is 'Coins that upstream gave a new id. What was kept under the old id is kept under the new one since: their series and candles are one history.';
comment on column market.coin_rename.old_id is 'The id it had; still in market.coin.';
comment on column market.coin_rename.new_id is 'The id it was given.';
comment on column market.coin_rename.renamed_at is 'When we saw it, or when upstream says it was.';
comment on column market.coin_rename.source is 'coins: seen in the list of coins, the same name and symbol under a new id while the old one left; changelog: upstream says so.';
comment on column market.coin_rename.currency_id is 'The coin that it is about, as the changelog says; null: it did not say, and it is new_id.';
comment on column market.coin_rename.seen_at is 'As-of instant of the answer with the new id; null: it was not recorded.';

-- Every chunk rewrites the coverage of its series: room on the page keeps those updates out of the indexes.
create table market.series (
  id integer primary key generated always as identity,
  coin_id text not null constraint series_coin_id_coin_id_fk references market.coin,
  quote text not null,
  interval market.candle_interval not null,
  wanted tstzmultirange not null default '{}',
  covered tstzmultirange not null default '{}',
  covered_candles bigint not null default 0,
  priority smallint not null default 0,
  created_at timestamptz not null default now(),
  version bigint not null default 0,
  answered_at timestamptz,
  constraint series_of_coin unique (coin_id, quote, interval),
  constraint series_quote check (quote in ('usd', 'btc'))
) with (fillfactor = 70);
comment on table market.series is 'One row per coin, quote and interval that was ever wanted.';
comment on column market.series.id is 'Number of the series, used by market.candle.';
comment on column market.series.coin_id is 'market.coin.id.';
comment on column market.series.quote is 'Currency of the prices: usd or btc.';
comment on column market.series.interval is 'Width of the candles.';
comment on column market.series.wanted is 'Spans that somebody requested; open-ended when the series is tracked.';
comment on column market.series.covered is 'Spans for which upstream has given its final answer.';
comment on column market.series.covered_candles is 'How many candles lie inside covered; the other covered slots are known to be empty.';
comment on column market.series.priority is 'The series with the higher priority is requested first.';
comment on column market.series.created_at is 'When it was first wanted.';
comment on column market.series.version is 'Changes with every change of the series, and of its candles.';
comment on column market.series.answered_at is 'As-of instant of the youngest answer that was stored about it; null while there is none, or it is from before this column.';

-- Sub-partitions (market.candle_24h_2024, candle_1h_2024q1, candle_5m_2024m01) are made on demand: src/store/upkeep/partition.ts.
create table market.candle (
  open_time timestamptz not null,
  open double precision,
  high double precision,
  low double precision,
  close double precision,
  volume double precision,
  market_cap double precision,
  -- series_id and interval share eight bytes; the interval is part of the key so that partitions prune on a literal.
  series_id integer not null,
  interval market.candle_interval not null,
  primary key (series_id, interval, open_time)
) partition by list (interval);
comment on table market.candle is 'Candles by series number, partitioned by interval and time. Analysts want the view market.candles.';
comment on column market.candle.open_time is 'Start of the candle.';
comment on column market.candle.open is 'First price in the interval, in the quote currency. Null where upstream says null.';
comment on column market.candle.high is 'Highest price in the interval, in the quote currency.';
comment on column market.candle.low is 'Lowest price in the interval, in the quote currency.';
comment on column market.candle.close is 'Last price in the interval, in the quote currency.';
comment on column market.candle.volume is 'Volume traded in the interval, as upstream gives it.';
comment on column market.candle.market_cap is 'Market capitalisation at the close, as upstream gives it.';
comment on column market.candle.series_id is 'market.series.id.';
comment on column market.candle.interval is 'The series'' interval, repeated here so that partitions prune.';

create table market.candle_5m partition of market.candle for values in ('5m') partition by range (open_time);
create table market.candle_15m partition of market.candle for values in ('15m') partition by range (open_time);
create table market.candle_30m partition of market.candle for values in ('30m') partition by range (open_time);
create table market.candle_1h partition of market.candle for values in ('1h') partition by range (open_time);
create table market.candle_6h partition of market.candle for values in ('6h') partition by range (open_time);
create table market.candle_12h partition of market.candle for values in ('12h') partition by range (open_time);
create table market.candle_24h partition of market.candle for values in ('24h') partition by range (open_time);
comment on table market.candle_5m is 'The 5m candles of market.candle.';
comment on table market.candle_15m is 'The 15m candles of market.candle.';
comment on table market.candle_30m is 'The 30m candles of market.candle.';
comment on table market.candle_1h is 'The 1h candles of market.candle.';
comment on table market.candle_6h is 'The 6h candles of market.candle.';
comment on table market.candle_12h is 'The 12h candles of market.candle.';
comment on table market.candle_24h is 'The 24h candles of market.candle.';

-- An open candle says until when its data reach: a handful for each series.
create table market.open_candle (
  series_id integer not null references market.series on delete cascade,
  open_time timestamptz not null,
  close_time timestamptz not null,
  primary key (series_id, open_time)
);
comment on table market.open_candle is 'Candles that had not closed when upstream answered them last: until when their data reach. All others end a second before the next one opens.';
comment on column market.open_candle.series_id is 'market.series.id.';
comment on column market.open_candle.open_time is 'Open time of the candle in market.candle.';
comment on column market.open_candle.close_time is 'time_close as upstream wrote it: the minute of its data.';

create table market.revision (
  id bigint primary key generated always as identity,
  series_id integer not null,
  open_time timestamptz not null,
  seen_at timestamptz not null,
  fetch_id bigint,
  open double precision,
  high double precision,
  low double precision,
  close double precision,
  volume double precision,
  market_cap double precision
);
create index revision_of_candle on market.revision (series_id, open_time);
-- Retention deletes old requests, except those that a row refers to.
create index revision_of_fetch on market.revision (fetch_id);
comment on table market.revision is 'The old values of every candle that upstream changed or removed after it was final; all null where it added one to a slot known to be empty.';
comment on column market.revision.id is 'In order of seeing.';
comment on column market.revision.series_id is 'market.series.id.';
comment on column market.revision.open_time is 'Start of the candle.';
comment on column market.revision.seen_at is 'As-of instant of the answer that changed it.';
comment on column market.revision.fetch_id is 'The request that brought them.';
comment on column market.revision.open is 'Old value of open.';
comment on column market.revision.high is 'Old value of high.';
comment on column market.revision.low is 'Old value of low.';
comment on column market.revision.close is 'Old value of close.';
comment on column market.revision.volume is 'Old value of volume.';
comment on column market.revision.market_cap is 'Old value of market cap.';

-- A row is about a candle (series_id), or about a record of a snapshot (endpoint, record_id): one for each record and reason, however often it comes.
create table market.quarantine (
  id bigint primary key generated always as identity,
  series_id integer,
  open_time timestamptz,
  reason text not null,
  row jsonb not null,
  fetch_id bigint,
  seen_at timestamptz not null,
  endpoint text,
  record_id text,
  times integer not null default 1,
  constraint quarantine_subject check ((series_id is null) = (endpoint is not null and record_id is not null))
);
create index quarantine_of_series on market.quarantine (series_id, open_time);
create unique index quarantine_of_record on market.quarantine (endpoint, record_id, reason) where endpoint is not null;
-- Retention deletes old requests, except those that a row refers to.
create index quarantine_of_fetch on market.quarantine (fetch_id);
comment on table market.quarantine is 'Rows of answers that cannot be true, as they came, with the reason. They are in no other table.';
comment on column market.quarantine.id is 'In order of seeing.';
comment on column market.quarantine.series_id is 'market.series.id, for a row that claims to be a candle; null for a row of a snapshot.';
comment on column market.quarantine.open_time is 'The open time the row claims; null when it has none that can be read.';
comment on column market.quarantine.reason is 'Why it cannot be true.';
comment on column market.quarantine.row is 'The row as upstream sent it.';
comment on column market.quarantine.fetch_id is 'The request that brought it.';
comment on column market.quarantine.seen_at is 'When it came.';
comment on column market.quarantine.endpoint is 'For a row of a snapshot: tickers, coins, global or exchanges.';
comment on column market.quarantine.record_id is 'For a row of a snapshot: the id it claims; empty when it has none that can be read.';
comment on column market.quarantine.times is 'For a row of a snapshot: in how many answers it came with the same reason; row, fetch_id and seen_at are of the newest.';

create table market.refusal (
  id bigint primary key generated always as identity,
  account_plan text not null,
  series_id integer constraint refusal_series_id_series_id_fk references market.series,
  interval market.candle_interval,
  span tstzrange,
  depth interval,
  reason text not null,
  message text not null,
  refused_at timestamptz not null,
  fetch_id bigint,
  constraint refusal_reason check (reason in ('history limit', 'interval', 'unknown coin', 'forbidden', 'bad request')),
  constraint refusal_subject check (
    case when series_id is null then interval is not null and span is null else span is not null and depth is null end
  )
);
create unique index refusal_history_limit on market.refusal (account_plan, interval) where series_id is null;
create unique index refusal_of_series on market.refusal (series_id, account_plan, span) where series_id is not null;
comment on table market.refusal is 'What upstream will not give, and why. Counts only while the account has the plan it was refused under.';
comment on column market.refusal.id is 'Number of the refusal.';
comment on column market.refusal.account_plan is 'The plan that was refused.';
comment on column market.refusal.series_id is 'market.series.id; null for a history limit, which holds for every series of the interval.';
comment on column market.refusal.interval is 'For a history limit: the interval it is about.';
comment on column market.refusal.span is 'For one series: the span refused.';
comment on column market.refusal.depth is 'For a history limit: how far back from now the plan sees; null when it does not see the interval at all.';
comment on column market.refusal.reason is 'history limit, interval, unknown coin, forbidden or bad request.';
comment on column market.refusal.message is 'What upstream said.';
comment on column market.refusal.refused_at is 'When it last said so.';
comment on column market.refusal.fetch_id is 'The request it answered.';

-- Coarser candles made ahead of time: a year of days out of 5m candles is 105,408 rows, too many to read in 15 milliseconds.
create table market.rollup (
  series_id integer not null constraint rollup_series_id_series_id_fk references market.series on delete cascade,
  interval market.candle_interval not null,
  open_time timestamptz not null,
  open double precision,
  high double precision,
  low double precision,
  close double precision,
  volume double precision,
  market_cap double precision,
  constraint rollup_series_id_interval_open_time_pk primary key (series_id, interval, open_time)
);
comment on table market.rollup is 'Coarser candles, each made of all final candles of one series in its slot: 6h, 12h and 24h of 5m and 15m, 12h and 24h of 30m, 24h of 1h, where no coarser series says the same. Made by the service every hour and at the end of chandler backfill, so what was covered last may not have its own yet; removed in the transaction that changes a candle they are made of. market.rollup_coverage says where they are complete.';
comment on column market.rollup.series_id is 'The series of the finer candles: market.series.id.';
comment on column market.rollup.interval is 'Width of this candle, not of those it is made of.';
comment on column market.rollup.open_time is 'UTC, on the grid of its interval. A slot in which there are no finer candles has no row.';
comment on column market.rollup.open is 'Of the first finer candle.';
comment on column market.rollup.high is 'The highest; null where one of the finer candles has none.';
comment on column market.rollup.low is 'The lowest; null where one of the finer candles has none.';
comment on column market.rollup.close is 'Of the last finer candle.';
comment on column market.rollup.volume is 'The sum; null where one of the finer candles has none.';
comment on column market.rollup.market_cap is 'Of the last finer candle.';

-- A table of its own, because every update of market.series says that an answer changed.
create table market.rollup_coverage (
  series_id integer primary key constraint rollup_coverage_series_id_series_id_fk references market.series on delete cascade,
  spans tstzmultirange not null
);
comment on table market.rollup_coverage is 'The spans of a series for which market.rollup has all candles that can be made. After you change candles by hand, delete the row of their series: the service then makes the rollups again.';
comment on column market.rollup_coverage.series_id is 'market.series.id.';
comment on column market.rollup_coverage.spans is 'A slot that lies in it as a whole, and in market.series.covered, has its row in market.rollup, or no candle.';
