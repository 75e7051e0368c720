-- Two answers that were wrong at their edges. To be merged into the next migration; the tests apply it until then.

-- A year has twelve months. A month of thirty days, as its seconds say, made the volatility of monthly returns 0.7 % too large.
create or replace function market.realized_volatility(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (volatility double precision, returns integer, holes integer)
  language sql stable parallel safe
as $$
  select stddev_samp(r.log_return) * sqrt(case when extract(year from width) * 12 + extract(month from width) > 0
      then 12 / (extract(year from width) * 12 + extract(month from width))::double precision
      else 31536000 / extract(epoch from width)::double precision end),
    count(r.log_return)::integer, count(*) filter (where r.log_return is null)::integer
  from market.returns(coin, width, from_time, to_time, quote) r
  -- A slot that ends after the span tells of what came later.
  where r.close_time + interval '1 second' <= (select case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end)
$$;
comment on function market.realized_volatility(text, anyelement, anycompatible, interval, text) is 'Annual volatility: the standard deviation of the logarithmic returns of candles of the width, times the root of how many of them a year has (of 365 days, or of 12 months). returns: how many count; holes: candles that have no return, because of a hole (see market.returns). Only slots that lie in the span as a whole. Example: select * from market.realized_volatility(''BTC'', ''2024-01-01'', ''2024-07-01'');';

-- With a negative max_fill the first slots were missing.
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
  if max_fill < interval '0' then
    raise exception using errcode = 'invalid_parameter_value', message = format('max_fill is %s, and must not be negative', max_fill);
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
