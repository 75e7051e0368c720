-- Functions about candle slots, and the triggers that count changes in ops.version and market.series.

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
comment on function market.width_of(market.candle_interval) is 'The width of a candle as an interval: width_of(''6h'') = 06:00:00.';

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

-- The only definition of a settled slot: status, gaps and the views use it.
create function ops.settled_until(i market.candle_interval) returns timestamptz
  language sql stable strict parallel safe
  return to_timestamp(floor(date_part('epoch', now()) / ops.seconds_of(i) - 1) * ops.seconds_of(i));
comment on function ops.settled_until(market.candle_interval) is 'Candles that open before this have closed at least one width ago: an answer about them is final.';

-- `chandler verify` offers this for what it finds wrong: a stretch that is not covered is a gap, and backfills fetch it again.
create function ops.uncover(which integer, from_time timestamptz default '-infinity', to_time timestamptz default 'infinity')
  returns void language plpgsql as $$
declare
  stretch constant tstzmultirange := tstzmultirange(tstzrange(from_time, to_time));
begin
  -- Waits for a transaction that stores an answer of this series, and holds up the next one.
  perform from market.series where id = which for update;
  if not found then
    raise exception 'no series has the number %', which;
  end if;
  -- Candles off the grid: no answer ever replaces them.
  delete from market.candle c using market.series s
    where s.id = which and c.series_id = s.id and c.interval = s.interval and stretch @> c.open_time
      and mod(extract(epoch from c.open_time), ops.seconds_of(s.interval)::numeric) <> 0;
  update market.series s
    set covered = s.covered - stretch,
      covered_candles = (
        select count(*) from market.candle c
        where c.series_id = s.id and c.interval = s.interval and (s.covered - stretch) @> c.open_time
      )
    where s.id = which;
end
$$;
comment on function ops.uncover(integer, timestamptz, timestamptz) is 'Takes a stretch of a series out of coverage, so that the next backfill requests it again: for what chandler verify found wrong. The candles stay until an answer replaces them, except those off the grid; the rest of the series is counted anew.';

-- Every update of a series changes its version.
create function ops.count_series_change() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;

create trigger counts_change before update on market.series for each row execute function ops.count_series_change();

-- Counts every statement, also one that changes no row. Used for market.ticker: each snapshot changes all its rows, and copies of
-- sixty thousand rows would cost more than they save.
create function ops.count_change() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into ops.version as v (topic, version) values (tg_table_name, 1)
    on conflict (topic) do update set version = v.version + 1;
  return null;
end
$$;

create trigger counts_change after insert or update or delete or truncate on market.ticker
  for each statement execute function ops.count_change();

-- Counts only a statement that changes a row: cached data stays valid when a snapshot has the same ranks again.
create function ops.count_rows() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  if exists (select from changed) then
    insert into ops.version as v (topic, version) values (tg_table_name, 1)
      on conflict (topic) do update set version = v.version + 1;
  end if;
  return null;
end
$$;

do $$
declare
  name text;
begin
  foreach name in array array['coin', 'global_history', 'exchange', 'coin_rename', 'contract', 'tag'] loop
    execute format('create trigger counts_new after insert on market.%I referencing new table as changed
      for each statement execute function ops.count_rows()', name);
    execute format('create trigger counts_changed after update on market.%I referencing new table as changed
      for each statement execute function ops.count_rows()', name);
    execute format('create trigger counts_gone after delete on market.%I referencing old table as changed
      for each statement execute function ops.count_rows()', name);
    -- A truncate has no transition table.
    execute format('create trigger counts_emptied after truncate on market.%I
      for each statement execute function ops.count_change()', name);
  end loop;
end
$$;

-- Counts changes of coins other than their ranks: every snapshot of tickers changes ranks, and they only move a coin in the list.
create function ops.count_names() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  if tg_op = 'UPDATE' then
    -- This trigger runs for each row, but one count in a transaction is enough; more would write new row versions without end.
    if current_setting('chandler.names_counted', true) = 'yes' then
      return null;
    end if;
    perform set_config('chandler.names_counted', 'yes', true);
  elsif tg_op = 'INSERT' then
    if not exists (select from changed) then
      return null;
    end if;
  end if;
  insert into ops.version as v (topic, version) values ('coin names', 1)
    on conflict (topic) do update set version = v.version + 1;
  return null;
end
$$;

create trigger names_new after insert on market.coin referencing new table as changed
  for each statement execute function ops.count_names();
-- For each row: a snapshot changes the ranks of tens of thousands of coins, and comparing each costs a quarter of keeping all twice.
create trigger names_changed after update on market.coin for each row
  when ((old.id, old.name, old.symbol, old.type, old.is_new, old.is_active)
    is distinct from (new.id, new.name, new.symbol, new.type, new.is_new, new.is_active))
  execute function ops.count_names();
create trigger names_gone after delete or truncate on market.coin for each statement execute function ops.count_names();

-- Counts the answers of the catalogue by kind: 'document coin', 'document person' …
create function ops.count_documents() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into ops.version as v (topic, version) select distinct 'document ' || kind, 1 from changed order by 1
    on conflict (topic) do update set version = v.version + 1;
  return null;
end
$$;
create trigger counts_new after insert on market.document referencing new table as changed
  for each statement execute function ops.count_documents();
create trigger counts_changed after update on market.document referencing new table as changed
  for each statement execute function ops.count_documents();
create trigger counts_gone after delete on market.document referencing old table as changed
  for each statement execute function ops.count_documents();
