-- Whole slots in spans: the grid of market.slot_of (weeks begin on Monday), in every session's zone, and spans without an end.
create or replace function market.slots_within(spans tstzmultirange, width interval) returns tstzmultirange
  language sql immutable parallel safe
  return coalesce((
    select range_agg(tstzrange(s.first, s.last))
    from unnest(spans) r
    cross join lateral (select market.slot_of(width, lower(r)) as at_begin, market.slot_of(width, upper(r)) as last) b
    cross join lateral (select case when b.at_begin < lower(r) then market.slot_end(width, b.at_begin) else b.at_begin end as first, b.last) s
    where s.first < s.last or lower_inf(r) or upper_inf(r)), '{}');
comment on function market.slots_within(tstzmultirange, interval) is 'The slots of a width, as market.slot_of has them, that lie in these spans as a whole. Example: select market.slots_within(covered, interval ''1 day'') from market.coverage where coin_id = ''btc-bitcoin'';';

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
