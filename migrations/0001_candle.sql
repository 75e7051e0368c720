-- The one big table, and what only hand-written SQL can say about the others.
-- Sub-partitions (market.candle_24h_2024, candle_1h_2024q1, candle_5m_2024m01) are made on demand: src/store/partition.ts.
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
--> statement-breakpoint
create table market.candle_5m partition of market.candle for values in ('5m') partition by range (open_time);
--> statement-breakpoint
create table market.candle_15m partition of market.candle for values in ('15m') partition by range (open_time);
--> statement-breakpoint
create table market.candle_30m partition of market.candle for values in ('30m') partition by range (open_time);
--> statement-breakpoint
create table market.candle_1h partition of market.candle for values in ('1h') partition by range (open_time);
--> statement-breakpoint
create table market.candle_6h partition of market.candle for values in ('6h') partition by range (open_time);
--> statement-breakpoint
create table market.candle_12h partition of market.candle for values in ('12h') partition by range (open_time);
--> statement-breakpoint
create table market.candle_24h partition of market.candle for values in ('24h') partition by range (open_time);
--> statement-breakpoint
-- Coverage is rewritten in place by every chunk: room on the page keeps those updates out of the indexes.
alter table market.series set (fillfactor = 70);
--> statement-breakpoint
-- Only one account can be the current one.
create unique index account_current on ops.account (is_current) where is_current;
--> statement-breakpoint
create function market.width_of(i market.candle_interval) returns interval
  language sql immutable strict parallel safe
  return case i
    when '5m'::market.candle_interval then interval '5 minutes'
    when '15m'::market.candle_interval then interval '15 minutes'
    when '30m'::market.candle_interval then interval '30 minutes'
    when '1h'::market.candle_interval then interval '1 hour'
    when '6h'::market.candle_interval then interval '6 hours'
    when '12h'::market.candle_interval then interval '12 hours'
    when '24h'::market.candle_interval then interval '24 hours'
  end;
--> statement-breakpoint
create function ops.seconds_of(i market.candle_interval) returns double precision
  language sql immutable strict parallel safe
  return case i
    when '5m'::market.candle_interval then 300.0::float8
    when '15m'::market.candle_interval then 900.0::float8
    when '30m'::market.candle_interval then 1800.0::float8
    when '1h'::market.candle_interval then 3600.0::float8
    when '6h'::market.candle_interval then 21600.0::float8
    when '12h'::market.candle_interval then 43200.0::float8
    when '24h'::market.candle_interval then 86400.0::float8
  end;
