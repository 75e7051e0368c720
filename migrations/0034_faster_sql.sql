-- Statements on views and functions of at most a few milliseconds: what took longest of them was to plan them. The answers are the same.

-- A left join, which Postgres leaves out where a statement does not ask for the symbol. Each series has its coin: a foreign key says so.
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
left join market.coin co on co.id = s.coin_id;

-- The interval of each branch is a constant outside of its subquery, so that Postgres drops the branches of other intervals before it plans them. The
-- order says nothing: it keeps the subquery apart, and costs nothing, because all its rows have the same interval.
create or replace view market.latest as
select n.coin_id, co.symbol, n.quote, n.interval, n.open_time, n.open_time + market.width_of(n.interval) - interval '1 second' as close_time,
  n.open, n.high, n.low, n.close, n.volume, n.market_cap, n.covered @> n.open_time as is_final, n.series_id
from (
  select n.series_id, n.coin_id, n.quote, '5m'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '5m' order by open_time desc limit 1) c
    where s.interval = '5m' order by s.interval) n
  union all
  select n.series_id, n.coin_id, n.quote, '15m'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '15m' order by open_time desc limit 1) c
    where s.interval = '15m' order by s.interval) n
  union all
  select n.series_id, n.coin_id, n.quote, '30m'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '30m' order by open_time desc limit 1) c
    where s.interval = '30m' order by s.interval) n
  union all
  select n.series_id, n.coin_id, n.quote, '1h'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '1h' order by open_time desc limit 1) c
    where s.interval = '1h' order by s.interval) n
  union all
  select n.series_id, n.coin_id, n.quote, '6h'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '6h' order by open_time desc limit 1) c
    where s.interval = '6h' order by s.interval) n
  union all
  select n.series_id, n.coin_id, n.quote, '12h'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '12h' order by open_time desc limit 1) c
    where s.interval = '12h' order by s.interval) n
  union all
  select n.series_id, n.coin_id, n.quote, '24h'::market.candle_interval as interval, n.covered, n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap
  from (select s.id as series_id, s.coin_id, s.quote, s.covered, c.*
    from market.series s cross join lateral (
      select open_time, open, high, low, close, volume, market_cap from market.candle where series_id = s.id and interval = '24h' order by open_time desc limit 1) c
    where s.interval = '24h' order by s.interval) n
) n
left join market.coin co on co.id = n.coin_id;

-- To plan one statement, Postgres calls this for each partition: the usual case is one statement.
create or replace function market.series_of(coin text, "interval" market.candle_interval, quote text default 'usd') returns integer language plpgsql stable strict parallel safe as $$
declare
  of_coin text;
  id integer;
begin
  -- An id that names its coin as it does for coin_of.
  select s.id into id from market.series s
    where s.coin_id = coin and s.quote = series_of.quote and s.interval = series_of."interval" and not exists (
      select from market.coin_rename r join market.coin c on c.id = r.old_id where r.old_id = s.coin_id and not (c.is_active and c.last_seen_at > r.renamed_at));
  if found then
    return id;
  end if;
  of_coin := market.coin_of(coin);
  select s.id into id from market.series s where s.coin_id = of_coin and s.quote = series_of.quote and s.interval = series_of."interval";
  if not found then
    raise exception using errcode = 'invalid_parameter_value', message = format('there are no candles or prices of %s of %s in %s', series_of."interval", of_coin, quote),
      hint = coalesce('Stored are: ' || (select string_agg(s.interval || ' in ' || s.quote, ', ' order by s.quote desc, s.interval) from market.series s
        where s.coin_id = of_coin) || '. market.ohlcv makes wider candles of narrower ones.', 'Nothing is stored of this coin: chandler backfill fetches candles.');
  end if;
  return id;
end
$$;

-- An expression: a statement cost more than all that it computed. Each function for candles calls this, some three times.
create or replace function market.base_of(width interval) returns market.candle_interval language plpgsql immutable parallel safe as $$
declare
  months integer;
  seconds numeric;
  base market.candle_interval;
begin
  if isfinite(width) then
    months := extract(year from width) * 12 + extract(month from width);
    seconds := extract(epoch from width - make_interval(months => months));
    if months > 0 and seconds = 0 then
      return '24h';
    elsif months = 0 and seconds > 0 then
      base := case 0
        when mod(seconds, 86400) then '24h'
        when mod(seconds, 43200) then '12h'
        when mod(seconds, 21600) then '6h'
        when mod(seconds, 3600) then '1h'
        when mod(seconds, 1800) then '30m'
        when mod(seconds, 900) then '15m'
        when mod(seconds, 300) then '5m'
      end;
    end if;
  end if;
  if base is null then
    raise exception using errcode = 'invalid_parameter_value', message = format('no whole number of candles makes up a width of %s', coalesce(width::text, 'null')),
      hint = 'Give a multiple of 5 minutes (days and weeks are), or of whole months.';
  end if;
  return base;
end
$$;

-- Functions of PL/pgSQL keep their plans for the session. These two were planned with each statement that called them, or a function that needs them,
-- which took as long as the rest. Those that call market.returns stay as they are: where one of two coins is the same for all rows, its returns are
-- then computed once.
create or replace function market.returns(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, close double precision, previous_close double precision,
    simple_return double precision, log_return double precision, complete boolean)
  language plpgsql stable parallel safe cost 1000 as $$
#variable_conflict use_column
declare
  since constant timestamptz := market.utc(from_time);
begin
  return query
    select x.open_time, x.close_time, x.close, x.previous, x.at_end / nullif(x.previous, 0) - 1,
      case when x.at_end > 0 and x.previous > 0 then ln(x.at_end / x.previous) end,
      x.complete and x.at_end is not null and x.previous is not null
    from (
      select o.open_time, o.close_time, o.close, o.complete, case when o.is_closed then o.close end as at_end,
        case when lag(o.close_time) over w = o.open_time - interval '1 second' and lag(o.is_closed) over w then lag(o.close) over w end as previous
      from market.ohlcv_closed(coin, width, market.slot_of(width, market.slot_of(width, since) - interval '1 microsecond'), market.utc(to_time), quote) o
      window w as (order by o.open_time)
    ) x
    where x.open_time >= since or from_time is null
    order by x.open_time;
end
$$;

create or replace function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (drawdown double precision, peak_at timestamptz, trough_at timestamptz, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  since constant timestamptz := market.utc(from_time);
  until constant timestamptz := coalesce(nullif(market.utc(to_time), 'infinity'), now());
begin
  return query
    with closes as materialized (
      select o.open_time, o.close_time + interval '1 second' as at, o.close, max(o.close) over (order by o.open_time) as peak
      -- A slot that ends after the span tells of what came later.
      from market.ohlcv(coin, width, from_time, to_time, quote) o where o.close_time + interval '1 second' <= until
    ), deepest as (
      select c.at, c.peak, c.close / nullif(c.peak, 0) - 1 as fall from closes c where c.close is not null order by 3, 1 limit 1
    )
    select d.fall, (select max(c.at) from closes c where c.close = d.peak and c.at <= d.at), d.at, t.slots,
      coalesce(case when s.first < s.last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, s.last) end, false)
    from (select count(*)::integer as slots, min(c.open_time) as first_at from closes c) t
    cross join lateral (
      select case when isfinite(since) then market.slot_end(width, market.slot_of(width, since - interval '1 microsecond')) else t.first_at end as first,
        market.slot_of(width, until) as last
    ) s
    left join deepest d on true;
end
$$;

-- Its statement keeps its plan: to plan it takes as long as to run it. Only what is filled looks for what is carried.
create or replace function market.on_grid(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd',
    fill text default 'none', max_fill interval default null)
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean,
    filled_from timestamptz, reason text)
  language plpgsql stable parallel safe cost 1000 set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  of_coin constant text := market.coin_of(coin);
  since constant timestamptz := market.utc(from_time);
  until constant timestamptz := coalesce(nullif(market.utc(to_time), 'infinity'), now());
  base constant market.candle_interval := market.base_of(width);
  first timestamptz := market.slot_of(width, since);
  -- A width of months is as long as its slots are: three slots, whatever they are.
  reach constant interval := coalesce(max_fill, 3 * width);
  spans constant tstzmultirange := market.final_spans(of_coin, base, on_grid.quote);
  -- What is carried into the first slots lies before them.
  begins timestamptz;
  froms timestamptz[];
  tos timestamptz[];
  reasons text[];
  removed tstzmultirange;
begin
  if isfinite(since) is not true then
    raise exception using errcode = 'invalid_parameter_value', message = 'on_grid needs from_time: a calendar begins somewhere';
  end if;
  if fill is null or fill not in ('none', 'previous') then
    raise exception using errcode = 'invalid_parameter_value', message = format('%s is no way to fill', fill), hint = 'fill is none or previous.';
  end if;
  if not isfinite(max_fill) then
    raise exception using errcode = 'invalid_parameter_value', message = format('max_fill is %s, and must have an end', max_fill);
  end if;
  if first < since then
    first := market.slot_end(width, first);
  end if;
  begins := case when fill = 'none' then first else market.slot_of(width, (first at time zone 'UTC' - reach) at time zone 'UTC') end;
  -- The reasons are in a large view: only where they are needed.
  if first < until and not spans @> tstzrange(first, until) then
    select array_agg(g.gap_from), array_agg(g.gap_to), array_agg(g.reason) into froms, tos, reasons from market.gaps g
      where g.coin_id = of_coin and g.quote = on_grid.quote and g.gap_to > first and g.gap_from < until
        and g.interval = (select max(s.interval) from market.series s where s.coin_id = of_coin and s.quote = on_grid.quote and s.interval <= base);
    select range_agg(e.slots) into removed from market.series s join market.evidence e on e.series_id = s.id
      where s.coin_id = of_coin and s.quote = on_grid.quote and s.interval <= base and e.kind = 'retention' and e.slots && tstzrange(first, until);
  end if;
  return query
  with given as materialized (
    select o.* from market.ohlcv(of_coin, width, begins, until, on_grid.quote) o
  ), grid as (
    select g at time zone 'UTC' as slot, (g + width) at time zone 'UTC' as slot_end
    from generate_series(begins at time zone 'UTC', (until at time zone 'UTC') - interval '1 microsecond', width) g
  ), carry as (
    select h.slot, h.last_at, p.close as carried
    from (
      select g.slot, o.open_time is null as is_hole, max(o.open_time) filter (where o.close is not null) over (order by g.slot) as last_at
      from grid g left join given o on o.open_time = g.slot
      -- Else none of this is computed.
      where fill = 'previous'
    ) h
    join given p on p.open_time = h.last_at
    where h.is_hole and h.slot <= (h.last_at at time zone 'UTC' + reach) at time zone 'UTC'
  ), filled as (
    select g.slot, g.slot_end, o.open, o.high, o.low, o.close, o.volume, o.market_cap, o.slots,
      o.open_time is null as is_hole, spans @> tstzrange(g.slot, g.slot_end) as is_final, c.last_at, c.carried
    from grid g left join given o on o.open_time = g.slot left join carry c on c.slot = g.slot
    where g.slot >= first
    -- Or what is computed here would be computed each time that it is used below.
    offset 0
  )
  select r.slot, r.slot_end - interval '1 second',
    coalesce(r.open, r.carried), coalesce(r.high, r.carried), coalesce(r.low, r.carried), coalesce(r.close, r.carried),
    r.volume, r.market_cap, coalesce(r.slots, 0), r.is_final, case when r.carried is not null then r.last_at end,
    case when r.is_final and not r.is_hole then null
      when r.is_final then 'empty'
      else coalesce(
        (select min(g.reason) from unnest(froms, tos, reasons) g(gap_from, gap_to, reason) where g.gap_from < r.slot_end and g.gap_to > r.slot),
        case when r.slot_end > now() then 'not yet'
          when (select c.first_data_at >= r.slot_end from market.coin c where c.id = of_coin) then 'before its data'
          when removed && tstzrange(r.slot, r.slot_end) then 'retention'
          else 'not wanted' end)
    end
  from filled r
  order by 1;
end
$$;
