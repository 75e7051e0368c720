-- What a fresh analyst found: numbers that looked whole and were not. Functions for analysts tell of holes inside of a slot, of a span that
-- nobody knows, and never of what came after the span.

-- market.ohlcv, which also tells whether a close is that of the slot.
create function market.ohlcv_closed(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean, is_closed boolean)
  language plpgsql stable parallel safe cost 1000 as $$
declare
  of_coin constant text := market.coin_of(coin);
  months constant integer := extract(year from width) * 12 + extract(month from width);
  seconds constant numeric := extract(epoch from width - make_interval(months => months));
  calendar constant text := case when months = 1 and seconds = 0 then 'month' when months = 0 and seconds = 604800 then 'week' end;
  since constant timestamptz := market.utc(from_time);
  until constant timestamptz := case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end;
  columns constant text := 'open_time, open, high, low, close, volume, market_cap';
  -- As the service makes them: null where a part is null, volumes added in the order of time.
  made constant text := '(array_agg(open order by open_time))[1] as open,
    nullif(max(coalesce(high, ''NaN'')), ''NaN'') as high, nullif(min(coalesce(low, ''-Infinity'')), ''-Infinity'') as low,
    (array_agg(close order by open_time))[count(*)] as close,
    case when max(coalesce(volume, ''NaN'')) <= 1e304 then sum(least(volume, 1e304) order by open_time) end as volume,
    (array_agg(market_cap order by open_time))[count(*)] as market_cap';
  base constant market.candle_interval := market.base_of(width);
  part constant interval := market.width_of(base);
  first timestamptz := '-infinity';
  last timestamptz := market.slot_of(width, until);
  wanted tstzmultirange;
  stretch tstzrange;
  s record;
  own integer;
  finer integer[] := '{}';
  known tstzmultirange := '{}';
  whole tstzmultirange;
  fresh tstzmultirange;
  ahead tstzmultirange := '{}';
  parts text[] := '{}';
  closed text := 'true';
  statement text;
begin
  if quote not in ('usd', 'btc') then
    raise exception using errcode = 'invalid_parameter_value', message = format('there are no candles in %s', quote),
      hint = 'Candles are in usd and btc. market.in_quote converts their closes.';
  end if;
  if last < until then
    last := market.slot_end(width, last);
  end if;
  if isfinite(since) then
    first := market.slot_of(width, since);
    if first < since then
      first := market.slot_end(width, first);
    end if;
  end if;
  if first >= last then
    return;
  end if;
  wanted := tstzmultirange(tstzrange(first, last));
  if calendar is not null then
    ahead := wanted * coalesce((select c.spans from market.calendar_coverage c
      where c.coin_id = of_coin and c.quote = ohlcv_closed.quote and c.period = calendar), '{}');
    -- Else every part of it would be a statement of its own.
    if (select count(*) from unnest(wanted - ahead)) > 4 then
      ahead := '{}';
    end if;
    wanted := wanted - ahead;
  end if;
  for s in
    select t.id, t.interval, t.covered, r.spans from market.series t
    left join market.rollup_coverage r on r.series_id = t.id and r.interval = base
    where t.coin_id = of_coin and t.quote = ohlcv_closed.quote and t.interval <= base order by t.interval desc
  loop
    if s.interval = base then
      own := s.id;
      known := s.covered;
    else
      finer := finer || s.id;
      whole := market.slots_within(s.covered, market.width_of(base));
      fresh := (whole - known - coalesce(s.spans, '{}')) * wanted;
      known := known + whole;
      if not isempty(fresh) then
        parts := parts || (format('select slot as open_time, open, high, low, close, volume, market_cap from (
          select market.slot_of(%L, open_time) as slot, %s from market.candle where series_id = %s and interval = %L
            and open_time >= %L and open_time < %L and %L::tstzmultirange @> open_time group by 1) made',
          market.width_of(base), made, s.id, s.interval, lower(fresh), upper(fresh), fresh)
          -- A candle of upstream that is not final yet comes before one that is made.
          || case when own is not null then format(
            ' where not exists (select from market.candle o where o.series_id = %s and o.interval = %L and o.open_time = slot)', own, base) else '' end);
      end if;
    end if;
  end loop;
  for stretch in select unnest(wanted) loop
    if own is not null then
      parts := parts || format('select %s from market.candle where series_id = %s and interval = %L and open_time >= %L and open_time < %L',
        columns, own, base, lower(stretch), upper(stretch));
    end if;
    if cardinality(finer) > 0 then
      parts := parts || format('select %s from market.rollup where series_id = any(%L::integer[]) and interval = %L and open_time >= %L and open_time < %L',
        columns, finer, base, lower(stretch), upper(stretch));
    end if;
  end loop;
  if cardinality(parts) > 0 then
    statement := case
      when seconds = extract(epoch from market.width_of(base)) then
        -- No month: an interval of seconds is as long in each time zone. Both constants are for the many rows of a year of hours.
        'select open_time, open_time + $4, open, high, low, close, volume, market_cap, 1, '
          || case when known @> tstzrange(first, last) then 'true' else '$2 @> open_time' end || ', true from (%2$s) part'
      else 'select slot, market.slot_end($1, slot) - interval ''1 second'', open, high, low, close, volume, market_cap, slots,
          $2 @> tstzrange(slot, market.slot_end($1, slot)), last_at = market.slot_end($1, slot) - $3
        from (select market.slot_of($1, open_time) as slot, %1$s, count(*)::integer as slots, max(open_time) as last_at from (%2$s) part group by 1) made'
      end;
    statement := format(statement, made, array_to_string(parts, ' union all '));
  end if;
  if not isempty(ahead) then
    -- Those that have all parts have the last one. Of the others, it is looked up.
    if exists (select from market.calendar_candle c where c.coin_id = of_coin and c.quote = ohlcv_closed.quote and c.period = calendar
        and c.open_time >= lower(ahead) and c.open_time < upper(ahead) and c.slots * part < market.slot_end(width, c.open_time) - c.open_time) then
      closed := format('slots * $3 = market.slot_end($1, open_time) - open_time or market.slot_end($1, open_time) - $3 in (
        select p.open_time from market.candle p where p.series_id = %L and p.interval = %L and p.open_time >= %L and p.open_time < %L
        union all select p.open_time from market.rollup p where p.series_id = any(%L::integer[]) and p.interval = %2$L and p.open_time >= %3$L and p.open_time < %4$L)',
        own, base, lower(ahead), upper(ahead), finer);
    end if;
    statement := concat_ws(' union all ', statement, format('select open_time, market.slot_end($1, open_time) - interval ''1 second'', open, high, low, close, volume, market_cap, slots, true, %s
      from market.calendar_candle where coin_id = %L and quote = %L and period = %L and open_time >= %L and open_time < %L',
      closed, of_coin, quote, calendar, lower(ahead), upper(ahead)));
  end if;
  if statement is not null then
    return query execute statement || ' order by 1' using width, known, part, make_interval(secs => seconds::double precision - 1);
  end if;
end
$$;
comment on function market.ohlcv_closed(text, interval, anyelement, anycompatible, text) is 'Candles as market.ohlcv gives them, and is_closed: the last part of the slot has a candle, so close is the close of the slot. False for a month whose last day has none, or is not over. Example: select open_time, close, is_closed from market.ohlcv_closed(''BTC'', ''1 week'', ''2024-01-01'', ''2024-03-01'');';

create or replace function market.ohlcv(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean)
  language sql stable parallel safe cost 1000
as $$
  select o.open_time, o.close_time, o.open, o.high, o.low, o.close, o.volume, o.market_cap, o.slots, o.complete
  from market.ohlcv_closed(coin, width, from_time, to_time, quote) o
$$;

-- Its instants of other types, as 0024 makes them.
do $$
declare
  f constant regprocedure := 'market.ohlcv_closed(text, interval, anyelement, anycompatible, text)';
  kinds text[];
  declared text;
begin
  for kinds in select array[k.first, k.second] from (values ('text', 'text'), ('text', 'anyelement'), ('anyelement', 'text')) k(first, second) loop
    declared := regexp_replace(pg_get_function_arguments(f), '\manyelement', kinds[1]);
    declared := regexp_replace(declared, '\manycompatible( DEFAULT now\(\))?', kinds[2] || case when kinds[2] = 'text' then '' else '\1' end);
    execute format('create function market.ohlcv_closed(%s) returns %s language sql stable parallel safe as $f$
      select * from market.ohlcv_closed($1, $2, market.utc($3), market.utc($4), $5) $f$', declared, pg_get_function_result(f));
    execute format('comment on function market.ohlcv_closed(text, interval, %s, %s, text) is %L', kinds[1], kinds[2],
      'As the other functions of this name: text without a zone, dates and timestamps are in UTC.');
  end loop;
end
$$;

create or replace function market.returns(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, close double precision, previous_close double precision,
    simple_return double precision, log_return double precision, complete boolean)
  language sql stable parallel safe
as $$
  select x.open_time, x.close_time, x.close, x.previous, x.at_end / nullif(x.previous, 0) - 1,
    case when x.at_end > 0 and x.previous > 0 then ln(x.at_end / x.previous) end,
    x.complete and x.at_end is not null and x.previous is not null
  from (
    select o.open_time, o.close_time, o.close, o.complete, case when o.is_closed then o.close end as at_end,
      case when lag(o.close_time) over w = o.open_time - interval '1 second' and lag(o.is_closed) over w then lag(o.close) over w end as previous
    from market.ohlcv_closed(coin, width, market.slot_of(width, market.slot_of(width, market.utc(from_time)) - interval '1 microsecond'), market.utc(to_time), quote) o
    window w as (order by o.open_time)
  ) x
  -- Once, not for each row: a text is read with the zone set to UTC.
  where x.open_time >= (select market.utc(from_time)) or from_time is null
  order by x.open_time
$$;
comment on function market.returns(text, interval, anyelement, anycompatible, text) is 'Returns from close to close, of candles as market.ohlcv gives them. Null where the slot before has no candle, and where the last part of this slot or of the one before has none (a month without its last day, one that is not over): a return never spans a hole. previous_close is then null, too, unless this slot alone lacks its end. complete: the candle is complete, and both closes are there. Example: select open_time, simple_return from market.returns(''BTC'', ''1 month'', ''2024-01-01'', ''2024-06-01'');';

create or replace function market.vwap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (vwap double precision, volume double precision, slots integer, complete boolean)
  language sql stable parallel safe
as $$
  with asked as materialized (
    select market.utc(from_time) as since, case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end as until
  )
  select t.vwap, t.volume, t.slots,
    coalesce(case when s.first < s.last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, s.last) end, false)
  from asked a
  cross join lateral (
    select case when count(*) = count(o.volume) then sum(o.volume * (o.high + o.low + o.close) / 3 order by o.open_time) / nullif(sum(o.volume order by o.open_time), 0) end as vwap,
      case when count(*) = count(o.volume) then sum(o.volume order by o.open_time) end as volume,
      count(*)::integer as slots, min(o.open_time) as first_at
    -- A slot that ends after the span tells of what came later.
    from market.ohlcv(coin, width, from_time, to_time, quote) o where o.close_time + interval '1 second' <= a.until
  ) t
  cross join lateral (
    select case when isfinite(a.since) then market.slot_end(width, market.slot_of(width, a.since - interval '1 microsecond')) else t.first_at end as first,
      market.slot_of(width, a.until) as last
  ) s
$$;
comment on function market.vwap(text, anyelement, anycompatible, interval, text) is 'Average price, weighted by volume: the mean of high, low and close of each candle of the width, the narrower the better. Null where a volume is unknown. It means something only if volumes are those of their slots: see market.volume_meaning. slots: candles, of slots that lie in the span as a whole; complete: each slot of the span is final, with a candle or known to be empty. Example: select * from market.vwap(''BTC'', ''2024-06-01'', ''2024-07-01'', ''1 hour'');';

create or replace function market.twap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (twap double precision, slots integer, complete boolean)
  language sql stable parallel safe
as $$
  with asked as materialized (
    select market.utc(from_time) as since, case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end as until
  )
  select t.twap, t.slots,
    coalesce(case when s.first < s.last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, s.last) end, false)
  from asked a
  cross join lateral (
    select avg((o.open + o.high + o.low + o.close) / 4 order by o.open_time) as twap,
      count(*)::integer as slots, min(o.open_time) as first_at
    -- A slot that ends after the span tells of what came later.
    from market.ohlcv(coin, width, from_time, to_time, quote) o where o.close_time + interval '1 second' <= a.until
  ) t
  cross join lateral (
    select case when isfinite(a.since) then market.slot_end(width, market.slot_of(width, a.since - interval '1 microsecond')) else t.first_at end as first,
      market.slot_of(width, a.until) as last
  ) s
$$;
comment on function market.twap(text, anyelement, anycompatible, interval, text) is 'Average price over time: the mean of open, high, low and close of each candle of the width, all with the same weight. slots: candles, of slots that lie in the span as a whole; complete: each slot of the span is final, with a candle or known to be empty. Example: select * from market.twap(''BTC'', ''2024-06-01'', ''2024-07-01'', ''1 hour'');';

create or replace function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (drawdown double precision, peak_at timestamptz, trough_at timestamptz, slots integer, complete boolean)
  language sql stable parallel safe
as $$
  with asked as materialized (
    select market.utc(from_time) as since, case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end as until
  ), closes as materialized (
    select o.open_time, o.close_time + interval '1 second' as at, o.close, max(o.close) over (order by o.open_time) as peak
    -- A slot that ends after the span tells of what came later.
    from market.ohlcv(coin, width, from_time, to_time, quote) o where o.close_time + interval '1 second' <= (select a.until from asked a)
  ), deepest as (
    select c.at, c.peak, c.close / nullif(c.peak, 0) - 1 as fall from closes c where c.close is not null order by 3, 1 limit 1
  )
  select d.fall, (select max(c.at) from closes c where c.close = d.peak and c.at <= d.at), d.at, t.slots,
    coalesce(case when s.first < s.last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, s.last) end, false)
  from asked a
  cross join (select count(*)::integer as slots, min(c.open_time) as first_at from closes c) t
  cross join lateral (
    select case when isfinite(a.since) then market.slot_end(width, market.slot_of(width, a.since - interval '1 microsecond')) else t.first_at end as first,
      market.slot_of(width, a.until) as last
  ) s
  left join deepest d on true
$$;
comment on function market.max_drawdown(text, anyelement, anycompatible, interval, text) is 'The deepest fall from a highest close to a later one, as a fraction (-0.5 is half), with the closes between which it was; 0 where no close is below an earlier one. slots: candles, of slots that lie in the span as a whole; complete: each slot of the span is final, with a candle or known to be empty. Example: select * from market.max_drawdown(''BTC'', ''2024-01-01'', ''2024-07-01'');';

create or replace function market.realized_volatility(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (volatility double precision, returns integer, holes integer)
  language sql stable parallel safe
as $$
  select stddev_samp(r.log_return) * sqrt(31536000 / extract(epoch from width)::double precision),
    count(r.log_return)::integer, count(*) filter (where r.log_return is null)::integer
  from market.returns(coin, width, from_time, to_time, quote) r
  -- A slot that ends after the span tells of what came later.
  where r.close_time + interval '1 second' <= (select case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end)
$$;
comment on function market.realized_volatility(text, anyelement, anycompatible, interval, text) is 'Annual volatility: the standard deviation of the logarithmic returns of candles of the width, times the root of how many of them a year of 365 days has. returns: how many count; holes: candles that have no return, because of a hole (see market.returns). Only slots that lie in the span as a whole. Example: select * from market.realized_volatility(''BTC'', ''2024-01-01'', ''2024-07-01'');';

create or replace function market.correlation(coin text, other_coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (correlation double precision, pairs integer)
  language sql stable parallel safe
as $$
  select corr(a.log_return, b.log_return), count(*)::integer
  from market.returns(coin, width, from_time, to_time, quote) a
  join market.returns(other_coin, width, from_time, to_time, quote) b on b.open_time = a.open_time
  where a.log_return is not null and b.log_return is not null
    and a.close_time + interval '1 second' <= (select case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end)
$$;
comment on function market.correlation(text, text, anyelement, anycompatible, interval, text) is 'Correlation of the logarithmic returns of two coins, of the slots in which both have one (pairs: how many). Only slots that lie in the span as a whole. Example: select * from market.correlation(''BTC'', ''ETH'', ''2024-01-01'', ''2024-07-01'');';

comment on function market.ohlcv(text, interval, anyelement, anycompatible, text) is 'Candles of any width that a whole number of stored slots makes up: 45 minutes, 1 day, 1 week (from Monday), 3 months. Each is made of the candles of market.candles of the widest interval that divides it; those that were not made ahead are made now, and are the same. from_time and to_time say which slots open (null: from the first, until now); each candle is of its whole slot, so the last one may reach beyond to_time (a backtest that must not look ahead asks for close_time < its instant). slots: how many of its parts have a candle; complete: all of its parts are final, with a candle or known to be empty; high, low and volume are null where a part has none. A part that the widest interval knows to be empty stays empty, whatever a finer one has; of finer candles only whole parts are made, so a width that is an interval itself (1 day) has no candle of a slot that is not over. Nothing is stored: no rows, and market.condition says why. Dates, and text without a zone, are UTC. Example: select * from market.ohlcv(''BTC'', ''1 week'', ''2024-01-01'', ''2024-03-01'');';

create or replace function market.price_at(coin text, at anyelement, max_age interval default '1 day', quote text default 'usd')
  returns table (price double precision, source text, priced_at timestamptz, age interval)
  language plpgsql stable parallel safe rows 1 cost 1000 set plan_cache_mode = force_generic_plan as $$
declare
  of_coin constant text := market.coin_of(coin);
  instant constant timestamptz := market.utc(at);
  oldest constant timestamptz := instant - make_interval(secs => extract(epoch from max_age)::double precision);
  found_at timestamptz;
  own record;
  newest record;
begin
  -- A statement for each interval, so that each reads the partitions of its own, and keeps its plan.
  for own in
    select t.id, t.interval from market.series t
    where t.coin_id = of_coin and t.quote = price_at.quote and t.interval <= '24h' order by t.interval
  loop
    case own.interval
      when '5m' then select p.open_time + interval '5 minutes' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '5m' and p.close is not null
          and p.open_time <= instant - interval '5 minutes' and p.open_time >= oldest - interval '5 minutes' order by p.open_time desc limit 1;
      when '15m' then select p.open_time + interval '15 minutes' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '15m' and p.close is not null
          and p.open_time <= instant - interval '15 minutes' and p.open_time >= oldest - interval '15 minutes' order by p.open_time desc limit 1;
      when '30m' then select p.open_time + interval '30 minutes' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '30m' and p.close is not null
          and p.open_time <= instant - interval '30 minutes' and p.open_time >= oldest - interval '30 minutes' order by p.open_time desc limit 1;
      when '1h' then select p.open_time + interval '1 hour' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '1h' and p.close is not null
          and p.open_time <= instant - interval '1 hour' and p.open_time >= oldest - interval '1 hour' order by p.open_time desc limit 1;
      when '6h' then select p.open_time + interval '6 hours' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '6h' and p.close is not null
          and p.open_time <= instant - interval '6 hours' and p.open_time >= oldest - interval '6 hours' order by p.open_time desc limit 1;
      when '12h' then select p.open_time + interval '12 hours' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '12h' and p.close is not null
          and p.open_time <= instant - interval '12 hours' and p.open_time >= oldest - interval '12 hours' order by p.open_time desc limit 1;
      when '24h' then select p.open_time + interval '24 hours' as closed_at, p.close into newest from market.candle p
        where p.series_id = own.id and p.interval = '24h' and p.close is not null
          and p.open_time <= instant - interval '24 hours' and p.open_time >= oldest - interval '24 hours' order by p.open_time desc limit 1;
    end case;
    if newest.closed_at > priced_at or priced_at is null and newest.closed_at is not null then
      price := newest.close;
      source := own.interval || ' candle';
      priced_at := newest.closed_at;
    end if;
  end loop;
  if quote = 'usd' and priced_at is distinct from instant then
    select h.at into found_at from market.ticker_history h
      where h.coin_id = of_coin and h.price is not null and h.at <= instant and h.at >= greatest(oldest, priced_at)
      order by h.at desc limit 1;
    -- When it was read says what was known; how old the price is, only when upstream updated it.
    if found_at is not null then
      select h.price, least(h.updated_at, h.at) as updated_at into newest from market.ticker_history h where h.coin_id = of_coin and h.at = found_at;
      if newest.updated_at >= oldest and (priced_at is null or newest.updated_at > priced_at) then
        price := newest.price;
        source := 'ticker';
        priced_at := newest.updated_at;
      end if;
    end if;
  end if;
  -- A mean of its span, known when that has ended.
  if priced_at is null then
    select p.price, 'mean of ' || substr(s.interval::text, 8), p.time + market.width_of(s.interval) into price, source, priced_at
      from market.series s
      cross join lateral (
        select q.time, q.price from market.price q
        where q.series_id = s.id and q.price is not null
          and q.time <= instant - market.width_of(s.interval) and q.time >= oldest - market.width_of(s.interval)
        order by q.time desc limit 1
      ) p
      where s.coin_id = of_coin and s.quote = price_at.quote and s.interval > '24h'
      order by 3 desc, s.interval limit 1;
  end if;
  age := instant - priced_at;
  return next;
end
$$;
comment on function market.price_at(text, anyelement, interval, text) is 'What a coin was worth at an instant, by what had closed until then: the close of the youngest candle of any interval, or a younger ticker (usd); a price series (the mean of a span) only where there is neither. source says which, age how old it was: a ticker that had been read by then is as old as the upstream said when it updated it. Always one row: price is null when nothing is younger than max_age. Example: select * from market.price_at(''BTC'', ''2024-06-30 12:00'');';

-- What is not known when is nothing: null gave what is known today.
create or replace function market.candles_as_known(at timestamptz)
  returns table (coin_id text, symbol text, quote text, "interval" market.candle_interval, open_time timestamptz, close_time timestamptz,
    open double precision, high double precision, low double precision, close double precision, volume double precision,
    market_cap double precision, is_final boolean, known_at timestamptz)
  language sql stable parallel safe
begin atomic
  select s.coin_id, co.symbol, s.quote, s.interval, c.open_time,
    c.open_time + market.width_of(s.interval) - interval '1 second' as close_time,
    c.open, c.high, c.low, c.close, c.volume, c.market_cap, true as is_final,
    (select n.known_at from ops.step_about(s.id, s.interval, c.open_time, k.step) n) as known_at
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, candles_as_known.at) k
  join market.candle c on c.series_id = s.id and c.interval = s.interval
    and c.open_time >= lower(k.unchanged) and c.open_time < upper(k.unchanged) and k.unchanged @> c.open_time
  where s.interval <= '24h' and candles_as_known.at is not null
  union all
  select s.coin_id, co.symbol, s.quote, s.interval, r.open_time,
    r.open_time + market.width_of(s.interval) - interval '1 second',
    r.open, r.high, r.low, r.close, r.volume, r.market_cap, true,
    (select n.known_at from ops.step_about(s.id, s.interval, r.open_time, k.step) n)
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, candles_as_known.at) k
  cross join lateral (
    select v.* from market.revision v
    where v.series_id = s.id and v.step > k.step and k.final @> v.open_time and not v.was_empty
      -- The first step after `at` that is about the slot. Steps that remove leave no revision where there was no candle.
      and not exists (select from market.revision w
        where w.series_id = v.series_id and w.open_time = v.open_time and w.step > k.step and w.step < v.step)
      and not exists (select from market.evidence e
        where e.series_id = s.id and e.kind in ('mended', 'retention') and e.number > k.step and e.number < v.step and e.slots @> v.open_time)
    offset 0
  ) r
  where s.interval <= '24h' and candles_as_known.at is not null;
end;
comment on function market.candles_as_known(timestamptz) is 'The candles that were final at an instant, with the values that they had then, and since when each was known (known_at). To the second: what was stored within the second of the instant was known. Columns as in market.candles, without made_of and series_id: only stored candles, none that were made of finer ones. A coin has its id and symbol of today. Not kept, and so not here: values that were not final then, and candles that were removed because of their age. No rows where the instant is null. Example: select * from market.candles_as_known(''2026-03-01'') where coin_id = ''btc-bitcoin'' and interval = ''24h'';';

create or replace function market.prices_as_known(at timestamptz)
  returns table (coin_id text, symbol text, quote text, "interval" text, "time" timestamptz, price double precision,
    volume_24h double precision, market_cap double precision, is_final boolean, known_at timestamptz)
  language sql stable parallel safe
begin atomic
  select s.coin_id, co.symbol, s.quote, substr(s.interval::text, 8) as "interval", c.time, c.price, c.volume_24h, c.market_cap, true as is_final,
    (select n.known_at from ops.step_about(s.id, s.interval, c.time, k.step) n) as known_at
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, prices_as_known.at) k
  join market.price c on c.series_id = s.id
    and c.time >= lower(k.unchanged) and c.time < upper(k.unchanged) and k.unchanged @> c.time
  where s.interval > '24h' and prices_as_known.at is not null
  union all
  select s.coin_id, co.symbol, s.quote, substr(s.interval::text, 8), r.open_time, r.close, r.volume, r.market_cap, true,
    (select n.known_at from ops.step_about(s.id, s.interval, r.open_time, k.step) n)
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, prices_as_known.at) k
  cross join lateral (
    select v.* from market.revision v
    where v.series_id = s.id and v.step > k.step and k.final @> v.open_time and not v.was_empty
      -- The first step after `at` that is about the slot. Steps that remove leave no revision where there was no candle.
      and not exists (select from market.revision w
        where w.series_id = v.series_id and w.open_time = v.open_time and w.step > k.step and w.step < v.step)
      and not exists (select from market.evidence e
        where e.series_id = s.id and e.kind in ('mended', 'retention') and e.number > k.step and e.number < v.step and e.slots @> v.open_time)
    offset 0
  ) r
  where s.interval > '24h' and prices_as_known.at is not null;
end;
comment on function market.prices_as_known(timestamptz) is 'The prices that were final at an instant, with the values that they had then, and since when each was known (known_at). As market.candles_as_known, for market.prices. No rows where the instant is null. Example: select * from market.prices_as_known(''2026-03-01'') where coin_id = ''btc-bitcoin'' and interval = ''1d'';';

create or replace function market.event_study(coin text, at anyelement, before integer default 5, after integer default 10, width interval default '1 day',
    benchmark text default 'btc-bitcoin', quote text default 'usd')
  returns table (step integer, open_time timestamptz, close double precision, change double precision, benchmark_change double precision, abnormal double precision)
  language plpgsql stable parallel safe cost 1000 as $$
#variable_conflict use_column
declare
  of_coin constant text := market.coin_of(coin);
  of_benchmark constant text := market.coin_of(benchmark);
  zero constant timestamp := market.slot_of(width, market.utc(at)) at time zone 'UTC';
  first constant timestamptz := (zero - (greatest(before, 1) * width)) at time zone 'UTC';
  last constant timestamptz := (zero + ((after + 1) * width)) at time zone 'UTC';
begin
  if before < 0 or after < 0 then
    raise exception using errcode = 'invalid_parameter_value', message = 'before and after are numbers of slots, not negative';
  end if;
  if zero is null then
    return;
  end if;
  return query
  with closes as materialized (
    select g.n as step, (zero + g.n * width) at time zone 'UTC' as slot, o.close, b.close as of_benchmark
    from generate_series(-greatest(before, 1), after) g(n)
    left join market.ohlcv(of_coin, width, first, last, event_study.quote) o on o.open_time = (zero + g.n * width) at time zone 'UTC'
    left join market.ohlcv(of_benchmark, width, first, last, event_study.quote) b on b.open_time = (zero + g.n * width) at time zone 'UTC'
  ), changes as (
    select c.*, c.close / nullif(r.close, 0) - 1 as change, c.of_benchmark / nullif(r.of_benchmark, 0) - 1 as benchmark_change
    from closes c left join closes r on r.step = -1
  )
  select c.step, c.slot, c.close, c.change, c.benchmark_change, c.change - c.benchmark_change from changes c where c.step >= -before order by 1;
end
$$;
comment on function market.event_study(text, anyelement, integer, integer, interval, text, text) is 'How the price of a coin moved around an event: step 0 is the slot that holds it, and change is against the last close before that slot (step -1). abnormal is what the benchmark does not explain: change less benchmark_change. Null where a candle is missing; no rows where the instant is null. For many events: market.coin_event cross join lateral market.event_study(coin_id, at). Example: select step, change, abnormal from market.event_study(''ETH'', ''2024-05-20'');';

create or replace function market.condition(coin text, "interval" market.candle_interval, day date, quote text default 'usd')
  returns table (condition text, reason text, detail text, slots integer, final_slots integer, rows integer, next_ask_at timestamptz)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  of_coin constant text := market.coin_of(coin);
  width constant interval := market.width_of("interval");
  begins constant timestamptz := market.slot_of(width, market.utc(day));
  ends constant timestamptz := greatest(market.utc(day + 1), market.slot_end(width, begins));
  own record;
  gap record;
  final tstzmultirange := market.final_spans(of_coin, condition."interval", condition.quote) * tstzmultirange(tstzrange(begins, ends));
begin
  if day is null or "interval" is null then
    return;
  end if;
  slots := extract(epoch from ends - begins) / extract(epoch from width);
  final_slots := (select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0) / extract(epoch from width) from unnest(final) r);
  select s.id, s.interval, s.covered, s.wanted into own from market.series s
    where s.coin_id = of_coin and s.quote = condition.quote and s.interval = condition."interval";
  if condition."interval" > '24h' then
    rows := (select count(*) from market.price p where p.series_id = own.id and p.time >= begins and p.time < ends);
  else
    rows := (select count(*) from market.ohlcv(of_coin, width, begins, ends, condition.quote));
  end if;
  if final_slots = slots then
    condition := 'available';
    reason := 'final';
    detail := case when rows < slots and (own.covered @> tstzrange(begins, ends)) is true then 'slots without a row are known to be empty'
      when (own.covered @> tstzrange(begins, ends)) is not true then 'made of candles of a narrower interval' end;
    return next;
    return;
  end if;
  -- Of its own series or, where there is none, of the widest finer one: what is missing first.
  select g.reason, g.detail, g.next_ask_at into gap from market.gaps g
    where g.coin_id = of_coin and g.quote = condition.quote and g.gap_from < ends and g.gap_to > begins
      and (g.interval = condition."interval" or own.id is null and g.interval < condition."interval" and condition."interval" <= '24h')
    order by g.interval desc, g.gap_from limit 1;
  if gap.reason is not null then
    reason := gap.reason;
    detail := gap.detail;
    next_ask_at := gap.next_ask_at;
    condition := case
      when final_slots > 0 then 'partial'
      -- Whatever Chandler asks again by itself may still come.
      when reason in ('history limit', 'interval', 'unknown coin', 'forbidden', 'bad request') or next_ask_at = 'infinity' then 'missing'
      else 'pending' end;
  elsif begins >= now() then
    condition := 'pending';
    reason := 'not yet';
    detail := 'the day has not begun';
  elsif final_slots > 0 or ends > now() and (own.wanted @> begins) is true then
    condition := case when final_slots > 0 then 'partial' else 'pending' end;
    reason := case when ends > now() then 'not yet' else 'not wanted' end;
    detail := case when ends > now() then 'the day is not over' else 'nobody asked for the rest of the day' end;
  else
    condition := 'missing';
    select 'before its data', 'the upstream has data of this coin since ' || to_char(c.first_data_at at time zone 'UTC', 'YYYY-MM-DD')
      into reason, detail from market.coin c where c.id = of_coin and c.first_data_at >= ends;
    if reason is null and exists (select from market.series f join market.evidence e on e.series_id = f.id
        where f.coin_id = of_coin and f.quote = condition.quote
          and (f.id = own.id or own.id is null and f.interval < condition."interval" and condition."interval" <= '24h')
          and e.kind = 'retention' and e.slots && tstzrange(begins, ends)) then
      reason := 'retention';
      detail := 'it was removed because of its age';
    end if;
    if reason is null then
      reason := 'not wanted';
      detail := case when own.id is not null then 'nobody asked for this day'
        when exists (select from market.series f where f.coin_id = of_coin and f.quote = condition.quote and f.interval < condition."interval" and condition."interval" <= '24h')
          then 'there is no such series, and nobody asked for all of this day at a finer interval'
        else 'there is no such series, and none that is finer' end;
    end if;
  end if;
  return next;
end
$$;
comment on function market.condition(text, market.candle_interval, date, text) is 'What there is of a UTC day of a series: available (each slot is final), partial (some are), pending (none yet, and it may still come) or missing, with the reason (as in market.gaps; not yet, not wanted, before its data, retention) and its detail. slots: of the day; final_slots: those that are final, stored or made of finer candles; rows: candles or prices that are there. No row where the day is null. Example: select * from market.condition(''BTC'', ''1h'', ''2024-06-30'');';

create or replace function market.in_quote(coin text, in_currency text, width interval, from_time anyelement, to_time anycompatible default now(), max_age interval default '1 day')
  returns table (open_time timestamptz, close_time timestamptz, close double precision, volume double precision, market_cap double precision,
    rate double precision, rated_at timestamptz, source text)
  language plpgsql stable parallel safe cost 1000 as $$
#variable_conflict use_column
declare
  of_coin constant text := market.coin_of(coin);
  oldest constant interval := make_interval(secs => extract(epoch from max_age)::double precision);
  other text;
begin
  if lower(in_currency) = 'usd' or exists (select from market.series s where s.coin_id = of_coin and s.quote = lower(in_currency) and s.interval <= '24h') then
    return query select o.open_time, o.close_time, o.close, o.volume, o.market_cap, 1::double precision, o.close_time, 'candles in ' || lower(in_currency)
      from market.ohlcv(of_coin, width, from_time, to_time, lower(in_currency)) o order by 1;
  elsif exists (select from market.rate r where r.currency = upper(in_currency)) then
    return query select o.open_time, o.close_time, o.close / r.price, o.volume / r.price, o.market_cap / r.price, r.price, r.at, 'market.rate'
      from market.ohlcv(of_coin, width, from_time, to_time) o
      left join lateral (select q.price, q.at from market.rate q where q.currency = upper(in_currency)
        and q.at <= o.close_time + interval '1 second' and q.at >= o.close_time - oldest order by q.at desc limit 1) r on true
      order by 1;
  else
    -- The code of a currency that is no coin: what is missing is the rates.
    if in_currency ~* '^[a-z]{3}$' and not exists (select from market.rate)
      and not exists (select from market.coin c where c.id = in_currency or c.symbol in (in_currency, upper(in_currency), lower(in_currency)))
      and not exists (select from market.coin_rename r where r.old_id = in_currency) then
      raise exception using errcode = 'invalid_parameter_value', message = format('no rates are stored, so nothing can be told in %s', upper(in_currency)),
        hint = 'The schedule rates of chandler service collects them (market.rate). Without rates: usd, the quotes of stored candles, and coins.';
    end if;
    other := market.coin_of(in_currency);
    return query select o.open_time, o.close_time, o.close / nullif(r.close, 0), o.volume / nullif(r.close, 0), o.market_cap / nullif(r.close, 0), r.close, r.close_time, other
      from market.ohlcv(of_coin, width, from_time, to_time) o
      left join market.ohlcv(other, width, from_time, to_time) r on r.open_time = o.open_time
      order by 1;
  end if;
end
$$;
comment on function market.in_quote(text, text, interval, anyelement, anycompatible, interval) is 'Closes, volumes and market capitalisations of candles in another currency: stored candles in it (usd, btc), else those in usd divided by what one unit was worth at the close (rate, as of rated_at): of a currency by market.rate, at most max_age old, of a coin by its own candle of the same slot (the upstream has no rate of its own for that). Null where there is no rate; an error where market.rate is empty. The open, the highest and the lowest would need the rate of another instant. Example: select open_time, close, rate from market.in_quote(''BTC'', ''EUR'', ''1 day'', ''2024-06-01'', ''2024-07-01'');';

-- A text that is no interval: an error that names them. Else Postgres speaks of an enum.
create function market.interval_of(name text) returns market.candle_interval language plpgsql immutable strict parallel safe as $$
begin
  if name = any(enum_range(null::market.candle_interval)::text[]) then
    return name::market.candle_interval;
  end if;
  raise exception using errcode = 'invalid_parameter_value', message = format('there is no interval %s', name),
    hint = 'Intervals are: ' || array_to_string(enum_range(null::market.candle_interval), ', ') || '. market.ohlcv makes candles of any width.';
end
$$;
comment on function market.interval_of(text) is 'The interval of this name. An error names all of them where there is none. Example: select market.interval_of(''24h'');';

create function market.width_of(i text) returns interval
  language sql immutable strict parallel safe
  return market.width_of(market.interval_of(i));
comment on function market.width_of(text) is 'The same of the name of an interval. An error names all of them where there is none. Example: select market.width_of(''6h'');';

create function market.series_of(coin text, "interval" text, quote text default 'usd') returns integer
  language sql stable strict parallel safe
  return market.series_of(coin, market.interval_of("interval"), quote);
comment on function market.series_of(text, text, text) is 'The same of the name of an interval. An error names all of them where there is none. Example: select market.series_of(''BTC'', ''24h'');';

create function market.condition(coin text, "interval" text, day date, quote text default 'usd')
  returns table (condition text, reason text, detail text, slots integer, final_slots integer, rows integer, next_ask_at timestamptz)
  language sql stable parallel safe rows 1
begin atomic
  select c.* from market.condition(coin, market.interval_of("interval"), day, quote) c;
end;
comment on function market.condition(text, text, date, text) is 'The same of the name of an interval. An error names all of them where there is none. Example: select * from market.condition(''BTC'', ''1h'', ''2024-06-30'');';

-- All that ever happened to final values, in one place: what replaced or removed them one by one, and what did so to many at once.
create view market.revisions as
select s.coin_id, s.quote, s.interval, r.open_time, tstzmultirange(tstzrange(r.open_time, r.open_time + market.width_of(s.interval))) as slots,
  case when r.was_empty then 0 else 1 end as candles, r.reason, r.known_at, r.seen_at, r.step, null::text as detail,
  r.open, r.high, r.low, r.close, r.volume, r.market_cap, null::bigint as digest, r.series_id
from market.revision r join market.series s on s.id = r.series_id
union all
select s.coin_id, s.quote, s.interval, lower(e.slots), e.slots, e.candles, e.kind, e.known_at, e.as_of, e.number, e.detail,
  null, null, null, null, null, null, e.digest, e.series_id
from market.evidence e join market.series s on s.id = e.series_id
where e.kind in ('retention', 'renamed');
comment on view market.revisions is 'Every change of final values, of candles and of prices (interval prices-1d and so on). A row for each value that a later answer or a mending replaced or removed, with the old values (market.revision); and a row for each time that retention removed what was old, or a coin was given a new id, for all its slots at once: values that retention has removed are gone, their number and digest are here. Example: select open_time, candles, reason, known_at, close from market.revisions where coin_id = ''btc-bitcoin'' order by known_at desc;';
comment on column market.revisions.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.revisions.quote is 'Currency of the prices: usd or btc.';
comment on column market.revisions.interval is 'Width of the candle, or prices- and the width of the price.';
comment on column market.revisions.open_time is 'Start of the slot; of several slots, of the first.';
comment on column market.revisions.slots is 'The slots that it is about.';
comment on column market.revisions.candles is 'How many of the slots had a candle or a price before; 0: the slot was known to be empty.';
comment on column market.revisions.reason is 'late answer, removed by upstream, mended, contradicted: see market.revision.reason. retention: removed because of their age. renamed: the coin was given a new id, and the values stayed.';
comment on column market.revisions.known_at is 'When it happened, by our clock; null for a revision from before evidence was kept.';
comment on column market.revisions.seen_at is 'As-of instant of the answer that changed it; of retention and of a change of id, when it happened.';
comment on column market.revisions.step is 'The step of market.evidence that tells of it; null for a revision from before evidence was kept.';
comment on column market.revisions.detail is 'Of a change of id: the old id and the new one.';
comment on column market.revisions.open is 'Old value of open; of a price series the price, as in high, low and close.';
comment on column market.revisions.high is 'Old value of high.';
comment on column market.revisions.low is 'Old value of low.';
comment on column market.revisions.close is 'Old value of close.';
comment on column market.revisions.volume is 'Old value of volume.';
comment on column market.revisions.market_cap is 'Old value of market cap.';
comment on column market.revisions.digest is 'Of what retention removed: the sum of market.candle_hash of it, modulo 2^64, as in market.evidence.digest.';
comment on column market.revisions.series_id is 'market.series.id.';
