-- Right answers: what is made of final candles comes before a stored one that is not final, a candle has closed only if it had when it was read,
-- and instants and widths that mean nothing give nothing, or an error that says so.

-- A width that is whole months, or a span of time; not both, and not for ever.
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
      select i into base from unnest(array['24h', '12h', '6h', '1h', '30m', '15m', '5m']::market.candle_interval[]) i
        where mod(seconds, extract(epoch from market.width_of(i))) = 0 limit 1;
    end if;
  end if;
  if base is null then
    raise exception using errcode = 'invalid_parameter_value', message = format('no whole number of candles makes up a width of %s', coalesce(width::text, 'null')),
      hint = 'Give a multiple of 5 minutes (days and weeks are), or of whole months.';
  end if;
  return base;
end
$$;

create or replace function market.slot_of(width interval, at timestamptz) returns timestamptz
  language sql immutable parallel safe
  return case
    -- Months and days have no grid in common. Of such a width base_of raises the error. A width that is a constant costs nothing here.
    when not isfinite(width) or width <= interval '0'
        or (extract(year from width) <> 0 or extract(month from width) <> 0) and width <> date_trunc('month', width) then
      case when market.base_of(width) is not null then at end
    when extract(year from width) * 12 + extract(month from width) > 0 then
      case when isfinite(at) then (date_trunc('month', at at time zone 'UTC') - make_interval(months => mod(
        extract(year from at at time zone 'UTC')::integer * 12 + extract(month from at at time zone 'UTC')::integer - 1,
        (extract(year from width) * 12 + extract(month from width))::integer))) at time zone 'UTC' else at end
    when mod(extract(epoch from width), 604800) = 0 then
      date_bin(make_interval(secs => extract(epoch from width)::double precision), at, timestamptz '1970-01-05 00:00:00Z')
    else date_bin(make_interval(secs => extract(epoch from width)::double precision), at, timestamptz '1970-01-01 00:00:00Z')
  end;

create function market.slot_end(width interval, slot text) returns timestamptz language sql stable parallel safe
  as $f$ select market.slot_end($1, market.utc($2)) $f$;
create function market.slot_end(width interval, slot date) returns timestamptz language sql stable parallel safe
  as $f$ select market.slot_end($1, market.utc($2)) $f$;
create function market.slot_end(width interval, slot timestamp) returns timestamptz language sql stable parallel safe
  as $f$ select market.slot_end($1, market.utc($2)) $f$;
comment on function market.slot_end(interval, text) is 'As the other functions of this name: text without a zone, dates and timestamps are in UTC.';
comment on function market.slot_end(interval, date) is 'As the other functions of this name: text without a zone, dates and timestamps are in UTC.';
comment on function market.slot_end(interval, timestamp) is 'As the other functions of this name: text without a zone, dates and timestamps are in UTC.';

create or replace function market.ohlcv_closed(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean, is_closed boolean)
  language plpgsql stable parallel safe cost 1000 as $$
declare
  of_coin constant text := market.coin_of(coin);
  -- First of all: it refuses what is no width.
  base constant market.candle_interval := market.base_of(width);
  months constant integer := extract(year from width) * 12 + extract(month from width);
  seconds constant numeric := extract(epoch from width - make_interval(months => months));
  calendar constant text := case when months = 1 and seconds = 0 then 'month' when months = 0 and seconds = 604800 then 'week' end;
  since constant timestamptz := market.utc(from_time);
  until constant timestamptz := coalesce(nullif(market.utc(to_time), 'infinity'), now());
  columns constant text := 'open_time, open, high, low, close, volume, market_cap';
  -- As the service makes them: null where a part is null, volumes added in the order of time.
  made constant text := '(array_agg(open order by open_time))[1] as open,
    nullif(max(coalesce(high, ''NaN'')), ''NaN'') as high, nullif(min(coalesce(low, ''-Infinity'')), ''-Infinity'') as low,
    (array_agg(close order by open_time))[count(*)] as close,
    case when max(coalesce(volume, ''NaN'')) <= 1e304 then sum(least(volume, 1e304) order by open_time) end as volume,
    (array_agg(market_cap order by open_time))[count(*)] as market_cap';
  part constant interval := market.width_of(base);
  first timestamptz := '-infinity';
  last timestamptz := market.slot_of(width, until);
  wanted tstzmultirange;
  stretch tstzrange;
  s record;
  own integer;
  own_final tstzmultirange := '{}';
  -- Slots of which finer candles say more than the stored one, which is not final.
  outdone tstzmultirange := '{}';
  -- Stored candles that had not closed when upstream answered them.
  unclosed timestamptz[];
  finer integer[] := '{}';
  known tstzmultirange := '{}';
  whole tstzmultirange;
  fresh tstzmultirange;
  ahead tstzmultirange := '{}';
  parts text[] := '{}';
  closed text := 'true';
  is_over text;
  statement text;
begin
  if quote not in ('usd', 'btc') then
    raise exception using errcode = 'invalid_parameter_value', message = format('there are no candles in %s', quote),
      hint = 'Candles are in usd and btc. market.in_quote converts their closes.';
  end if;
  if since = 'infinity' or until = '-infinity' then
    return;
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
    select t.id, t.interval, t.covered, r.spans,
      case when t.interval = base then array(select o.open_time from market.open_candle o where o.series_id = t.id) end as unclosed
    from market.series t
    left join market.rollup_coverage r on r.series_id = t.id and r.interval = base
    where t.coin_id = of_coin and t.quote = ohlcv_closed.quote and t.interval <= base order by t.interval desc
  loop
    if s.interval = base then
      own := s.id;
      own_final := s.covered;
      unclosed := s.unclosed;
      known := s.covered;
    else
      finer := finer || s.id;
      whole := market.slots_within(s.covered, market.width_of(base));
      fresh := (whole - known - coalesce(s.spans, '{}')) * wanted;
      known := known + whole;
      if not isempty(fresh) then
        parts := parts || format('select slot as open_time, open, high, low, close, volume, market_cap from (
          select market.slot_of(%L, open_time) as slot, %s from market.candle where series_id = %s and interval = %L
            and open_time >= %L and open_time < %L and %L::tstzmultirange @> open_time group by 1) made',
          market.width_of(base), made, s.id, s.interval, lower(fresh), upper(fresh), fresh);
      end if;
    end if;
  end loop;
  if own is not null and cardinality(finer) > 0 then
    outdone := (known - own_final) * wanted;
  end if;
  if cardinality(unclosed) > 0 then
    unclosed := array(select o from unnest(unclosed) o where o >= first and o < last and not outdone @> o);
  end if;
  for stretch in select unnest(wanted) loop
    if own is not null then
      parts := parts || (format('select %s from market.candle where series_id = %s and interval = %L and open_time >= %L and open_time < %L',
          columns, own, base, lower(stretch), upper(stretch))
        || case when outdone && stretch then format(' and not %L::tstzmultirange @> open_time', outdone) else '' end);
    end if;
    if cardinality(finer) > 0 then
      parts := parts || format('select %s from market.rollup where series_id = any(%L::integer[]) and interval = %L and open_time >= %L and open_time < %L',
        columns, finer, base, lower(stretch), upper(stretch));
    end if;
  end loop;
  if cardinality(parts) > 0 then
    -- Both are rare, and each would cost something for each row.
    is_over := concat_ws(' and ', case when last > now() then '%1$s <= now()' end,
      case when cardinality(unclosed) > 0 then '%2$s <> all($5)' end);
    statement := case
      when seconds = extract(epoch from market.width_of(base)) then
        -- No month: an interval of seconds is as long in each time zone. Both constants are for the many rows of a year of hours.
        'select open_time, open_time + $4, open, high, low, close, volume, market_cap, 1, '
          || case when known @> tstzrange(first, last) then 'true' else '$2 @> open_time' end || ', '
          || coalesce(nullif(format(is_over, 'open_time + $3', 'open_time'), ''), 'true') || ' from (%2$s) part'
      else 'select slot, market.slot_end($1, slot) - interval ''1 second'', open, high, low, close, volume, market_cap, slots,
          $2 @> tstzrange(slot, market.slot_end($1, slot)), ' || concat_ws(' and ', 'last_at = market.slot_end($1, slot) - $3',
            nullif(format(is_over, 'market.slot_end($1, slot)', 'last_at'), '')) || '
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
    return query execute statement || ' order by 1' using width, known, part, make_interval(secs => seconds::double precision - 1), unclosed;
  end if;
end
$$;
comment on function market.ohlcv_closed(text, interval, anyelement, anycompatible, text) is 'Candles as market.ohlcv gives them, and is_closed: the slot is over, and its last part has a candle that had closed when it was read, so close is the close of the slot. False for a month whose last day has none, or is not over. Example: select open_time, close, is_closed from market.ohlcv_closed(''BTC'', ''1 week'', ''2024-01-01'', ''2024-03-01'');';

comment on function market.ohlcv(text, interval, anyelement, anycompatible, text) is 'Candles of any width that a whole number of stored slots makes up: 45 minutes, 1 day, 1 week (from Monday), 3 months. Each is made of the candles of market.candles of the widest interval that divides it; those that were not made ahead are made now, and are the same. from_time and to_time say which slots open (null: from the first, until now); each candle is of its whole slot, so the last one may reach beyond to_time (a backtest that must not look ahead asks for close_time < its instant). slots: how many of its parts have a candle; complete: all of its parts are final, with a candle or known to be empty; high, low and volume are null where a part has none. A part that the widest interval knows to be empty stays empty, whatever a finer one has; where its candle is not final and finer ones are, it is made of these; of finer candles only whole parts are made, so a width that is an interval itself (1 day) has no candle of a slot that is not over. Nothing is stored: no rows, and market.condition says why. Dates, and text without a zone, are UTC. Example: select * from market.ohlcv(''BTC'', ''1 week'', ''2024-01-01'', ''2024-03-01'');';

create or replace function market.price_at(coin text, at anyelement, max_age interval default '1 day', quote text default 'usd')
  returns table (price double precision, source text, priced_at timestamptz, age interval)
  language plpgsql stable parallel safe rows 1 cost 1000 set plan_cache_mode = force_generic_plan as $$
declare
  of_coin constant text := market.coin_of(coin);
  instant constant timestamptz := market.utc(at);
  oldest constant timestamptz := case when isfinite(instant) then
    instant - case when isfinite(max_age) then make_interval(secs => extract(epoch from max_age)::double precision) else max_age end end;
  found_at timestamptz;
  own record;
  newest record;
begin
  if quote not in ('usd', 'btc') then
    raise exception using errcode = 'invalid_parameter_value', message = format('there are no candles in %s', quote),
      hint = 'Candles are in usd and btc. market.in_quote converts their closes.';
  end if;
  -- Always one row.
  if not isfinite(instant) then
    return next;
    return;
  end if;
  -- A statement for each interval, so that each reads the partitions of its own, and keeps its plan.
  for own in
    select t.id, t.interval, exists (select from market.open_candle o where o.series_id = t.id) as has_open from market.series t
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
    -- Of a candle that was read before it closed, the close is the price of that instant.
    if own.has_open and newest.closed_at is not null then
      found_at := newest.closed_at;
      select least(o.close_time, found_at) as closed_at, newest.close into newest
        from (select) one left join market.open_candle o on o.series_id = own.id and o.open_time = found_at - market.width_of(own.interval);
      if newest.closed_at < oldest then
        newest.closed_at := null;
      end if;
    end if;
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
comment on function market.price_at(text, anyelement, interval, text) is 'What a coin was worth at an instant, by what had closed until then: the close of the youngest candle of any interval, or a younger ticker (usd); a price series (the mean of a span) only where there is neither. source says which, age how old it was: a ticker that had been read by then is as old as the upstream said when it updated it, and a candle that was read before it closed is as old as its data. Always one row: price is null when nothing is younger than max_age. quote is usd or btc. Example: select * from market.price_at(''BTC'', ''2024-06-30 12:00'');';

create or replace function market.universe(at anyelement default now(), n integer default 100)
  returns table (place integer, coin_id text, symbol text, name text, market_cap double precision, price double precision, source text, as_of timestamptz)
  language plpgsql stable parallel safe rows 100 cost 1000 set plan_cache_mode = force_generic_plan as $$
declare
  -- The last day that has ended, and the one before it: a coin may have a hole.
  instant constant timestamptz := market.utc(at);
  today constant timestamptz := market.slot_of('1 day', instant);
  snapshot timestamptz;
begin
  if n < 0 then
    raise exception using errcode = 'invalid_parameter_value', message = format('n is %s, and a number of coins is not negative', n);
  end if;
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
    select (row_number() over (order by b.market_cap desc, b.coin_id))::integer, b.coin_id, c.symbol, c.name, b.market_cap, b.price, b.source,
      -- Read before it closed: of that instant.
      least(b.as_of, (select o.close_time from market.open_candle o where o.series_id = b.candles_of and o.open_time = b.as_of - interval '24 hours'))
    from (
      select d.* from (
        select distinct on (k.coin_id) k.* from (
          -- A look-up for each series: a scan by time would read a page of the key for each.
          select s.coin_id, x.market_cap, x.close as price, '24h candle' as source, x.open_time + interval '24 hours' as as_of, s.id as candles_of
          from market.series s cross join lateral (select c.open_time, c.close, c.market_cap from market.candle c
            where c.series_id = s.id and c.interval = '24h' and c.open_time >= today - interval '48 hours' and c.open_time < today and c.market_cap > 0
            order by c.open_time desc limit 1) x
          where s.interval = '24h' and s.quote = 'usd'
          union all
          select s.coin_id, x.market_cap, x.close, '24h candle', x.open_time + interval '24 hours', null
          from market.series s cross join lateral (select c.open_time, c.close, c.market_cap from market.rollup c
            where c.series_id = s.id and c.interval = '24h' and c.open_time >= today - interval '48 hours' and c.open_time < today and c.market_cap > 0
            order by c.open_time desc limit 1) x
          where s.interval < '24h' and s.quote = 'usd'
          union all
          select s.coin_id, x.market_cap, x.price, 'mean of 1d', x.time + interval '24 hours', null
          from market.series s cross join lateral (select p.time, p.price, p.market_cap from market.price p
            where p.series_id = s.id and p.time >= today - interval '48 hours' and p.time < today and p.market_cap > 0
            order by p.time desc limit 1) x
          where s.interval = 'prices-1d' and s.quote = 'usd'
        ) k order by k.coin_id, k.as_of desc, k.source
      ) d order by d.market_cap desc, d.coin_id limit n
    ) b join market.coin c on c.id = b.coin_id order by 1;
end
$$;
comment on function market.universe(anyelement, integer) is 'The n largest coins by market capitalisation as of an instant, dead ones included, by what had closed then: the newest snapshot of tickers of the 24 hours before; where there is none, the daily candles (stored or made) and daily prices in usd that closed in the two days before. as_of: when upstream last updated the ticker, or when the candle or the day of the price closed (of a candle that was read before: until when its data reach). It knows only coins of which something is stored. symbol and name are those of today. Example: select * from market.universe(''2024-06-30'', 10);';

comment on function market.returns(text, interval, anyelement, anycompatible, text) is 'Returns from close to close, of candles as market.ohlcv gives them. Null where the slot before has no candle, and where the last part of this slot or of the one before has none (a month without its last day, one that is not over), or one that was read before it closed: a return never spans a hole. previous_close is then null, too, unless this slot alone lacks its end. complete: the candle is complete, and both closes are there. Example: select open_time, simple_return from market.returns(''BTC'', ''1 month'', ''2024-01-01'', ''2024-06-01'');';

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
  removed tstzmultirange;
begin
  if day is null or "interval" is null or not isfinite(day) then
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
comment on function market.condition(text, market.candle_interval, date, text) is 'What there is of a UTC day of a series: available (each slot is final), partial (some are), pending (none yet, and it may still come) or missing, with the reason (as in market.gaps; not yet, not wanted, before its data, retention) and its detail. slots: of the day; final_slots: those that are final, stored or made of finer candles; rows: candles or prices that are there. No row where the day is null or infinite. Example: select * from market.condition(''BTC'', ''1h'', ''2024-06-30'');';

create or replace function market.on_grid(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd',
    fill text default 'none', max_fill interval default null)
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean,
    filled_from timestamptz, reason text)
  language plpgsql stable parallel safe cost 1000 as $$
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

create or replace function market.in_quote(coin text, in_currency text, width interval, from_time anyelement, to_time anycompatible default now(), max_age interval default '1 day')
  returns table (open_time timestamptz, close_time timestamptz, close double precision, volume double precision, market_cap double precision,
    rate double precision, rated_at timestamptz, source text)
  language plpgsql stable parallel safe cost 1000 as $$
#variable_conflict use_column
declare
  of_coin constant text := market.coin_of(coin);
  oldest constant interval := case when isfinite(max_age) then make_interval(secs => extract(epoch from max_age)::double precision) else max_age end;
  given constant text := lower(in_currency);
  is_stored constant boolean := exists (select from market.series s where s.coin_id = of_coin and s.quote = given and s.interval <= '24h');
  is_rated constant boolean := exists (select from market.rate r where r.currency = upper(in_currency));
  other text;
begin
  if given = 'usd' then
    return query select o.open_time, o.close_time, o.close, o.volume, o.market_cap, 1::double precision, o.close_time, 'candles in usd'
      from market.ohlcv(of_coin, width, from_time, to_time) o order by 1;
    return;
  end if;
  if is_stored and not is_rated then
    -- The coin that candles are quoted in. Where upstream does not know it, those that are stored are all.
    select c.id into other from market.coin c where c.id = 'btc-bitcoin';
  elsif not is_rated then
    -- The code of a currency that is no coin: what is missing is the rates.
    if in_currency ~* '^[a-z]{3}$' and not exists (select from market.rate)
      and not exists (select from market.coin c where c.id = in_currency or c.symbol in (in_currency, upper(in_currency), lower(in_currency)))
      and not exists (select from market.coin_rename r where r.old_id = in_currency) then
      raise exception using errcode = 'invalid_parameter_value', message = format('no rates are stored, so nothing can be told in %s', upper(in_currency)),
        hint = 'The schedule rates of chandler service collects them (market.rate). Without rates: usd, the quotes of stored candles, and coins.';
    end if;
    other := market.coin_of(in_currency);
  end if;
  -- A coin that is null has no candles: each call costs something only where it is needed.
  return query
    select coalesce(s.open_time, o.open_time), coalesce(s.close_time, o.close_time),
      case when t.is_taken then s.close else o.close / r.price end, case when t.is_taken then s.volume else o.volume / r.price end,
      case when t.is_taken then s.market_cap else o.market_cap / r.price end, case when t.is_taken then 1 else r.price end,
      case when t.is_taken then s.close_time else r.at end,
      case when t.is_taken then 'candles in ' || given when is_rated then 'market.rate' else other end
    from market.ohlcv_closed(of_coin, width, from_time, to_time) o
    full join market.ohlcv(case when is_stored then of_coin end, width, from_time, to_time, case when is_stored then given else 'usd' end) s
      on s.open_time = o.open_time
    left join market.ohlcv_closed(other, width, from_time, to_time) b on b.open_time = o.open_time and b.is_closed
    -- A week of which one day is stored is not the week.
    cross join lateral (select s.open_time is not null and s.slots >= coalesce(o.slots, 0) as is_taken) t
    left join lateral (select q.price, q.at from market.rate q where is_rated and q.currency = upper(in_currency)
      and q.at <= o.close_time + interval '1 second' and q.at >= o.close_time - oldest order by q.at desc limit 1) q on o.is_closed
    -- What has not closed has no close that a rate is of.
    cross join lateral (select case when o.is_closed then coalesce(q.price, nullif(b.close, 0)) end as price, coalesce(q.at, b.close_time) as at) r
    order by 1;
end
$$;
comment on function market.in_quote(text, text, interval, anyelement, anycompatible, interval) is 'Closes, volumes and market capitalisations of candles in another currency: stored candles in it (usd, btc) where they are, and elsewhere those in usd divided by what one unit was worth at the close (rate, as of rated_at): of a currency by market.rate, at most max_age old, of a coin by its own candle of the same slot (the upstream has no rate of its own for that). What is converted is null where there is no rate, and where the slot has not closed (is_closed of market.ohlcv_closed); an error where market.rate is empty. The open, the highest and the lowest would need the rate of another instant. Example: select open_time, close, rate from market.in_quote(''BTC'', ''EUR'', ''1 day'', ''2024-06-01'', ''2024-07-01'');';

create or replace function market.vwap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (vwap double precision, volume double precision, slots integer, complete boolean)
  language sql stable parallel safe
as $$
  with asked as materialized (
    select market.utc(from_time) as since, coalesce(nullif(market.utc(to_time), 'infinity'), now()) as until,
      coalesce(nullif(market.utc(to_time), 'infinity'), now()) - interval '1 second' as last_close
  )
  select t.vwap, t.volume, t.slots,
    coalesce(case when s.first < s.last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, s.last) end, false)
  from asked a
  cross join lateral (
    select case when count(*) = count(o.weighted) then sum(o.weighted order by o.open_time) / nullif(sum(o.volume order by o.open_time), 0) end as vwap,
      case when count(*) = count(o.volume) then sum(o.volume order by o.open_time) end as volume,
      count(*)::integer as slots, min(o.open_time) as first_at
    -- A slot that ends after the span tells of what came later.
    from (
      select p.open_time, p.volume, p.volume * (p.high + p.low + p.close) / 3 as weighted from market.ohlcv(coin, width, from_time, to_time, quote) p
      where p.close_time <= a.last_close
      -- Or it would be computed twice.
      offset 0
    ) o
  ) t
  cross join lateral (
    select case when isfinite(a.since) then market.slot_end(width, market.slot_of(width, a.since - interval '1 microsecond')) else t.first_at end as first,
      market.slot_of(width, a.until) as last
  ) s
$$;
comment on function market.vwap(text, anyelement, anycompatible, interval, text) is 'Average price, weighted by volume: the mean of high, low and close of each candle of the width, the narrower the better. Null where a volume, or one of the three prices, is unknown. It means something only if volumes are those of their slots: see market.volume_meaning. slots: candles, of slots that lie in the span as a whole; complete: each slot of the span is final, with a candle or known to be empty. Example: select * from market.vwap(''BTC'', ''2024-06-01'', ''2024-07-01'', ''1 hour'');';

create or replace function market.twap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (twap double precision, slots integer, complete boolean)
  language sql stable parallel safe
as $$
  with asked as materialized (
    select market.utc(from_time) as since, coalesce(nullif(market.utc(to_time), 'infinity'), now()) as until,
      coalesce(nullif(market.utc(to_time), 'infinity'), now()) - interval '1 second' as last_close
  )
  select t.twap, t.slots,
    coalesce(case when s.first < s.last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, s.last) end, false)
  from asked a
  cross join lateral (
    select case when count(*) = count(o.price) then avg(o.price order by o.open_time) end as twap,
      count(*)::integer as slots, min(o.open_time) as first_at
    -- A slot that ends after the span tells of what came later.
    from (
      select p.open_time, (p.open + p.high + p.low + p.close) / 4 as price from market.ohlcv(coin, width, from_time, to_time, quote) p
      where p.close_time <= a.last_close
      -- Or it would be computed twice.
      offset 0
    ) o
  ) t
  cross join lateral (
    select case when isfinite(a.since) then market.slot_end(width, market.slot_of(width, a.since - interval '1 microsecond')) else t.first_at end as first,
      market.slot_of(width, a.until) as last
  ) s
$$;
comment on function market.twap(text, anyelement, anycompatible, interval, text) is 'Average price over time: the mean of open, high, low and close of each candle of the width, all with the same weight. Null where one of the four is unknown. slots: candles, of slots that lie in the span as a whole; complete: each slot of the span is final, with a candle or known to be empty. Example: select * from market.twap(''BTC'', ''2024-06-01'', ''2024-07-01'', ''1 hour'');';

create or replace function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (drawdown double precision, peak_at timestamptz, trough_at timestamptz, slots integer, complete boolean)
  language sql stable parallel safe
as $$
  with asked as materialized (
    select market.utc(from_time) as since, coalesce(nullif(market.utc(to_time), 'infinity'), now()) as until
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
  if isfinite(zero) is not true then
    return;
  end if;
  return query
  with closes as materialized (
    select g.n as step, (zero + g.n * width) at time zone 'UTC' as slot, o.close,
      case when o.is_closed then o.close end as at_end, case when b.is_closed then b.close end as of_benchmark
    from generate_series(-greatest(before, 1), after) g(n)
    left join market.ohlcv_closed(of_coin, width, first, last, event_study.quote) o on o.open_time = (zero + g.n * width) at time zone 'UTC'
    left join market.ohlcv_closed(of_benchmark, width, first, last, event_study.quote) b on b.open_time = (zero + g.n * width) at time zone 'UTC'
  ), changes as (
    select c.*, c.at_end / nullif(r.at_end, 0) - 1 as change, c.of_benchmark / nullif(r.of_benchmark, 0) - 1 as benchmark_change
    from closes c left join closes r on r.step = -1
  )
  select c.step, c.slot, c.close, c.change, c.benchmark_change, c.change - c.benchmark_change from changes c where c.step >= -before order by 1;
end
$$;
comment on function market.event_study(text, anyelement, integer, integer, interval, text, text) is 'How the price of a coin moved around an event: step 0 is the slot that holds it, and change is against the close of the slot before it (step -1). abnormal is what the benchmark does not explain: change less benchmark_change. Null where a candle is missing or has not closed (is_closed of market.ohlcv_closed), and null in all steps where it is that of step -1: a change never spans a hole. No rows where the instant is null or infinite. For many events: market.coin_event cross join lateral market.event_study(coin_id, at). Example: select step, change, abnormal from market.event_study(''ETH'', ''2024-05-20'');';

create function ops.span_of_time(width interval) returns interval language plpgsql immutable parallel safe as $$
begin
  if not isfinite(width) or width <= interval '0' or extract(year from width) <> 0 or extract(month from width) <> 0 then
    raise exception using errcode = 'invalid_parameter_value', message = format('no bars of samples have a width of %s', width),
      hint = 'Give minutes, hours, days or weeks. market.ohlcv has candles of months.';
  end if;
  return width;
end
$$;
comment on function ops.span_of_time(interval) is 'The same width. An error where it is not positive, or has months.';

create or replace function market.prices_sampled(coin text, width interval, span tstzrange)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    samples integer, largest_gap interval, is_open_at_edge boolean, is_close_at_edge boolean)
  language sql stable parallel safe
begin atomic
  select s.* from ops.prices_sampled((select market.coin_of(coin)), ops.span_of_time(width), lower(span), upper(span)) s;
end;
