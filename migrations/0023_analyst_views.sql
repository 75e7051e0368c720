-- For analysts: views that cost what their tables cost, coarser candles in market.candles, weeks and months, and UTC.

-- Not strict any more: a strict function over a CASE cannot be put into the statement that calls it, and was called for each row. Null gives null all the same.
create or replace function market.width_of(i market.candle_interval) returns interval
  language sql immutable parallel safe
  return case i
    when '5m'::market.candle_interval then interval '5 minutes'
    when '15m'::market.candle_interval then interval '15 minutes'
    when '30m'::market.candle_interval then interval '30 minutes'
    when '1h'::market.candle_interval then interval '1 hour'
    when '6h'::market.candle_interval then interval '6 hours'
    when '12h'::market.candle_interval then interval '12 hours'
    when '24h'::market.candle_interval then interval '24 hours'
    else make_interval(secs => ops.price_seconds(i))
  end;
comment on function market.width_of(market.candle_interval) is 'The width of a series as a Postgres interval, in hours, so that it means the same in every time zone. Example: select market.width_of(''6h'');';

-- Coarser candles of 6h, 12h and 24h are made ahead of time of all finer ones, so that market.candles has them at the cost of a table. They stand for
-- what is true now: what changes the candles, or which series has the word, removes them in the same transaction. Those of before may lie where another series has it.
truncate market.rollup, market.rollup_coverage;
alter table market.rollup_coverage drop constraint rollup_coverage_pkey;
alter table market.rollup_coverage add column interval market.candle_interval not null;
alter table market.rollup_coverage add constraint rollup_coverage_series_id_interval_pk primary key (series_id, interval);
comment on table market.rollup is 'Candles of 6h, 12h and 24h, each made of all final candles of one series in its slot, where neither a series of its own interval nor another coarser one says what the slot holds: what the service answers, made ahead. Analysts want the view market.candles, which has them.';
comment on table market.rollup_coverage is 'The spans of a series for which market.rollup has all candles of an interval. What changes the candles, or which series has the word, takes them out again. After you change candles by hand, delete the rows of their series: that removes the candles made of them, and the service makes them again.';
comment on column market.rollup_coverage.interval is 'Width of the coarser candles.';
comment on column market.rollup_coverage.spans is 'A slot that lies in it has its row in market.rollup, or no candle.';

create table market.calendar_candle (
  coin_id text not null constraint calendar_candle_coin_id_coin_id_fk references market.coin,
  quote text not null,
  period text not null,
  open_time timestamptz not null,
  open double precision,
  high double precision,
  low double precision,
  close double precision,
  volume double precision,
  market_cap double precision,
  slots integer not null,
  constraint calendar_candle_coin_id_quote_period_open_time_pk primary key (coin_id, quote, period, open_time),
  constraint calendar_candle_period check (period in ('week', 'month'))
);
comment on table market.calendar_candle is 'Candles of whole weeks and months, made of the daily candles of market.candles once all of them are final. The service makes them every hour, chandler backfill at its end. market.ohlcv has them too, and makes those that are not here.';
comment on column market.calendar_candle.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.calendar_candle.quote is 'Currency of the prices: usd or btc.';
comment on column market.calendar_candle.period is 'week (begins on Monday) or month.';
comment on column market.calendar_candle.open_time is 'Start of the week or month, in UTC.';
comment on column market.calendar_candle.open is 'Of the first day that has a candle.';
comment on column market.calendar_candle.high is 'The highest; null where a day has none.';
comment on column market.calendar_candle.low is 'The lowest; null where a day has none.';
comment on column market.calendar_candle.close is 'Of the last day that has a candle.';
comment on column market.calendar_candle.volume is 'The sum; null where a day has none.';
comment on column market.calendar_candle.market_cap is 'Of the last day that has a candle.';
comment on column market.calendar_candle.slots is 'How many days have a candle; the others are known to be empty.';

create table market.calendar_coverage (
  coin_id text not null constraint calendar_coverage_coin_id_coin_id_fk references market.coin,
  quote text not null,
  period text not null,
  spans tstzmultirange not null,
  constraint calendar_coverage_coin_id_quote_period_pk primary key (coin_id, quote, period),
  constraint calendar_coverage_period check (period in ('week', 'month'))
);
comment on table market.calendar_coverage is 'The spans for which market.calendar_candle has all candles. After you change candles by hand, delete the rows of their coin: that removes the candles made of them.';
comment on column market.calendar_coverage.coin_id is 'market.coin.id.';
comment on column market.calendar_coverage.quote is 'Currency of the prices.';
comment on column market.calendar_coverage.period is 'week or month.';
comment on column market.calendar_coverage.spans is 'A week or month that lies in it has its row in market.calendar_candle, or no candle.';

-- Without their coverage, candles that were made ahead would stay for ever.
create function ops.forget_rollups() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then
    delete from market.rollup;
  else
    delete from market.rollup r using gone g where r.series_id = g.series_id and r.interval = g.interval;
  end if;
  return null;
end
$$;
create trigger forgets after delete on market.rollup_coverage referencing old table as gone
  for each statement execute function ops.forget_rollups();
create trigger forgets_all after truncate on market.rollup_coverage for each statement execute function ops.forget_rollups();

create function ops.forget_calendar() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then
    delete from market.calendar_candle;
  else
    delete from market.calendar_candle c using gone g where c.coin_id = g.coin_id and c.quote = g.quote and c.period = g.period;
  end if;
  return null;
end
$$;
create trigger forgets after delete on market.calendar_coverage referencing old table as gone
  for each statement execute function ops.forget_calendar();
create trigger forgets_all after truncate on market.calendar_coverage for each statement execute function ops.forget_calendar();

create function market.slots_within(spans tstzmultirange, width interval) returns tstzmultirange
  language sql immutable parallel safe
  return coalesce((
    select range_agg(tstzrange(
      date_bin(width, lower(r) + width - interval '1 microsecond', timestamptz 'epoch'), date_bin(width, upper(r), timestamptz 'epoch')))
    from unnest(spans) r
    where date_bin(width, lower(r) + width - interval '1 microsecond', timestamptz 'epoch') < date_bin(width, upper(r), timestamptz 'epoch')), '{}');
comment on function market.slots_within(tstzmultirange, interval) is 'The slots of a width, on the grid of 1970 in UTC, that lie in these spans as a whole. Example: select market.slots_within(covered, interval ''1 day'') from market.coverage where coin_id = ''btc-bitcoin'';';

create function ops.periods_touched(spans tstzmultirange, period text) returns tstzmultirange
  language sql immutable parallel safe
  return coalesce((
    select range_agg(tstzrange(date_trunc(period, lower(r) at time zone 'UTC') at time zone 'UTC',
      (date_trunc(period, upper(r) at time zone 'UTC' - interval '1 microsecond') + ('1 ' || period)::interval) at time zone 'UTC'))
    from unnest(spans) r), '{}');
comment on function ops.periods_touched(tstzmultirange, text) is 'The weeks or months that these spans touch.';

create function ops.cut_rollups(of_series integer, changed tstzmultirange) returns void language plpgsql as $$
declare
  s record;
  made record;
begin
  select coin_id, quote, interval into s from market.series where id = of_series;
  -- All that this coin has, in one order: a transaction may cut twice.
  perform from market.series f join market.rollup_coverage c on c.series_id = f.id
    where f.coin_id = s.coin_id and f.quote = s.quote and exists (
      select from market.series g join market.rollup_coverage d on d.series_id = g.id
      where g.coin_id = s.coin_id and g.quote = s.quote and d.spans && changed)
    order by c.series_id, c.interval for update of c;
  if found then for made in
    select c.series_id, c.interval, ops.whole_slots(c.spans * changed, ops.seconds_of(c.interval)) as slots
    from market.series f join market.rollup_coverage c on c.series_id = f.id
    where f.coin_id = s.coin_id and f.quote = s.quote and c.spans && changed
      and (f.id = of_series or f.interval < s.interval and c.interval >= s.interval)
  loop
    update market.rollup_coverage c set spans = c.spans - made.slots where c.series_id = made.series_id and c.interval = made.interval;
    delete from market.rollup r where r.series_id = made.series_id and r.interval = made.interval
      and r.open_time >= lower(made.slots) and r.open_time < upper(made.slots) and made.slots @> r.open_time;
  end loop; end if;
  for made in
    select c.period, ops.periods_touched(c.spans * changed, c.period) as slots from market.calendar_coverage c
    where c.coin_id = s.coin_id and c.quote = s.quote and c.spans && changed
    order by c.period for update
  loop
    update market.calendar_coverage c set spans = c.spans - made.slots
      where c.coin_id = s.coin_id and c.quote = s.quote and c.period = made.period;
    delete from market.calendar_candle c where c.coin_id = s.coin_id and c.quote = s.quote and c.period = made.period
      and c.open_time >= lower(made.slots) and c.open_time < upper(made.slots) and made.slots @> c.open_time;
  end loop;
end
$$;
comment on function ops.cut_rollups(integer, tstzmultirange) is 'Removes the coarser candles that candles of this series in these spans have a part in: those made of them, and those that a series of this interval, or a coarser slot of it, takes the word from.';

-- Whoever changes what a series covers: a chunk, a mending, retention, a person.
create function ops.cut_of_changed_series() returns trigger language plpgsql as $$
declare
  changed tstzmultirange;
begin
  if new.coin_id <> old.coin_id then
    delete from market.rollup_coverage c using market.series s
      where s.id = c.series_id and s.quote = new.quote and s.coin_id in (old.coin_id, new.coin_id);
    delete from market.calendar_coverage where quote = new.quote and coin_id in (old.coin_id, new.coin_id);
    return null;
  end if;
  changed := (old.covered - new.covered) + (new.covered - old.covered);
  -- Each chunk of a backfill comes here, and most of them find nothing that was made.
  if exists (select from market.series f join market.rollup_coverage c on c.series_id = f.id
        where f.coin_id = new.coin_id and f.quote = new.quote and c.spans && changed)
      or exists (select from market.calendar_coverage c where c.coin_id = new.coin_id and c.quote = new.quote and c.spans && changed) then
    perform ops.cut_rollups(new.id, changed);
  end if;
  return null;
end
$$;
create trigger cuts_rollups after update of covered, coin_id on market.series for each row
  when (new.interval <= '24h' and (old.covered is distinct from new.covered or old.coin_id <> new.coin_id))
  execute function ops.cut_of_changed_series();

-- One list of tables inside, and the joins around it: only so can Postgres walk along the keys of all of them in the order of time.
create or replace view market.candles as
select
  s.coin_id,
  co.symbol,
  s.quote,
  c.interval,
  c.open_time,
  c.open_time + market.width_of(c.interval) - interval '1 second' as close_time,
  c.open,
  c.high,
  c.low,
  c.close,
  c.volume,
  c.market_cap,
  c.is_made or s.covered @> c.open_time as is_final,
  case when c.is_made then s.interval end as made_of,
  c.series_id
from (
  select series_id, interval, open_time, open, high, low, close, volume, market_cap, false as is_made from market.candle
  union all
  select series_id, interval, open_time, open, high, low, close, volume, market_cap, true from market.rollup
) c
join market.series s on s.id = c.series_id
join market.coin co on co.id = s.coin_id;
comment on view market.candles is 'Every candle with the coin it belongs to: stored ones, and those of 6h, 12h and 24h that are made of final finer ones (made_of) where upstream was not asked for them. Of any other width, 15m, 30m and 1h too, market.ohlcv makes them. Filter by coin_id (an id; market.coin_of(''BTC'') finds it), quote, interval (a literal, so that only its partitions are read) and open_time. The newest candle of each series is in market.latest.';
comment on column market.candles.volume is 'Volume, as upstream gives it. Whether it is the sum of the slot or of the last day, upstream does not say: market.volume_meaning() compares stored candles. Of made candles it is the sum, null where a part has none.';
comment on column market.candles.close_time is 'Last second of the candle, as upstream writes it: open_time + width - 1 second.';
comment on column market.candles.made_of is 'Of a candle that was made of finer ones: their interval. Null: it is as upstream answered it.';
comment on column market.candles.series_id is 'The series that it is stored in, or whose candles it is made of: market.series.id. By it and the interval (series_id = market.series_of(''BTC'', ''5m'') and interval = ''5m''), order by open_time desc limit 1 reads one row; by coin_id it reads all of the series.';
comment on column market.candle.volume is 'Volume, as upstream gives it: see market.candles.volume.';

-- A branch for each interval, so that each walks along the key of its own partitions from the newest backwards.
create view market.latest as
select n.coin_id, co.symbol, n.quote, n.interval, n.open_time, n.open_time + market.width_of(n.interval) - interval '1 second' as close_time,
  n.open, n.high, n.low, n.close, n.volume, n.market_cap, n.covered @> n.open_time as is_final, n.series_id
from (
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '5m' order by open_time desc limit 1) c
  where s.interval = '5m'
  union all
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '15m' order by open_time desc limit 1) c
  where s.interval = '15m'
  union all
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '30m' order by open_time desc limit 1) c
  where s.interval = '30m'
  union all
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '1h' order by open_time desc limit 1) c
  where s.interval = '1h'
  union all
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '6h' order by open_time desc limit 1) c
  where s.interval = '6h'
  union all
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '12h' order by open_time desc limit 1) c
  where s.interval = '12h'
  union all
  select s.id as series_id, s.coin_id, s.quote, s.interval, s.covered, c.*
  from market.series s cross join lateral (
    select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '24h' order by open_time desc limit 1) c
  where s.interval = '24h'
) n
join market.coin co on co.id = n.coin_id;
comment on view market.latest is 'The newest stored candle of each series, final or not; a series without a candle has no row. Costs a look-up for each series.';
comment on column market.latest.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.latest.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.latest.quote is 'Currency of the prices: usd or btc.';
comment on column market.latest.interval is 'Width of the candle: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
comment on column market.latest.open_time is 'Start of the candle.';
comment on column market.latest.close_time is 'Last second of the candle: open_time + width - 1 second. It lies in the future while the candle is open.';
comment on column market.latest.open is 'First price in the interval, in the quote currency.';
comment on column market.latest.high is 'Highest price in the interval.';
comment on column market.latest.low is 'Lowest price in the interval.';
comment on column market.latest.close is 'Last price in the interval.';
comment on column market.latest.volume is 'Volume, as upstream gives it: see market.candles.volume.';
comment on column market.latest.market_cap is 'Market capitalisation at the close.';
comment on column market.latest.is_final is 'False while the candle may still change.';
comment on column market.latest.series_id is 'market.series.id.';

-- Dates without a zone mean what the session's zone says. Sessions of analysts that say nothing get UTC, where that is ours to set.
create function ops.keep_utc() returns void language plpgsql as $$
declare
  db record;
begin
  select d.oid, pg_has_role(current_user, d.datdba, 'usage') as is_owned,
    exists (select from pg_db_role_setting s cross join unnest(s.setconfig) one
      where s.setdatabase = d.oid and s.setrole = 0 and one ilike 'timezone=%') as is_set,
    exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and n.nspname not in ('market', 'ops', 'bullmq', 'information_schema') and n.nspname !~ '^pg_') as is_shared
    into db from pg_database d where d.datname = current_database();
  -- What somebody has set stays, and a database that others have tables in keeps its zone: chandler doctor says so.
  if db.is_set or db.is_shared or not db.is_owned then
    return;
  end if;
  begin
    execute format('alter database %I set timezone to %L', current_database(), 'UTC');
  exception
    when others then raise notice 'the time zone of this database was not set: %', sqlerrm;
  end;
end
$$;
comment on function ops.keep_utc() is 'Makes UTC the time zone of sessions on this database that say nothing else. Called by every migrate.';
