-- Whole slots in spans, in every session's zone; spans without an end; months.
create or replace function market.slots_within(spans tstzmultirange, width interval) returns tstzmultirange
  language sql immutable parallel safe
  return coalesce((
    select range_agg(tstzrange(f.first, g.last))
    from unnest(spans) r
    -- Months have no grid of 1970, and slot_of raises the error for what is no width. An interval of seconds is as long in each time zone.
    cross join (select case when width > interval '0' and extract(year from width) = 0 and extract(month from width) = 0
      then make_interval(secs => extract(epoch from width)::double precision) end as fixed) w
    cross join lateral (select
      case when w.fixed is null then market.slot_of(width, lower(r)) else date_bin(w.fixed, lower(r), timestamptz 'epoch') end as begun,
      case when w.fixed is null then market.slot_of(width, upper(r)) else date_bin(w.fixed, upper(r), timestamptz 'epoch') end as last) g
    cross join lateral (select case when g.begun < lower(r) then market.slot_end(width, g.begun) else g.begun end as first) f
    where width is not null and (lower_inf(r) or upper_inf(r) or f.first < g.last)), '{}');
comment on function market.slots_within(tstzmultirange, interval) is 'The slots of a width, on the grid of 1970 in UTC (months begin on the first), that lie in these spans as a whole. Example: select market.slots_within(covered, interval ''1 day'') from market.coverage where coin_id = ''btc-bitcoin'';';

-- A symbol in any case: also one like stETH.
drop index market.coin_by_symbol;
create index coin_by_symbol on market.coin (lower(symbol));

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
    where lower(c.symbol) = lower(given)
      and not exists (select from market.coin_rename r where r.old_id = c.id and not (c.is_active and c.last_seen_at > r.renamed_at));
  -- Only of coins that have another id now.
  if ids is null then
    select array_agg(distinct market.coin_of(c.id)) into ids from market.coin c where lower(c.symbol) = lower(given);
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

-- The deepest fall is one between closes: a candle that moves, or that was read before its slot ended, has none.
create or replace function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (drawdown double precision, peak_at timestamptz, trough_at timestamptz, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  since constant timestamptz := market.utc(from_time);
  -- A slot that ends after the span tells of what came later, and one that has not ended yet has no close.
  last constant timestamptz := market.slot_of(width, least(market.utc(to_time), now()));
begin
  return query
    with closes as materialized (
      select o.open_time, o.close_time, o.close, max(o.close) over (order by o.open_time rows unbounded preceding) as peak
      from (
        select c.open_time, c.close_time, case when c.is_closed then c.close end as close from market.ohlcv_closed(coin, width, since, last, quote) c
      ) o
    ), deepest as (
      select c.close_time, c.peak, c.close / nullif(c.peak, 0) - 1 as fall from closes c where c.close is not null order by 3, 1 limit 1
    )
    select d.fall, (select max(c.close_time) from closes c where c.close = d.peak and c.close_time <= d.close_time) + interval '1 second',
      d.close_time + interval '1 second', t.slots,
      coalesce(case when s.first < last then market.final_spans(coin, market.base_of(width), quote) @> tstzrange(s.first, last) end, false)
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
  complete := coalesce(first < candles.last and candles.known @> tstzrange(first, candles.last), false);
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
  complete := coalesce(first < candles.last and candles.known @> tstzrange(first, candles.last), false);
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
