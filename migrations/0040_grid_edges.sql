-- Whole slots in spans, in every session's zone; spans without an end; months.
create or replace function market.slots_within(spans tstzmultirange, width interval) returns tstzmultirange
  language plpgsql immutable parallel safe as $$
declare
  -- An interval of seconds is as long in each time zone.
  fixed constant interval := case when width > interval '0' and extract(year from width) = 0 and extract(month from width) = 0
    then make_interval(secs => extract(epoch from width)::double precision) end;
begin
  if fixed is not null then
    return coalesce((
      select range_agg(tstzrange(s.first, s.last))
      from unnest(spans) r
      cross join lateral (select date_bin(fixed, lower(r) + fixed - interval '1 microsecond', timestamptz 'epoch') as first,
        date_bin(fixed, upper(r), timestamptz 'epoch') as last) s
      where lower_inf(r) or upper_inf(r) or s.first < s.last), '{}');
  end if;
  -- Months have no grid of 1970. slot_of raises the error for what is no width.
  return coalesce((
    select range_agg(tstzrange(f.first, s.last))
    from unnest(spans) r
    cross join lateral (select market.slot_of(width, lower(r)) as begun, market.slot_of(width, upper(r)) as last) s
    cross join lateral (select case when s.begun < lower(r) then market.slot_end(width, s.begun) else s.begun end as first) f
    where width is not null and (lower_inf(r) or upper_inf(r) or f.first < s.last)), '{}');
end
$$;
comment on function market.slots_within(tstzmultirange, interval) is 'The slots of a width, on the grid of 1970 in UTC (months begin on the first), that lie in these spans as a whole. Example: select market.slots_within(covered, interval ''1 day'') from market.coverage where coin_id = ''btc-bitcoin'';';

-- A symbol in any case: also one like stETH.
create or replace function market.coin_of(name text) returns text language plpgsql stable strict parallel safe as $$
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
  -- A symbol like stETH, in other letters. Last, because no index has it: this reads all coins.
  if ids is null then
    select array_agg(distinct market.coin_of(c.symbol)) into ids from market.coin c where lower(c.symbol) = lower(given) and c.symbol <> given;
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

-- The reason of a last slot that ends after `until`.
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
  -- The last slot may end after `until`.
  ends timestamptz;
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
  ends := market.slot_end(width, market.slot_of(width, until - interval '1 microsecond'));
  -- The reasons are in a large view: only where they are needed.
  if first < until and not spans @> tstzrange(first, ends) then
    select array_agg(g.gap_from), array_agg(g.gap_to), array_agg(g.reason) into froms, tos, reasons from market.gaps g
      where g.coin_id = of_coin and g.quote = on_grid.quote and g.gap_to > first and g.gap_from < ends
        and g.interval = (select max(s.interval) from market.series s where s.coin_id = of_coin and s.quote = on_grid.quote and s.interval <= base);
    select range_agg(e.slots) into removed from market.series s join market.evidence e on e.series_id = s.id
      where s.coin_id = of_coin and s.quote = on_grid.quote and s.interval <= base and e.kind = 'retention' and e.slots && tstzrange(first, ends);
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

-- The deepest fall is one between closes: a candle that moves, or that was read before its slot ended, has none. If the last day of a week is known to
-- be empty, the day before has the close of the week.
create or replace function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (drawdown double precision, peak_at timestamptz, trough_at timestamptz, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  since constant timestamptz := market.utc(from_time);
  -- A slot that ends after the span tells of what came later, and one that has not ended yet has no close.
  last constant timestamptz := market.slot_of(width, least(market.utc(to_time), now()));
  ends constant timestamptz := market.slot_of(width, coalesce(nullif(market.utc(to_time), 'infinity'), now()));
begin
  return query
    with closes as materialized (
      select o.open_time, o.close_time, o.close, max(o.close) over (order by o.open_time rows unbounded preceding) as peak
      from (
        select c.open_time, c.close_time, case when c.is_closed or c.complete then c.close end as close from market.ohlcv_closed(coin, width, since, last, quote) c
      ) o
    ), deepest as (
      select c.close_time, c.peak, c.close / nullif(c.peak, 0) - 1 as fall from closes c where c.close is not null order by 3, 1 limit 1
    )
    select d.fall, (select max(c.close_time) from closes c where c.close = d.peak and c.close_time <= d.close_time) + interval '1 second',
      d.close_time + interval '1 second', t.slots,
      coalesce(case when s.first < last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, ends) end, false)
    from (select count(*)::integer as slots, min(c.open_time) as first_at from closes c) t
    cross join lateral (
      select case when isfinite(since) then market.slot_end(width, market.slot_of(width, since - interval '1 microsecond')) else t.first_at end as first
    ) s
    left join deepest d on true;
end
$$;

create or replace function market.twap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (twap double precision, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  candles record;
  first timestamptz;
begin
  -- A slot that ends after the span tells of what came later, and one that has not ended yet is not known.
  select s.* into candles from market.ohlcv_statement(coin, width, market.utc(from_time), least(market.utc(to_time), now()), quote, true) s;
  slots := 0;
  if candles.statement is not null then
    execute format('select case when count(*) = count(price) then avg(price) end, count(*)::integer, %s
      from (select open_time, (open + high + low + close) / 4 as price from (%s) candle offset 0) p',
      case when isfinite(candles.first) then '$1' else 'min(open_time)' end, candles.statement)
      into twap, slots, first using candles.first;
  end if;
  -- A span that is not over is not complete.
  complete := coalesce(first < candles.last
    and candles.known @> tstzrange(first, greatest(candles.last, market.slot_of(width, nullif(market.utc(to_time), 'infinity')))), false);
  return next;
end
$$;

create or replace function market.vwap(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (vwap double precision, volume double precision, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  candles record;
  first timestamptz;
begin
  -- A slot that ends after the span tells of what came later, and one that has not ended yet is not known.
  select s.* into candles from market.ohlcv_statement(coin, width, market.utc(from_time), least(market.utc(to_time), now()), quote, true) s;
  slots := 0;
  if candles.statement is not null then
    -- Its rows come in the order of time: the sums need no sort of their own.
    execute format('select case when count(*) = count(weighted) then sum(weighted) / nullif(sum(volume), 0) end,
        case when count(*) = count(volume) then sum(volume) end, count(*)::integer, %s
      from (select open_time, volume, volume * (high + low + close) / 3 as weighted from (%s) candle offset 0) w',
      case when isfinite(candles.first) then '$1' else 'min(open_time)' end, candles.statement)
      into vwap, volume, slots, first using candles.first;
  end if;
  -- A span that is not over is not complete.
  complete := coalesce(first < candles.last
    and candles.known @> tstzrange(first, greatest(candles.last, market.slot_of(width, nullif(market.utc(to_time), 'infinity')))), false);
  return next;
end
$$;

-- Price series of 7 and 14 days have the grid of 1970, as the upstream has; a part of a slot is no final slot.
create or replace function market.condition(coin text, "interval" market.candle_interval, day date, quote text default 'usd')
  returns table (condition text, reason text, detail text, slots integer, final_slots integer, rows integer, next_ask_at timestamptz)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  of_coin constant text := market.coin_of(coin);
  width constant interval := market.width_of("interval");
  is_prices constant boolean := "interval" > '24h';
  begins constant timestamptz := case when is_prices then date_bin(width, market.utc(day), timestamptz 'epoch') else market.slot_of(width, market.utc(day)) end;
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
  final_slots := (select floor(coalesce(sum(extract(epoch from upper(r) - lower(r))), 0) / extract(epoch from width)) from unnest(final) r);
  select s.id, s.interval, s.covered, s.wanted into own from market.series s
    where s.coin_id = of_coin and s.quote = condition.quote and s.interval = condition."interval";
  if is_prices then
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

-- The day of a refusal is as long in each time zone.
create or replace view market.gaps as
select
  s.coin_id,
  s.symbol,
  s.quote,
  s.interval,
  lower(r) as gap_from,
  upper(r) as gap_to,
  n.slots,
  piece.reason,
  piece.detail,
  piece.next_ask_at
from ops.series_now s
-- Refusals of this series, then history limits of its interval; where they overlap, the first one speaks.
cross join lateral (
  with ranked as (
    select 0 as tier, id, reason, message, tstzmultirange(span) as spans,
      -- A refusal of one series may have been a passing fault of the upstream, or of a gateway before it: it is requested again after a day.
      refused_at + interval '24 hours' as again_at
    from market.refusal
    where series_id = s.id and account_plan = (select plan from ops.account where is_current)
    union all
    -- The first slot that opens behind the history limit is the first one to be had.
    select 1, id, reason, message, tstzmultirange(case
      when depth is null then '(,)'
      else tstzrange(null, least(
        to_timestamp(ceil(date_part('epoch', now() - depth) / s.width) * s.width),
        -- A daily candle takes two days to become final. Where the limit is nearer, the last full day is asked for by itself, and the open one later.
        case when s.interval = '24h' and depth < interval '2 days' then date_trunc('day', now(), 'UTC') - interval '24 hours' end
      ))
    end), null
    from market.refusal
    where series_id is null and interval = s.interval and account_plan = (select plan from ops.account where is_current)
  ),
  refused as (
    select tier, id, reason, message, spans, again_at,
      coalesce(range_agg(spans) over (order by tier, id desc rows between unbounded preceding and 1 preceding), '{}') as earlier
    from ranked
  ),
  waiting as (
    select claim as reason, evidence ->> 'detail' as detail, retry_at, tstzmultirange(span) as spans,
      coalesce(range_agg(span) over (order by requested_at desc, span rows between unbounded preceding and 1 preceding), '{}') as earlier
    from ops.second_opinion
    where series_id = s.id
  ),
  -- The upstream has not gone on to the last full day: nobody asks about any coin until then.
  late as (
    select retry_at, tstzmultirange(tstzrange(day, day + interval '24 hours')) as spans
    from ops.second_opinion cross join (select date_trunc('day', now(), 'UTC') - interval '24 hours' as day) last
    where s.interval = '24h' and claim = 'day is late' and retry_at > now()
      and key = (select plan from ops.account where is_current) || to_char(day at time zone 'UTC', ' YYYY-MM-DD')
  ),
  totals as (
    select
      coalesce((select range_agg(spans) from refused), '{}') as refused,
      coalesce((select range_agg(spans) from waiting), '{}') as waiting
  )
  select s.missing * (refused.spans - refused.earlier) as spans, refused.reason, refused.message as detail, refused.again_at as next_ask_at
  from refused
  union all
  select s.missing * (waiting.spans - waiting.earlier - totals.refused), waiting.reason,
    case when waiting.reason = 'unconfirmed' and (select last_seen_at from market.coin where id = s.coin_id)
        < (select max(last_seen_at) from market.coin)
      then 'the latest list of coins does not have this one: an empty answer proves nothing'
      else waiting.detail
    end, waiting.retry_at
  from waiting cross join totals
  union all
  select s.missing - totals.refused - totals.waiting - coalesce((select spans from late), '{}'), 'not asked yet', null, null
  from totals
  union all
  select (s.missing - totals.refused - totals.waiting) * late.spans, 'not asked yet',
    'the upstream has not yet gone on to the day that ended last', late.retry_at
  from late cross join totals
) piece
cross join lateral unnest(piece.spans) r
cross join lateral (
  select (ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width))::bigint as slots
) n
where not isempty(s.missing) and n.slots > 0;

-- A price that was read before its span ended is no mean of the span.
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
  -- A mean of its span, known when that has ended. If it was read before, it is one of a part of it.
  if priced_at is null then
    select p.price, 'mean of ' || substr(s.interval::text, 8), p.time + market.width_of(s.interval) into price, source, priced_at
      from market.series s
      cross join lateral (
        select q.time, q.price from market.price q
        where q.series_id = s.id and q.price is not null and (q.time + market.width_of(s.interval) <= s.answered_at or s.covered @> q.time)
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
              and (p.time + interval '24 hours' <= s.answered_at or s.covered @> p.time)
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

-- Only whole bars, also where the span reaches beyond now.
create or replace function market.prices_sampled(coin text, width interval, span tstzrange)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    samples integer, largest_gap interval, is_open_at_edge boolean, is_close_at_edge boolean)
  language sql stable parallel safe
begin atomic
  select s.* from ops.prices_sampled((select market.coin_of(coin)), ops.span_of_time(width), lower(span), least(upper(span), now())) s;
end;

-- One refused item could stop its whole kind. A kind that is really refused is found again within minutes.
delete from ops.second_opinion where claim = 'catalogue refusal';
