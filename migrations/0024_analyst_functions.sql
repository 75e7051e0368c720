-- Functions for analysts. Coins by any name, instants in UTC whatever the session's time zone is, and nothing across holes.
-- What only one function needs is inside of it: those who call it may not look into the schema ops.

-- Instants: text without a zone, a date and a timestamp are in UTC.
create function market.utc(at text) returns timestamptz
  language sql stable strict parallel safe set timezone = 'UTC' set datestyle = 'ISO, YMD'
  return at::timestamptz;
create function market.utc(at timestamp) returns timestamptz
  language sql immutable strict parallel safe
  return at at time zone 'UTC';
create function market.utc(at date) returns timestamptz
  language sql immutable strict parallel safe
  return at::timestamp at time zone 'UTC';
create function market.utc(at timestamptz) returns timestamptz
  language sql immutable strict parallel safe
  return at;
comment on function market.utc(text) is 'The instant that a text means, in UTC where it names no zone, whatever the time zone of the session is. Example: select * from market.candles where coin_id = ''btc-bitcoin'' and interval = ''24h'' and open_time = market.utc(''2024-06-30'');';
comment on function market.utc(timestamp) is 'The instant of a timestamp without zone, taken as UTC. Example: select market.utc(timestamp ''2024-06-30 12:00'');';
comment on function market.utc(date) is 'The beginning of a UTC day. Example: select market.utc(date ''2024-06-30'');';
comment on function market.utc(timestamptz) is 'The same instant. Example: select market.utc(now());';

create function market.slot_of(width interval, at timestamptz) returns timestamptz
  language sql immutable parallel safe
  return case
    when extract(year from width) * 12 + extract(month from width) > 0 then
      (date_trunc('month', at at time zone 'UTC') - make_interval(months => mod(
        extract(year from at at time zone 'UTC')::integer * 12 + extract(month from at at time zone 'UTC')::integer - 1,
        (extract(year from width) * 12 + extract(month from width))::integer))) at time zone 'UTC'
    when mod(extract(epoch from width), 604800) = 0 then
      date_bin(make_interval(secs => extract(epoch from width)::double precision), at, timestamptz '1970-01-05 00:00:00Z')
    else date_bin(make_interval(secs => extract(epoch from width)::double precision), at, timestamptz '1970-01-01 00:00:00Z')
  end;
comment on function market.slot_of(interval, timestamptz) is 'The start of the slot of this width that holds an instant, in UTC: weeks begin on Monday, months on the first, other widths on the grid of 1970. Example: select market.slot_of(''1 week'', open_time) as week, max(high) from market.candles where coin_id = ''btc-bitcoin'' and interval = ''24h'' group by 1;';

create function market.slot_end(width interval, slot timestamptz) returns timestamptz
  language sql immutable parallel safe
  return (slot at time zone 'UTC' + width) at time zone 'UTC';
comment on function market.slot_end(interval, timestamptz) is 'The end (exclusive) of a slot of this width, in UTC. Example: select market.slot_end(''1 month'', market.utc(''2024-02-01''));';

create function market.coin_of(name text) returns text language plpgsql stable strict parallel safe as $$
declare
  given constant text := btrim(coin_of.name);
  platform constant text := nullif(split_part(given, ':', 1), given);
  at_address constant text := lower(regexp_replace(given, '^[^:]*:', ''));
  id text;
  ids text[];
begin
  -- An id that upstream has given to a new coin belongs to that coin.
  select c.id into id from market.coin c where c.id = given and not exists (
    select from market.coin_rename r where r.old_id = c.id and not (c.is_active and c.last_seen_at > r.renamed_at));
  if found then
    return id;
  end if;
  with recursive step as (
    select r.new_id, 1 as hops from market.coin_rename r where r.old_id = given
    union all
    select r.new_id, s.hops + 1 from step s join market.coin_rename r on r.old_id = s.new_id where s.hops < 20
  )
  select s.new_id into id from step s where exists (select from market.coin c where c.id = s.new_id) order by s.hops desc limit 1;
  if found then
    return id;
  end if;
  select c.id into id from market.coin c where c.id = given;
  if found then
    return id;
  end if;
  -- Of coins that upstream still follows, else of all.
  select coalesce(array_agg(c.id) filter (where c.is_active), array_agg(c.id)) into ids from market.coin c
    where c.symbol in (given, upper(given), lower(given))
      and not exists (select from market.coin_rename r where r.old_id = c.id and not (c.is_active and c.last_seen_at > r.renamed_at));
  -- Only of coins that have another id now.
  if ids is null then
    select array_agg(distinct market.coin_of(c.id)) into ids from market.coin c where c.symbol in (given, upper(given), lower(given));
  end if;
  if ids is null then
    select coalesce(array_agg(distinct c.coin_id) filter (where c.valid_to is null), array_agg(distinct c.coin_id)) into ids
      from market.platform p join market.contract c on c.platform_id = p.id and lower(c.address) = at_address
      where platform is null or p.id = platform;
  end if;
  if cardinality(ids) = 1 then
    return ids[1];
  end if;
  if ids is null then
    raise exception using errcode = 'invalid_parameter_value', message = format('no coin is called %s', given), hint = coalesce('Did you mean: ' || (
        select string_agg(format('%s (%s)', near.id, near.name), ', ' order by near.place, near.id) from (
          select c.id, c.name, row_number() over (order by lower(c.name) <> lower(given), not c.is_active, nullif(c.rank, 0) nulls last, c.id) as place
          from market.coin c where position(lower(given) in lower(c.name)) > 0 or position(lower(given) in c.id) > 0
          order by place limit 5) near) || '?',
      'Give the id of a coin (market.coin.id), an old id, a symbol, or the address of a contract.');
  end if;
  raise exception using errcode = 'invalid_parameter_value',
    message = format('%s means several coins: %s', given, (
      select string_agg(format('%s (%s, %s)', c.id, c.name, case when not c.is_active then 'no longer active' when c.rank > 0 then 'rank ' || c.rank else 'no rank' end),
        ', ' order by nullif(c.rank, 0) nulls last, c.id) from market.coin c where c.id = any(ids))),
    hint = 'Give the id of the one that you mean.';
end
$$;
comment on function market.coin_of(text) is 'The id of a coin, of any of its names: id, old id, symbol (in any case; of several coins the one that is still active), address of a contract (platform:address where it is on several). An error names the candidates where none or several match. Null gives null. Example: select market.coin_of(''BTC'');';

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

create function market.series_of(coin text, "interval" market.candle_interval, quote text default 'usd') returns integer language plpgsql stable strict parallel safe as $$
declare
  of_coin constant text := market.coin_of(coin);
  id integer;
begin
  select s.id into id from market.series s where s.coin_id = of_coin and s.quote = series_of.quote and s.interval = series_of."interval";
  if not found then
    raise exception using errcode = 'invalid_parameter_value', message = format('there are no candles or prices of %s of %s in %s', series_of."interval", of_coin, quote),
      hint = coalesce('Stored are: ' || (select string_agg(s.interval || ' in ' || s.quote, ', ' order by s.quote desc, s.interval) from market.series s
        where s.coin_id = of_coin) || '. market.ohlcv makes wider candles of narrower ones.', 'Nothing is stored of this coin: chandler backfill fetches candles.');
  end if;
  return id;
end
$$;
comment on function market.series_of(text, market.candle_interval, text) is 'The number of the series that is stored of a coin (any name of it), for market.candles.series_id: so Postgres reads the newest rows alone where a statement asks for them. An error if there is no such series. Example: select open_time, close from market.candles where series_id = market.series_of(''BTC'', ''24h'') and interval = ''24h'' order by open_time desc limit 1;';

create function market.series_of(coin text, "interval" text, quote text default 'usd') returns integer
  language sql stable strict parallel safe
  return market.series_of(coin, market.interval_of("interval"), quote);
comment on function market.series_of(text, text, text) is 'The same of the name of an interval. An error names all of them where there is none. Example: select market.series_of(''BTC'', ''24h'');';

create function market.final_spans(coin text, "interval" market.candle_interval, quote text default 'usd') returns tstzmultirange
  language sql stable parallel safe
begin atomic
  select coalesce(range_agg(case when s.interval = final_spans."interval" then s.covered
      else market.slots_within(s.covered, market.width_of(final_spans."interval")) end), '{}')
  from market.series s
  where s.coin_id = (select market.coin_of(coin)) and s.quote = final_spans.quote
    and (s.interval = final_spans."interval" or s.interval < final_spans."interval" and final_spans."interval" <= '24h');
end;
comment on function market.final_spans(text, market.candle_interval, text) is 'The spans in which each slot has its final candle or is known to be empty, of stored candles and of those made of finer ones. Example: select market.final_spans(''btc-bitcoin'', ''24h'');';

create function market.base_of(width interval) returns market.candle_interval language plpgsql immutable parallel safe as $$
declare
  months constant integer := extract(year from width) * 12 + extract(month from width);
  seconds constant numeric := extract(epoch from width - make_interval(months => months));
  base market.candle_interval;
begin
  if months > 0 and seconds = 0 then
    return '24h';
  elsif months = 0 and seconds > 0 then
    select i into base from unnest(array['24h', '12h', '6h', '1h', '30m', '15m', '5m']::market.candle_interval[]) i
      where mod(seconds, extract(epoch from market.width_of(i))) = 0 limit 1;
  end if;
  if base is null then
    raise exception using errcode = 'invalid_parameter_value', message = format('no whole number of candles makes up %s', coalesce(width::text, 'null')),
      hint = 'Give a multiple of 5 minutes (days and weeks are), or of whole months.';
  end if;
  return base;
end
$$;
comment on function market.base_of(interval) is 'The widest interval of which a whole number of candles makes up a width; months are made of days. An error if there is none. Example: select market.base_of(''90 minutes'');';

-- Candles of any width, of market.candles of the widest interval that divides it, and whether a close is that of the slot. Those that the service has
-- not made ahead yet are made here.
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

create function market.ohlcv(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean)
  language sql stable parallel safe cost 1000
as $$
  select o.open_time, o.close_time, o.open, o.high, o.low, o.close, o.volume, o.market_cap, o.slots, o.complete
  from market.ohlcv_closed(coin, width, from_time, to_time, quote) o
$$;
comment on function market.ohlcv(text, interval, anyelement, anycompatible, text) is 'Candles of any width that a whole number of stored slots makes up: 45 minutes, 1 day, 1 week (from Monday), 3 months. Each is made of the candles of market.candles of the widest interval that divides it; those that were not made ahead are made now, and are the same. from_time and to_time say which slots open (null: from the first, until now); each candle is of its whole slot, so the last one may reach beyond to_time (a backtest that must not look ahead asks for close_time < its instant). slots: how many of its parts have a candle; complete: all of its parts are final, with a candle or known to be empty; high, low and volume are null where a part has none. A part that the widest interval knows to be empty stays empty, whatever a finer one has; of finer candles only whole parts are made, so a width that is an interval itself (1 day) has no candle of a slot that is not over. Nothing is stored: no rows, and market.condition says why. Dates, and text without a zone, are UTC. Example: select * from market.ohlcv(''BTC'', ''1 week'', ''2024-01-01'', ''2024-03-01'');';

create function market.price_at(coin text, at anyelement, max_age interval default '1 day', quote text default 'usd')
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

create function market.universe(at anyelement default now(), n integer default 100)
  returns table (place integer, coin_id text, symbol text, name text, market_cap double precision, price double precision, source text, as_of timestamptz)
  language plpgsql stable parallel safe rows 100 cost 1000 set plan_cache_mode = force_generic_plan as $$
declare
  -- The last day that has ended, and the one before it: a coin may have a hole.
  instant constant timestamptz := market.utc(at);
  today constant timestamptz := market.slot_of('1 day', instant);
  snapshot timestamptz;
begin
  -- A snapshot has all coins that upstream lists. Any of the first ones tells when there was one.
  select max(h.at) into snapshot
    from (select c.id from market.coin c where c.is_active and c.rank > 0 order by c.rank limit 5) c
    cross join lateral (select t.at from market.ticker_history t
      where t.coin_id = c.id and t.at <= instant and t.at > instant - interval '24 hours' and t.market_cap > 0 order by t.at desc limit 1) h;
  if snapshot is not null then
    return query
      select (row_number() over (order by h.market_cap desc, h.coin_id))::integer, h.coin_id, c.symbol, c.name, h.market_cap, h.price, 'ticker', h.updated_at
      from (select t.* from market.ticker_history t where t.at = snapshot and t.market_cap > 0 order by t.market_cap desc, t.coin_id limit n) h
      join market.coin c on c.id = h.coin_id order by 1;
    return;
  end if;
  return query
    select (row_number() over (order by b.market_cap desc, b.coin_id))::integer, b.coin_id, c.symbol, c.name, b.market_cap, b.price, b.source, b.as_of
    from (
      select d.* from (
        select distinct on (k.coin_id) k.* from (
          -- A look-up for each series: a scan by time would read a page of the key for each.
          select s.coin_id, x.market_cap, x.close as price, '24h candle' as source, x.open_time + interval '24 hours' as as_of
          from market.series s cross join lateral (select c.open_time, c.close, c.market_cap from market.candle c
            where c.series_id = s.id and c.interval = '24h' and c.open_time >= today - interval '48 hours' and c.open_time < today and c.market_cap > 0
            order by c.open_time desc limit 1) x
          where s.interval = '24h' and s.quote = 'usd'
          union all
          select s.coin_id, x.market_cap, x.close, '24h candle', x.open_time + interval '24 hours'
          from market.series s cross join lateral (select c.open_time, c.close, c.market_cap from market.rollup c
            where c.series_id = s.id and c.interval = '24h' and c.open_time >= today - interval '48 hours' and c.open_time < today and c.market_cap > 0
            order by c.open_time desc limit 1) x
          where s.interval < '24h' and s.quote = 'usd'
          union all
          select s.coin_id, x.market_cap, x.price, 'mean of 1d', x.time + interval '24 hours'
          from market.series s cross join lateral (select p.time, p.price, p.market_cap from market.price p
            where p.series_id = s.id and p.time >= today - interval '48 hours' and p.time < today and p.market_cap > 0
            order by p.time desc limit 1) x
          where s.interval = 'prices-1d' and s.quote = 'usd'
        ) k order by k.coin_id, k.as_of desc, k.source
      ) d order by d.market_cap desc, d.coin_id limit n
    ) b join market.coin c on c.id = b.coin_id order by 1;
end
$$;
comment on function market.universe(anyelement, integer) is 'The n largest coins by market capitalisation as of an instant, dead ones included, by what had closed then: the newest snapshot of tickers of the 24 hours before; where there is none, the daily candles (stored or made) and daily prices in usd that closed in the two days before. as_of: when upstream last updated the ticker, or when the candle or the day of the price closed. It knows only coins of which something is stored. symbol and name are those of today. Example: select * from market.universe(''2024-06-30'', 10);';

create function market.returns(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
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

create function market.condition(coin text, "interval" market.candle_interval, day date, quote text default 'usd')
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
  removed tstzmultirange;
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
    select range_agg(e.slots) into removed from market.series f join market.evidence e on e.series_id = f.id
        where f.coin_id = of_coin and f.quote = condition.quote
          and (f.id = own.id or f.interval < condition."interval" and condition."interval" <= '24h')
          and e.kind = 'retention' and e.slots && tstzrange(begins, ends);
    if reason is null and removed is not null then
      reason := 'retention';
      detail := case when removed @> tstzrange(begins, ends) then 'it was removed because of its age' else 'a part of it was removed because of its age' end;
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

create function market.condition(coin text, "interval" text, day date, quote text default 'usd')
  returns table (condition text, reason text, detail text, slots integer, final_slots integer, rows integer, next_ask_at timestamptz)
  language sql stable parallel safe rows 1
begin atomic
  select c.* from market.condition(coin, market.interval_of("interval"), day, quote) c;
end;
comment on function market.condition(text, text, date, text) is 'The same of the name of an interval. An error names all of them where there is none. Example: select * from market.condition(''BTC'', ''1h'', ''2024-06-30'');';

create function market.on_grid(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd',
    fill text default 'none', max_fill interval default null)
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean,
    filled_from timestamptz, reason text)
  language plpgsql stable parallel safe cost 1000 as $$
#variable_conflict use_column
declare
  of_coin constant text := market.coin_of(coin);
  since constant timestamptz := market.utc(from_time);
  until constant timestamptz := case when isfinite(market.utc(to_time)) then market.utc(to_time) else now() end;
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
    select g at time zone 'UTC' as slot
    from generate_series(begins at time zone 'UTC', (until at time zone 'UTC') - interval '1 microsecond', width) g
  ), slot as (
    select g.slot, market.slot_end(width, g.slot) as slot_end, o.open, o.high, o.low, o.close, o.volume, o.market_cap, o.slots,
      o.open_time is null as is_hole, spans @> tstzrange(g.slot, market.slot_end(width, g.slot)) as is_final,
      max(o.open_time) filter (where o.close is not null) over (order by g.slot) as last_at
    from grid g left join given o on o.open_time = g.slot
  ), filled as (
    select t.*, p.close as carried from slot t
    left join given p on fill = 'previous' and t.is_hole and p.open_time = t.last_at and t.slot <= (t.last_at at time zone 'UTC' + reach) at time zone 'UTC'
    where t.slot >= first
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
comment on function market.on_grid(text, interval, anyelement, anycompatible, text, text, interval) is 'A calendar: each slot of the width that opens in the span, with its candle as market.ohlcv gives it, or without. reason says why it is missing or not complete: empty (known to have none), not yet, before its data, retention (it, or a part of it, was removed because of its age), not wanted, or a reason of market.gaps. fill => ''previous'' carries the last close into holes (filled_from says of which slot), at most over max_fill (by default three slots); volume and market_cap stay null. Example: select open_time, close, reason from market.on_grid(''BTC'', ''1 day'', ''2024-01-01'', ''2024-02-01'', fill => ''previous'');';

create function market.in_quote(coin text, in_currency text, width interval, from_time anyelement, to_time anycompatible default now(), max_age interval default '1 day')
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

create function market.vwap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
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

create function market.twap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
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

create function market.realized_volatility(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
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

create function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
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

create function market.correlation(coin text, other_coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
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

create function market.event_study(coin text, at anyelement, before integer default 5, after integer default 10, width interval default '1 day',
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

-- Is the volume of a candle that of its slot, or of the day that ends with it? Stored hours and stored days of the same coins tell.
create function market.volume_meaning()
  returns table (meaning text, days integer, hours_to_day double precision)
  language sql stable parallel safe
begin atomic
  with pair as (
    -- The newest days of a few coins: a bounded number of rows.
    select h.id as hours, d.id as day, h.covered * d.covered as both from market.series d
    join market.series h on h.coin_id = d.coin_id and h.quote = d.quote and h.interval = '1h'
    join market.coin c on c.id = d.coin_id
    where d.interval = '24h' and h.covered && d.covered
    order by nullif(c.rank, 0) nulls last, d.id limit 20
  ), day as (
    select p.hours, c.open_time, c.volume from pair p
    cross join lateral (select x.open_time, x.volume from market.candle x
      where x.series_id = p.day and x.interval = '24h' and x.volume > 0 and p.both @> tstzrange(x.open_time, x.open_time + interval '24 hours')
      order by x.open_time desc limit 20) c
  ), ratio as (
    select h.volume / d.volume as of_day from day d
    cross join lateral (select sum(x.volume) as volume, count(x.volume) as known from market.candle x
      where x.series_id = d.hours and x.interval = '1h' and x.open_time >= d.open_time and x.open_time < d.open_time + interval '24 hours') h
    where h.known = 24
  ), found as (
    select count(*)::integer as days, percentile_cont(0.5) within group (order by r.of_day) as of_day from ratio r
  )
  select case
      when f.days < 10 then 'cannot tell yet'
      when f.of_day between 0.8 and 1.25 then 'sum of the slot'
      when f.of_day between 19 and 30 then 'rolling day'
      else 'neither' end,
    f.days, f.of_day
  from found f;
end;
comment on function market.volume_meaning() is 'What the volume of a stored candle is, by stored days and stored hours of the same coins: the 24 hours add up to their day (sum of the slot), each of them is about a whole day (rolling day: their sum, hours_to_day, is about 24 days), or neither. Cannot tell yet: fewer than ten such days are stored. Example: select * from market.volume_meaning();';

-- Older functions take any name of a coin, too.
alter function market.story(text, market.candle_interval, timestamptz, text) set schema ops;
create function market.story(coin text, "interval" market.candle_interval, slot_time timestamptz, quote text default 'usd')
  returns table (at timestamptz, event text, detail text)
  language sql stable
begin atomic
  select s.at, s.event, s.detail from ops.story((select market.coin_of(coin)), story."interval", slot_time, quote) s;
end;
comment on function market.story(text, market.candle_interval, timestamptz, text) is 'The story of one slot, in the order of time: since when its series is wanted, what made it final and which request, revisions, quarantined rows, refusals, what is there now, and when Chandler asks again. slot_time: any instant in the slot. No row: there is no such series. Example: select * from market.story(''BTC'', ''24h'', ''2026-03-01'');';

alter function market.prices_sampled(text, interval, timestamptz, timestamptz) set schema ops;
create function market.prices_sampled(coin text, width interval, span tstzrange)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    samples integer, largest_gap interval, is_open_at_edge boolean, is_close_at_edge boolean)
  language sql stable parallel safe
begin atomic
  select s.* from ops.prices_sampled((select market.coin_of(coin)), width, lower(span), upper(span)) s;
end;
create function market.prices_sampled(coin text, width interval, from_time anyelement, to_time anycompatible default now())
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    samples integer, largest_gap interval, is_open_at_edge boolean, is_close_at_edge boolean)
  language sql stable parallel safe
as $$
  -- An end before the beginning is no range, and has no bars.
  select s.* from market.prices_sampled(coin, width, tstzrange(market.utc(from_time), greatest(market.utc(from_time), market.utc(to_time)), '[]')) s
$$;
comment on function market.prices_sampled(text, interval, anyelement, anycompatible) is 'Bars of a coin in US dollars, made of samples: of the tickers that Chandler has stored, and, in each bar, of that one of its narrower price series that leaves the smallest gap in it. A price stands at the start of its span. samples: how many a bar has; largest_gap: the longest stretch of the bar without one, its edges included; is_open_at_edge, is_close_at_edge: the first and the last sample lie within a twenty-fourth of the bar from its edge, and the first one is no mean of a longer time. These are not candles: between two samples the price went higher and lower (the range of bars of hourly samples is 25 percent too narrow, measured on 1,385 days of bitcoin), and a price of a series is about a mean of its span. There is no volume. Only bars that lie in the stretch whole. The width is at most of days, not of months. Example: select * from market.prices_sampled(''BTC'', ''1 day'', ''2026-03-01'', ''2026-04-01'');';

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

-- All that ever happened to final values, in one place: what replaced or removed them one by one, and what removed many at once.
create view market.revisions as
select s.coin_id, s.quote, s.interval, r.open_time, tstzmultirange(tstzrange(r.open_time, r.open_time + market.width_of(s.interval))) as slots,
  case when r.was_empty then 0 else 1 end as candles, r.reason, r.known_at, r.seen_at, r.step,
  r.open, r.high, r.low, r.close, r.volume, r.market_cap, null::bigint as digest, r.series_id
from market.revision r join market.series s on s.id = r.series_id
union all
select s.coin_id, s.quote, s.interval, lower(e.slots), e.slots, e.candles, e.kind, e.known_at, e.as_of, e.number,
  null, null, null, null, null, null, e.digest, e.series_id
from market.evidence e join market.series s on s.id = e.series_id
where e.kind = 'retention';
comment on view market.revisions is 'Every change of final values, of candles and of prices (interval prices-1d and so on). A row for each value that a later answer or a mending replaced or removed, with the old values (market.revision); and a row for each time that retention removed what was old, for all its slots at once: these values are gone, their number and digest are here. A series of a coin that was given a new id keeps its values, and its rows here. Example: select open_time, candles, reason, known_at, close from market.revisions where coin_id = ''btc-bitcoin'' order by known_at desc;';
comment on column market.revisions.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.revisions.quote is 'Currency of the prices: usd or btc.';
comment on column market.revisions.interval is 'Width of the candle, or prices- and the width of the price.';
comment on column market.revisions.open_time is 'Start of the slot; of several slots, of the first.';
comment on column market.revisions.slots is 'The slots that it is about.';
comment on column market.revisions.candles is 'How many of the slots had a candle or a price before; 0: the slot was known to be empty.';
comment on column market.revisions.reason is 'late answer, removed by upstream, mended, contradicted: see market.revision.reason. retention: removed because of their age.';
comment on column market.revisions.known_at is 'When it happened, by our clock; null for a revision from before evidence was kept.';
comment on column market.revisions.seen_at is 'As-of instant of the answer that changed it; of retention, when it happened.';
comment on column market.revisions.step is 'The step of market.evidence that tells of it; null for a revision from before evidence was kept.';
comment on column market.revisions.open is 'Old value of open; of a price series the price, as in high, low and close.';
comment on column market.revisions.high is 'Old value of high.';
comment on column market.revisions.low is 'Old value of low.';
comment on column market.revisions.close is 'Old value of close.';
comment on column market.revisions.volume is 'Old value of volume.';
comment on column market.revisions.market_cap is 'Old value of market cap.';
comment on column market.revisions.digest is 'Of what retention removed: the sum of market.candle_hash of it, modulo 2^64, as in market.evidence.digest.';
comment on column market.revisions.series_id is 'market.series.id.';

comment on column market.freshness.achievable_age is 'How old it becomes at most: target_age, or more when the quota does not allow it. When the quota has grown, a shorter age is told once no series is late for it. Null before the service has planned it, or when the quota leaves no request for it.';

-- Text without a zone, and dates, would be read in the time zone of the session. So each function takes them, in UTC: an unknown literal is text
-- where a function takes text, and any other instant keeps its type where a function takes any.
do $$
declare
  f regprocedure;
  kinds text[];
  declared text;
  passed text;
begin
  for f in select p.oid from pg_proc p where p.pronamespace = 'market'::regnamespace and 'anyelement'::regtype = any(p.proargtypes) loop
    select string_agg(case when t = any(array['anyelement', 'anycompatible']::regtype[]) then format('market.utc($%s)', n) else format('$%s', n) end, ', ' order by n)
      into passed from pg_proc p, unnest(p.proargtypes) with ordinality a(t, n) where p.oid = f;
    for kinds in select array[k.first, k.second] from (values ('text', 'text'), ('text', 'anyelement'), ('anyelement', 'text')) k(first, second) loop
      declared := pg_get_function_arguments(f);
      -- A second instant that is left out is now: of the functions that a call fits, one must be the best.
      continue when kinds[2] = 'anyelement' and declared !~ 'anycompatible' or kinds[1] = 'anyelement' and declared !~ 'anycompatible';
      declared := regexp_replace(declared, '\manyelement( DEFAULT now\(\))?', kinds[1]);
      declared := regexp_replace(declared, '\manycompatible( DEFAULT now\(\))?', kinds[2] || case when kinds[2] = 'text' then '' else '\1' end);
      execute format('create function market.%I(%s) returns %s language sql stable parallel safe as $f$ select * from market.%1$I(%4$s) $f$',
        (select proname from pg_proc where oid = f), declared, pg_get_function_result(f), passed);
    end loop;
  end loop;
  -- Those of one instant that a planner puts into the statement: they stay what they are for timestamptz.
  for f in select unnest(array['market.story(text, market.candle_interval, timestamptz, text)', 'market.candles_as_known(timestamptz)',
      'market.prices_as_known(timestamptz)', 'market.slot_of(interval, timestamptz)']::regprocedure[]) loop
    select string_agg(case when t = 'timestamptz'::regtype then format('market.utc($%s)', n) else format('$%s', n) end, ', ' order by n)
      into passed from pg_proc p, unnest(p.proargtypes) with ordinality a(t, n) where p.oid = f;
    for kinds in select array[k] from unnest(array['text', 'date', 'timestamp']) k loop
      execute format('create function market.%I(%s) returns %s language sql stable %6$s as $f$ select %4$s market.%1$I(%5$s) $f$',
        (select proname from pg_proc where oid = f), replace(pg_get_function_arguments(f), 'timestamp with time zone', kinds[1]),
        pg_get_function_result(f), (select case when proretset then '* from' else '' end from pg_proc where oid = f), passed,
        (select case proparallel when 's' then 'parallel safe' else '' end from pg_proc where oid = f));
    end loop;
  end loop;
  for f in select p.oid from pg_proc p where p.pronamespace = 'market'::regnamespace and obj_description(p.oid, 'pg_proc') is null loop
    execute format('comment on function %s is %L', f, 'As the other functions of this name: text without a zone, dates and timestamps are in UTC.');
  end loop;
end
$$;
