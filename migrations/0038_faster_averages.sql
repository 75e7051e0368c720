-- Averages of prices are computed where the candles are read. Before, ohlcv_closed first stored all its rows with all their columns, to be read
-- again, which took as long as the rest. And a smaller view of the latest candles, which is planned faster. The answers are the same, to the bit.

-- What was ohlcv_closed, up to the point where the statement runs.
create function market.ohlcv_statement(coin text, width interval, from_time timestamptz, to_time timestamptz, quote text, only_whole boolean,
    out statement text, out first timestamptz, out last timestamptz, out known tstzmultirange)
  language plpgsql stable parallel safe cost 1000 set datestyle = 'ISO, YMD' as $$
declare
  of_coin constant text := market.coin_of(coin);
  -- First of all: it refuses what is no width.
  base constant market.candle_interval := market.base_of(width);
  months constant integer := extract(year from width) * 12 + extract(month from width);
  seconds constant numeric := extract(epoch from width - make_interval(months => months));
  calendar constant text := case when months = 1 and seconds = 0 then 'month' when months = 0 and seconds = 604800 then 'week' end;
  until constant timestamptz := coalesce(nullif(to_time, 'infinity'), now());
  columns constant text := 'open_time, open, high, low, close, volume, market_cap';
  -- As the service makes them: null where a part is null, volumes added in the order of time.
  made constant text := '(array_agg(open order by open_time))[1] as open,
    nullif(max(coalesce(high, ''NaN'')), ''NaN'') as high, nullif(min(coalesce(low, ''-Infinity'')), ''-Infinity'') as low,
    (array_agg(close order by open_time))[count(*)] as close,
    case when max(coalesce(volume, ''NaN'')) <= 1e304 then sum(least(volume, 1e304) order by open_time) end as volume,
    (array_agg(market_cap order by open_time))[count(*)] as market_cap';
  part constant interval := market.width_of(base);
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
  whole tstzmultirange;
  fresh tstzmultirange;
  ahead tstzmultirange := '{}';
  parts text[] := '{}';
  closed text := 'true';
begin
  if quote not in ('usd', 'btc') then
    raise exception using errcode = 'invalid_parameter_value', message = format('there are no candles in %s', quote),
      hint = 'Candles are in usd and btc. market.in_quote converts their closes.';
  end if;
  if from_time = 'infinity' or until = '-infinity' then
    return;
  end if;
  known := '{}';
  first := '-infinity';
  last := market.slot_of(width, until);
  if last < until and not only_whole then
    last := market.slot_end(width, last);
  end if;
  if isfinite(from_time) then
    first := market.slot_of(width, from_time);
    if first < from_time then
      first := market.slot_end(width, first);
    end if;
  end if;
  if first >= last then
    return;
  end if;
  wanted := tstzmultirange(tstzrange(first, last));
  if calendar is not null then
    ahead := wanted * coalesce((select c.spans from market.calendar_coverage c
      where c.coin_id = of_coin and c.quote = ohlcv_statement.quote and c.period = calendar), '{}');
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
    where t.coin_id = of_coin and t.quote = ohlcv_statement.quote and t.interval <= base order by t.interval desc
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
    statement := case
      when seconds = extract(epoch from part) then
        -- No month: an interval of seconds is as long in each time zone. Constants are for the many rows of a year of hours.
        format('select open_time, open_time + %L::interval as close_time, open, high, low, close, volume, market_cap, 1 as slots, %s as complete, %s as is_closed
          from (%s) part', make_interval(secs => seconds::double precision - 1),
          case when known @> tstzrange(first, last) then 'true' else format('%L::tstzmultirange @> open_time', known * tstzmultirange(tstzrange(first, last))) end,
          -- Both are rare, and each would cost something for each row.
          concat_ws(' and ', 'true', case when last > now() then format('open_time + %L::interval <= now()', part) end,
            case when cardinality(unclosed) > 0 then format('open_time <> all(%L::timestamptz[])', unclosed) end),
          array_to_string(parts, ' union all '))
      else
        format('select slot as open_time, market.slot_end(%1$L::interval, slot) - interval ''1 second'' as close_time, open, high, low, close, volume, market_cap, slots,
            %2$L::tstzmultirange @> tstzrange(slot, market.slot_end(%1$L::interval, slot)) as complete, %3$s as is_closed
          from (select market.slot_of(%1$L::interval, open_time) as slot, %4$s, count(*)::integer as slots, max(open_time) as last_at from (%5$s) part group by 1) made',
          width, known * tstzmultirange(tstzrange(first, last)),
          concat_ws(' and ', format('last_at = market.slot_end(%L::interval, slot) - %L::interval', width, part),
            case when last > now() then format('market.slot_end(%L::interval, slot) <= now()', width) end,
            case when cardinality(unclosed) > 0 then format('last_at <> all(%L::timestamptz[])', unclosed) end),
          made, array_to_string(parts, ' union all '))
      end;
  end if;
  if not isempty(ahead) then
    -- Those that have all parts have the last one. Of the others, it is looked up.
    if exists (select from market.calendar_candle c where c.coin_id = of_coin and c.quote = ohlcv_statement.quote and c.period = calendar
        and c.open_time >= lower(ahead) and c.open_time < upper(ahead) and c.slots * part < market.slot_end(width, c.open_time) - c.open_time) then
      closed := format('slots * %6$L::interval = market.slot_end(%7$L::interval, open_time) - open_time or market.slot_end(%7$L::interval, open_time) - %6$L::interval in (
        select p.open_time from market.candle p where p.series_id = %1$L and p.interval = %2$L and p.open_time >= %3$L and p.open_time < %4$L
        union all select p.open_time from market.rollup p where p.series_id = any(%5$L::integer[]) and p.interval = %2$L and p.open_time >= %3$L and p.open_time < %4$L)',
        own, base, lower(ahead), upper(ahead), finer, part, width);
    end if;
    statement := concat_ws(' union all ', statement, format('select open_time, market.slot_end(%L::interval, open_time) - interval ''1 second'' as close_time,
        open, high, low, close, volume, market_cap, slots, true as complete, %s as is_closed
      from market.calendar_candle where coin_id = %L and quote = %L and period = %L and open_time >= %L and open_time < %L',
      width, closed, of_coin, quote, calendar, lower(ahead), upper(ahead)));
  end if;
  statement := statement || ' order by 1';
end
$$;
comment on function market.ohlcv_statement(text, interval, timestamptz, timestamptz, text, boolean) is 'The statement that market.ohlcv_closed, market.vwap and market.twap run, of slots that open from first until last; only_whole: of those that end by to_time. Null where nothing can be there. known: the spans in which each part is final, with a candle or known to be empty. Example: select statement from market.ohlcv_statement(''BTC'', ''1 week'', market.utc(''2024-01-01''), market.utc(''2024-03-01''), ''usd'', false);';

create or replace function market.ohlcv_closed(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision, slots integer, complete boolean, is_closed boolean)
  language plpgsql stable parallel safe cost 1000 as $$
declare
  statement constant text := (select s.statement from market.ohlcv_statement(coin, width, market.utc(from_time), market.utc(to_time), quote, false) s);
begin
  if statement is not null then
    return query execute statement;
  end if;
end
$$;

create or replace function market.vwap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (vwap double precision, volume double precision, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  candles record;
  first timestamptz;
begin
  -- A slot that ends after the span tells of what came later.
  select s.* into candles from market.ohlcv_statement(coin, width, market.utc(from_time), market.utc(to_time), quote, true) s;
  slots := 0;
  if candles.statement is not null then
    -- Its rows come in the order of time: the sums need no sort of their own.
    execute format('select case when count(*) = count(weighted) then sum(weighted) / nullif(sum(volume), 0) end,
        case when count(*) = count(volume) then sum(volume) end, count(*)::integer, %s
      from (select open_time, volume, volume * (high + low + close) / 3 as weighted from (%s) candle offset 0) w',
      case when isfinite(candles.first) then '$1' else 'min(open_time)' end, candles.statement)
      into vwap, volume, slots, first using candles.first;
  end if;
  complete := coalesce(first < candles.last and candles.known @> tstzrange(first, candles.last), false);
  return next;
end
$$;

create or replace function market.twap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (twap double precision, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  candles record;
  first timestamptz;
begin
  -- A slot that ends after the span tells of what came later.
  select s.* into candles from market.ohlcv_statement(coin, width, market.utc(from_time), market.utc(to_time), quote, true) s;
  slots := 0;
  if candles.statement is not null then
    execute format('select case when count(*) = count(price) then avg(price) end, count(*)::integer, %s
      from (select open_time, (open + high + low + close) / 4 as price from (%s) candle offset 0) p',
      case when isfinite(candles.first) then '$1' else 'min(open_time)' end, candles.statement)
      into twap, slots, first using candles.first;
  end if;
  complete := coalesce(first < candles.last and candles.known @> tstzrange(first, candles.last), false);
  return next;
end
$$;

-- To plan a view, Postgres copies all of it several times: so it says as little as it can. One join with the series instead of one in each branch,
-- and the values of a candle as one. The interval of each branch is a constant, so that Postgres drops the branches of other intervals before it
-- plans them; that of the series is asked for outside of the look-up, so that it is made only in the branch of the series.
create or replace view market.latest as
select s.coin_id, co.symbol, s.quote, n.interval, n.open_time, n.open_time + market.width_of(n.interval) - interval '1 second' as close_time,
  n.v[1] as open, n.v[2] as high, n.v[3] as low, n.v[4] as close, n.v[5] as volume, n.v[6] as market_cap,
  s.covered @> n.open_time as is_final, s.id as series_id
from market.series s
cross join lateral (
  select '5m'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '5m' order by open_time desc limit 1) c
  where s.interval = '5m'
  union all
  select '15m'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '15m' order by open_time desc limit 1) c
  where s.interval = '15m'
  union all
  select '30m'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '30m' order by open_time desc limit 1) c
  where s.interval = '30m'
  union all
  select '1h'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '1h' order by open_time desc limit 1) c
  where s.interval = '1h'
  union all
  select '6h'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '6h' order by open_time desc limit 1) c
  where s.interval = '6h'
  union all
  select '12h'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '12h' order by open_time desc limit 1) c
  where s.interval = '12h'
  union all
  select '24h'::market.candle_interval as interval, c.* from (
    select open_time, array[open, high, low, close, volume, market_cap] as v from market.candle
    where series_id = s.id and interval = '24h' order by open_time desc limit 1) c
  where s.interval = '24h'
) n
left join market.coin co on co.id = s.coin_id
where n.interval = s.interval;
