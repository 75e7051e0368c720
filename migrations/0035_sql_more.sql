-- A coin that the upstream gave another id: its tickers of before are found, and it is one coin in the universe. And instants in any DateStyle.

-- It writes instants into a statement. In another style than ISO they have the abbreviation of their zone, which Postgres reads as that of another zone
-- before version 18: CST of Shanghai as that of Chicago.
alter function market.ohlcv_closed(text, interval, anyelement, anycompatible, text) set datestyle = 'ISO, YMD';

create or replace function market.price_at(coin text, at anyelement, max_age interval default '1 day', quote text default 'usd')
  returns table (price double precision, source text, priced_at timestamptz, age interval)
  language plpgsql stable parallel safe rows 1 cost 1000 set plan_cache_mode = force_generic_plan as $$
declare
  of_coin constant text := market.coin_of(coin);
  instant constant timestamptz := market.utc(at);
  oldest constant timestamptz := case when isfinite(instant) then
    instant - case when isfinite(max_age) then make_interval(secs => extract(epoch from max_age)::double precision) else max_age end end;
  found_at timestamptz;
  ticker_of text := of_coin;
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
    -- Tickers of before the upstream gave it this id.
    if found_at is null and exists (select from market.coin_rename r where r.new_id = of_coin) then
      with recursive former as (
        select of_coin as id, 0 as hops
        union all
        -- An id that upstream has given to a new coin belongs to that coin.
        select r.old_id, f.hops + 1 from former f join market.coin_rename r on r.new_id = f.id
        where f.hops < 20 and not exists (select from market.coin c where c.id = r.old_id and c.is_active and c.last_seen_at > r.renamed_at)
      )
      select f.id, h.at into ticker_of, found_at from former f
        cross join lateral (select t.at from market.ticker_history t
          where t.coin_id = f.id and t.price is not null and t.at <= instant and t.at >= greatest(oldest, priced_at) order by t.at desc limit 1) h
        order by h.at desc limit 1;
    end if;
    -- When it was read says what was known; how old the price is, only when upstream updated it.
    if found_at is not null then
      select h.price, least(h.updated_at, h.at) as updated_at into newest from market.ticker_history h where h.coin_id = ticker_of and h.at = found_at;
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
comment on function market.price_at(text, anyelement, interval, text) is 'What a coin was worth at an instant, by what had closed until then: the close of the youngest candle of any interval, or a younger ticker (usd); a price series (the mean of a span) only where there is neither. source says which, age how old it was: a ticker that had been read by then is as old as the upstream said when it updated it, and a candle that was read before it closed is as old as its data. Tickers under former ids of the coin count, too. Always one row: price is null when nothing is younger than max_age. quote is usd or btc. Example: select * from market.price_at(''BTC'', ''2024-06-30 12:00'');';

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
        ) k
        -- Where both ids of a coin have candles of then, it is one coin.
        where not exists (select from market.coin_rename r join market.series s on s.coin_id = r.new_id and s.quote = 'usd'
          where r.old_id = k.coin_id and s.covered @> k.as_of - interval '1 microsecond')
        order by k.coin_id, k.as_of desc, k.source
      ) d order by d.market_cap desc, d.coin_id limit n
    ) b join market.coin c on c.id = b.coin_id order by 1;
end
$$;
comment on function market.universe(anyelement, integer) is 'The n largest coins by market capitalisation as of an instant, dead ones included, by what had closed then: the newest snapshot of tickers of the 24 hours before; where there is none, the daily candles (stored or made) and daily prices in usd that closed in the two days before. as_of: when upstream last updated the ticker, or when the candle or the day of the price closed (of a candle that was read before: until when its data reach). A coin whose former id has daily candles of its own has one place. It knows only coins of which something is stored. symbol and name are those of today. Example: select * from market.universe(''2024-06-30'', 10);';

create or replace function ops.prices_sampled(coin text, width interval, from_time timestamptz, to_time timestamptz)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    samples integer, largest_gap interval, is_open_at_edge boolean, is_close_at_edge boolean)
  language sql stable parallel safe
begin atomic
  with told as (
    select r.id, r.span, p.time as at, p.price, date_bin(width, p.time, 'epoch') as slot
    from (
      select s.id, market.width_of(s.interval) as span from market.series s
      where s.coin_id = coin and s.quote = 'usd' and s.interval > '24h' and market.width_of(s.interval) < width
    ) r
    join market.price p on p.series_id = r.id and p.time >= from_time and p.time < to_time and p.price is not null
  ),
  best as (
    select distinct on (g.slot) g.slot, g.id
    from (
      select b.id, b.span, b.slot, greatest(max(b.at - b.before), min(b.at) - b.slot,
        b.slot + make_interval(secs => extract(epoch from width)::double precision) - max(b.at)) as gap
      from (select t.*, lag(t.at) over (partition by t.id, t.slot order by t.at) as before from told t) b
      group by b.id, b.span, b.slot
    ) g
    order by g.slot, g.gap, g.span
  ),
  sample as (
    select h.at, h.price, interval '0' as span from market.ticker_history h
    where h.at >= from_time and h.at < to_time and h.price is not null and h.coin_id = any(array(
      -- Also those of before the upstream gave it this id. An id that upstream has given to a new coin belongs to that coin.
      with recursive former as (
        select coin as id, 0 as hops
        union all
        select r.old_id, f.hops + 1 from former f join market.coin_rename r on r.new_id = f.id
        where f.hops < 20 and not exists (select from market.coin c where c.id = r.old_id and c.is_active and c.last_seen_at > r.renamed_at)
      )
      select f.id from former f))
    union all
    select t.at, t.price, t.span from told t join best b on b.slot = t.slot and b.id = t.id
  ),
  placed as (
    select date_bin(width, s.at, 'epoch') as slot, s.at, s.price, s.span,
      lag(s.at) over (partition by date_bin(width, s.at, 'epoch') order by s.at) as before
    from sample s
  )
  select b.slot, b.open, b.high, b.low, b.close, b.samples, greatest(b.within, b.first - b.slot, b.until - b.last),
    b.first - b.slot <= width / 24 and b.first_span <= width / 24, b.until - b.last <= width / 24
  from (
    -- Of samples of one instant the lowest comes first, so that the same bar comes out each time.
    select p.slot, (array_agg(p.price order by p.at, p.price))[1] as open, max(p.price) as high, min(p.price) as low,
      (array_agg(p.price order by p.at desc, p.price desc))[1] as close, count(*)::integer as samples, max(p.at - p.before) as within,
      min(p.at) as first, (array_agg(p.span order by p.at, p.price))[1] as first_span, max(p.at) as last,
      -- Seconds: a day that is added to an instant has 23 or 25 hours where the clocks of the session's time zone change.
      p.slot + make_interval(secs => extract(epoch from width)::double precision) as until
    from placed p group by p.slot
  ) b
  where b.slot >= from_time and b.until <= to_time
  order by b.slot;
end;

-- The rows of market.ohlcv come in the order of time: their sums need no sort of their own.
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
    select case when count(*) = count(o.weighted) then sum(o.weighted) / nullif(sum(o.volume), 0) end as vwap,
      case when count(*) = count(o.volume) then sum(o.volume) end as volume,
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
    select case when count(*) = count(o.price) then avg(o.price) end as twap,
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
