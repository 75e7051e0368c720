-- Price series: what upstream tells of the price of a coin at any width, far further back than of candles (upstream-api.md, 1.7). A series of prices
-- is a series like any other: coverage, gaps, evidence and digests are the same. Only its rows lie in a table of their own.

alter type market.candle_interval add value 'prices-5m';
alter type market.candle_interval add value 'prices-10m';
alter type market.candle_interval add value 'prices-15m';
alter type market.candle_interval add value 'prices-30m';
alter type market.candle_interval add value 'prices-45m';
alter type market.candle_interval add value 'prices-1h';
alter type market.candle_interval add value 'prices-2h';
alter type market.candle_interval add value 'prices-3h';
alter type market.candle_interval add value 'prices-6h';
alter type market.candle_interval add value 'prices-12h';
alter type market.candle_interval add value 'prices-1d';
alter type market.candle_interval add value 'prices-7d';
alter type market.candle_interval add value 'prices-14d';
alter type market.candle_interval add value 'prices-30d';
alter type market.candle_interval add value 'prices-90d';
alter type market.candle_interval add value 'prices-365d';
comment on type market.candle_interval is 'What a series is of. Of candles: their width, in the upstream''s own spelling. Of prices: prices- and the width. market.width_of(interval) gives the width as an interval.';
comment on column market.series.interval is 'Width of the candles; prices-1d and so on: the series is of prices (market.price).';
comment on table market.series is 'One row per coin, quote and interval that was ever wanted, of candles or of prices.';

create table market.price (
  time timestamptz not null,
  price double precision,
  volume_24h double precision,
  market_cap double precision,
  series_id integer not null,
  primary key (series_id, time)
);
comment on table market.price is 'Prices by series number. Analysts want the view market.prices.';
comment on column market.price.time is 'Start of the span of the price.';
comment on column market.price.price is 'Price in the quote currency, as upstream gives it. Null where upstream says null.';
comment on column market.price.volume_24h is 'Volume of 24 hours, as upstream gives it.';
comment on column market.price.market_cap is 'Market capitalisation, as upstream gives it.';
comment on column market.price.series_id is 'market.series.id.';

create view market.prices as
select
  s.coin_id,
  co.symbol,
  s.quote,
  substr(s.interval::text, 8) as interval,
  p.time,
  p.price,
  p.volume_24h,
  p.market_cap,
  s.covered @> p.time as is_final
from market.price p
join market.series s on s.id = p.series_id
join market.coin co on co.id = s.coin_id;
comment on view market.prices is 'Every stored price of the price series (chandler backfill --series prices). A price is no candle: of a day it is about the mean of the day, not its close. Filter by coin_id, quote, interval and time.';
comment on column market.prices.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.prices.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.prices.quote is 'Currency of the prices: usd or btc.';
comment on column market.prices.interval is 'From one price to the next: 5m, 10m, 15m, 30m, 45m, 1h, 2h, 3h, 6h, 12h, 1d, 7d, 14d, 30d, 90d or 365d. In market.series, market.coverage, market.gaps and market.freshness, where candles are, too: prices-1d.';
comment on column market.prices.time is 'Start of the span that the price is of.';
comment on column market.prices.price is 'Price in the quote currency: by what is known, the mean of the span. Null where upstream says null.';
comment on column market.prices.volume_24h is 'Volume of 24 hours, as upstream gives it: rows of less than a day tell of the same trades again, so they do not add up.';
comment on column market.prices.market_cap is 'Market capitalisation, as upstream gives it.';
comment on column market.prices.is_final is 'True when upstream has given its final answer for this slot; false while the price may still change.';

create function ops.price_seconds(i market.candle_interval) returns double precision
  language plpgsql immutable strict parallel safe as $$
begin
  return extract(epoch from substr(i::text, 8)::interval);
end
$$;
comment on function ops.price_seconds(market.candle_interval) is 'The width of a price series in seconds: price_seconds(''prices-1h'') = 3600.';

create or replace function market.width_of(i market.candle_interval) returns interval
  language sql immutable strict parallel safe
  return case i
    when '5m'::market.candle_interval then interval '5 minutes'
    when '15m'::market.candle_interval then interval '15 minutes'
    when '30m'::market.candle_interval then interval '30 minutes'
    when '1h'::market.candle_interval then interval '1 hour'
    when '6h'::market.candle_interval then interval '6 hours'
    when '12h'::market.candle_interval then interval '12 hours'
    when '24h'::market.candle_interval then interval '24 hours'
    else make_interval(secs => ops.price_seconds(i))
  end;
comment on function market.width_of(market.candle_interval) is 'The width of a series as an interval: width_of(''6h'') = 06:00:00.';

create or replace function ops.seconds_of(i market.candle_interval) returns double precision
  language sql immutable strict parallel safe
  return case i
    when '5m'::market.candle_interval then 300.0::float8
    when '15m'::market.candle_interval then 900.0::float8
    when '30m'::market.candle_interval then 1800.0::float8
    when '1h'::market.candle_interval then 3600.0::float8
    when '6h'::market.candle_interval then 21600.0::float8
    when '12h'::market.candle_interval then 43200.0::float8
    when '24h'::market.candle_interval then 86400.0::float8
    else ops.price_seconds(i)
  end;

create or replace function ops.settled_until(i market.candle_interval) returns timestamptz
  language sql stable strict parallel safe
  return to_timestamp(floor((date_part('epoch', now()) - least(ops.seconds_of(i), 86400)) / ops.seconds_of(i)) * ops.seconds_of(i));
comment on function ops.settled_until(market.candle_interval) is 'Slots that open before this have closed at least one width ago, or a day if that is less: an answer about them is final.';

-- One function for whatever reads the rows of a series. The planner puts it into the statement that calls it; for candles it leaves out the
-- second table, because `of_interval` is known.
create function ops.stored(of_series integer, of_interval market.candle_interval)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    volume double precision, market_cap double precision)
  language sql stable parallel safe
begin atomic
  select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap
  from market.candle c where c.series_id = of_series and c.interval = of_interval
  union all
  select p.time, p.price, p.price, p.price, p.price, p.volume_24h, p.market_cap
  from market.price p where p.series_id = of_series and of_interval > '24h';
end;
comment on function ops.stored(integer, market.candle_interval) is 'The stored rows of a series as candles: of a price, open, high, low and close are the price. Digests and revisions are of these.';
comment on column market.revision.open is 'Old value of open; of a price series the price, as in high, low and close.';
comment on column market.series.candles is 'Stored candles or prices of the series, final or not.';
comment on column market.series.digest is 'Sum of market.candle_hash of all its stored rows (ops.stored), modulo 2^64. Written in the transaction that changes a row; chandler verify computes it again.';
comment on table market.revision is 'The old values of every candle, and of every price, that was changed or removed after it was final; all null where one was added to a slot known to be empty.';

create or replace function ops.sums(of_series integer, of_interval market.candle_interval, stretch tstzrange, final tstzmultirange, told tstzmultirange,
    out candles integer, out digest bigint, out final_candles integer, out told_candles integer, out told_digest bigint, out told_locator bigint)
  language plpgsql stable as $$
declare
  -- Once, not for each candle: the function is strict, so the planner cannot put it into the statement.
  width constant double precision := ops.seconds_of(of_interval);
begin
  select count(*),
    ops.modulo_2_64(coalesce(sum(h), 0)),
    count(*) filter (where final @> open_time),
    count(*) filter (where told @> open_time),
    ops.modulo_2_64(coalesce(sum(h) filter (where told @> open_time), 0)),
    ops.modulo_2_64(coalesce(sum((h & 4294967295) * k) filter (where told @> open_time), 0))
  into candles, digest, final_candles, told_candles, told_digest, told_locator
  from (
    select c.open_time, market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap) as h,
      (date_part('epoch', c.open_time) / width)::bigint as k
    from ops.stored(of_series, of_interval) c
    where c.open_time >= coalesce(lower(stretch), '-infinity') and c.open_time < coalesce(upper(stretch), 'infinity')
    offset 0
  ) hashed;
end
$$;

create or replace function ops.final_at(of_series integer, of_interval market.candle_interval, step integer, stretch tstzrange)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    volume double precision, market_cap double precision)
  language plpgsql stable parallel safe as $$
#variable_conflict use_column
declare
  newest constant integer := (select s.steps from market.series s where s.id = of_series);
  of_step constant integer := step;
  covered constant tstzmultirange := ops.covered_at(of_series, step) * tstzmultirange(stretch);
begin
  if newest <= of_step then
    return query
      select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap
      from ops.stored(of_series, of_interval) c
      where c.open_time >= lower(stretch) and c.open_time < upper(stretch)
        and covered @> c.open_time;
    return;
  end if;
  return query
    with replaced as materialized (
      select distinct on (r.open_time) r.open_time, r.step, r.open, r.high, r.low, r.close, r.volume, r.market_cap,
        not r.was_empty as is_candle
      from market.revision r
      where r.series_id = of_series and r.step > of_step and r.open_time >= lower(stretch) and r.open_time < upper(stretch)
        and exists (select from market.evidence_steps e where e.series_id = of_series and e.number = r.step and e.slots @> r.open_time)
      order by r.open_time, r.step
    ), removal as materialized (
      select e.number, e.slots from market.evidence e
      where e.series_id = of_series and e.number > of_step and e.kind in ('mended', 'retention') and e.slots && stretch
    )
    select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap
    from ops.stored(of_series, of_interval) c
    where c.open_time >= lower(stretch) and c.open_time < upper(stretch)
      and covered @> c.open_time
      and not exists (select from replaced r where r.open_time = c.open_time)
      and not exists (select from removal g where g.slots @> c.open_time)
    union all
    select r.open_time, r.open, r.high, r.low, r.close, r.volume, r.market_cap
    from replaced r
    where r.is_candle and covered @> r.open_time
      and not exists (select from removal g where g.slots @> r.open_time and g.number < r.step);
end
$$;

create or replace function ops.unlike_steps(of_series integer, of_interval market.candle_interval, mended tstzmultirange)
  returns table (number integer, told_candles integer, told_digest bigint, candles integer, digest bigint, slot timestamptz,
    new_candles integer, new_digest numeric, locator_off bigint)
  language plpgsql stable as $$
#variable_conflict use_column
declare
  width constant numeric := ops.seconds_of(of_interval);
  reach constant tstzmultirange := (select range_agg(slots) from market.evidence
    where series_id = of_series and kind in ('answer', 'adopted', 'mended') and slots && mended);
begin
  return query
  with told as materialized (
    select e.*, e.number + coalesce(cardinality(e.step_seconds), 1) - 1 as last,
      e.slots - coalesce(range_agg(e.slots) over later, '{}') as latest,
      coalesce(range_agg(e.slots) filter (where e.kind = 'retention') over later, '{}') as removed
    from market.evidence e where e.series_id = of_series and e.slots && reach
    window later as (order by e.number desc rows between unbounded preceding and 1 preceding)
  ), found as (
    select t.number, t.slots, t.slots * mended as mended_now, t.latest && mended as is_stored, t.candles as told_candles, t.digest as told_digest,
      stored.told_candles + replaced.candles as candles,
      ops.modulo_2_64(stored.told_digest + replaced.digest) as digest,
      ops.modulo_2_64(stored.told_locator + replaced.locator - t.locator) as locator
    from told t
    cross join lateral ops.sums(of_series, of_interval, range_merge(t.latest), '{}',
      case when t.kind = 'mended' then '{}' else t.latest end) stored
    -- What the next step about a slot replaced is what was there until then. A mending has kept what was there before it.
    cross join lateral (
      select count(*)::integer as candles, coalesce(sum(h), 0) as digest,
        coalesce(sum((h & 4294967295) * round(extract(epoch from open_time) / width)), 0) as locator
      from (
        select distinct on (v.open_time) v.open_time, v.was_empty,
          market.candle_hash(v.open_time, v.open, v.high, v.low, v.close, v.volume, v.market_cap) as h
        from market.revision v
        where v.series_id = of_series and t.slots @> v.open_time and case when t.kind = 'mended' then v.step = t.number
          else v.step > t.last and not t.latest @> v.open_time and (v.reason = 'mended' or mod(extract(epoch from v.open_time), width) = 0)
            -- A revision of a step that is not about its slot is none, as src/views/verify/account.ts has it.
            and exists (select from told g where v.step between g.number and g.last and g.slots @> v.open_time)
            and not exists (select from told g
            where g.number > t.last and g.last < v.step and g.slots @> v.open_time) end
        order by v.open_time, v.step
      ) v
      where not was_empty
    ) replaced
    where t.kind in ('answer', 'adopted', 'mended') and t.slots && mended and not t.slots && t.removed
  ),
  -- What earlier mendings found of the same steps: of each, the last one, which counts what those before it found, too.
  recorded as (
    select distinct on (m.parts[1]) m.parts[1]::integer as number, m.parts[4]::integer - m.parts[2]::integer as candles,
      ('x' || m.parts[5])::bit(64)::bigint::numeric - ('x' || m.parts[3])::bit(64)::bigint as digest,
      coalesce(('x' || m.parts[7])::bit(64)::bigint, 0) as locator, m.parts[6] = 'the slot' as has_slot
    from market.evidence e
    cross join lateral regexp_matches(e.detail,
      'step (\d+) told (\d+) candles \(digest ([0-9a-f]{16})\), found were (\d+) \(digest ([0-9a-f]{16})\), (which|the slot)[^;(]*(?:\(locator \+([0-9a-f]{16})\))?',
      'g') m(parts)
    where e.series_id = of_series and e.kind = 'mended'
    order by m.parts[1], e.number desc
  ), new as (
    select f.*, f.candles - f.told_candles - coalesce(r.candles, 0) as new_candles,
      f.digest::numeric - f.told_digest - coalesce(r.digest, 0) as new_digest,
      ops.modulo_2_64(f.locator::numeric - coalesce(r.locator, 0)) as new_locator, coalesce(r.has_slot, true) as are_others_known
    from found f left join recorded r on r.number = f.number
  )
  select f.number, f.told_candles, f.told_digest, f.candles, f.digest, one.slot,
    case when f.is_stored then f.new_candles else 0 end, case when f.is_stored then f.new_digest else 0 end, f.locator
  from new f
  -- As src/views/verify/modulo.ts finds the only slot that differs. What was found before is no part of it, if it is known where that was.
  left join lateral (
    select p.slot
    from (select mod(mod(f.new_digest, 4294967296) + 4294967296, 4294967296) as low) l
    cross join lateral (values (nullif(l.low, 0)), (l.low - 4294967296)) d(d)
    -- A forged sum may name a slot beyond all time, or one that the step is not about: then it is not known.
    cross join lateral (select case when abs(f.new_candles) <= 1 and mod(f.new_locator, d.d) = 0
      and f.new_locator / d.d * width between 1 and 253402300800 then to_timestamp((f.new_locator / d.d * width)::float8) end as slot) p
    where f.are_others_known and f.slots @> p.slot
    limit 1
  ) one on true
  where (f.new_candles <> 0 or mod(f.new_digest, 18446744073709551616) <> 0 or f.new_locator <> 0) and coalesce(f.mended_now @> one.slot, true)
  order by f.number;
end
$$;

create or replace function ops.uncover(which integer, from_time timestamptz default '-infinity', to_time timestamptz default 'infinity')
  returns void language plpgsql as $$
declare
  is_whole constant boolean := from_time = '-infinity' and to_time = 'infinity';
  most_steps constant integer := 1000000000;
  impossible_rows integer := 0;
  stretch constant tstzmultirange := tstzmultirange(tstzrange(from_time, to_time));
  s market.series;
  told tstzmultirange;
  mended tstzmultirange;
  found_there record;
  differing record;
  rest record;
  elsewhere record;
  is_astray boolean := false;
  is_counted_anew boolean;
  removed record;
  left_there record;
  other_coin text;
  new_link bytea;
begin
  -- Waits for a transaction that stores an answer of this series, and holds up the next one.
  select * into s from market.series where id = which for update;
  if not found then
    raise exception 'no series has the number %', which;
  end if;
  if is_whole then
    -- Numbers that no step ever has would leave none for the next one.
    with gone as (
      delete from market.evidence where series_id = which and number > most_steps returning number
    )
    select count(*) into impossible_rows from gone;
    update market.revision set step = null where series_id = which and step > most_steps;
    -- Its step is chained to the evidence that is there, and its number is one that nothing has used.
    update market.series set
      steps = greatest(case when steps <= most_steps then steps end, 0,
        (select max(number + coalesce(cardinality(step_seconds), 1) - 1) from market.evidence where series_id = which),
        (select max(step) from market.revision where series_id = which)),
      link = (select link from market.evidence where series_id = which order by number desc limit 1)
    where id = which returning * into s;
    -- Candles of another coin must not stay as candles of this one.
    select c.id into other_coin
    from market.evidence e
    cross join lateral (select coalesce((select split_part(r.detail, ' ', 1) from market.evidence r
      where r.series_id = which and r.kind = 'renamed' order by r.number limit 1), s.coin_id) as id) own
    join market.coin c on c.id <> own.id
      and e.link = ops.evidence_link(ops.first_link(c.id, s.quote, s.interval), e.kind, e.detail, e.known_at, e.slots, e.candles, e.digest)
    where e.series_id = which and e.number = 1
      -- After an earlier mending of the whole series, the candles are those of the coin that was asked for since.
      and not exists (select from market.evidence g where g.series_id = which and g.kind = 'mended' and g.detail ~ 'kept before: \d+ rows of evidence')
      and e.link <> ops.evidence_link(ops.first_link(own.id, s.quote, s.interval), e.kind, e.detail, e.known_at, e.slots, e.candles, e.digest);
  end if;
  -- Also what an answer told and is not covered any more; and whole slots, whatever was written there.
  told := ops.whole_slots((s.covered + ops.covered_at(which, 2147483647)) * stretch, ops.seconds_of(s.interval));
  -- Before anything is written: a revision of this mending would count as replaced.
  select coalesce(array_agg(u.number), '{}') as steps, coalesce(sum(u.new_candles), 0) as candles, coalesce(sum(u.new_digest), 0) as digest,
    'what was found differs from what was told: ' || string_agg(
      format('step %s told %s candles (digest %s), found were %s (digest %s), %s (locator +%s)', u.number, u.told_candles,
        lpad(to_hex(u.told_digest), 16, '0'), u.candles, lpad(to_hex(u.digest), 16, '0'),
        coalesce('the slot ' || ops.say_time(u.slot) || ' differs', 'which of its slots is not known'),
        lpad(to_hex(u.locator_off), 16, '0')), '; ' order by u.number) as detail
    into differing from ops.unlike_steps(which, s.interval, told) u;
  select * into found_there from ops.sums(which, s.interval, '(,)', '{}', told);
  -- What the stretch does not explain: other slots inside coverage, or candles outside.
  select found_there.candles - s.candles - differing.candles as candles,
    ops.modulo_2_64(found_there.digest::numeric - s.digest - differing.digest) as digest into rest;
  select 0::bigint as candles, 0::numeric as digest into elsewhere;
  -- Stored candles that add up to the digest of the series need no explanation, also where steps told something else.
  if (rest.candles <> 0 or rest.digest <> 0)
      and (found_there.candles <> s.candles or found_there.digest <> s.digest) then
    select coalesce(sum(u.new_candles), 0) as candles, coalesce(sum(u.new_digest), 0) as digest
      into elsewhere from ops.unlike_steps(which, s.interval, s.covered) u where u.number <> all (differing.steps);
    is_astray := rest.candles <> elsewhere.candles or rest.digest <> ops.modulo_2_64(elsewhere.digest);
  end if;
  insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, open, high, low, close, volume, market_cap)
    select which, open_time, clock_timestamp(), clock_timestamp(), s.steps + 1, 'mended', open, high, low, close, volume, market_cap
    from ops.stored(which, s.interval) where told @> open_time order by open_time;
  -- Candles that no answer tells are removed: off the grid, impossible, from the future. No answer would ever replace them.
  with wrong as materialized (
    select open_time, market.candle_hash(open_time, open, high, low, close, volume, market_cap) as h
    from ops.stored(which, s.interval)
    where open_time >= from_time and open_time < to_time
      and (mod(extract(epoch from open_time), ops.seconds_of(s.interval)::numeric) <> 0
        or not (high >= low and high >= open and high >= close and low <= open and low <= close)
        or not (least(open, high, low, close, volume, market_cap) >= 0
          and greatest(open, high, low, close, volume, market_cap) < 'infinity')
        or open_time > clock_timestamp() + interval '10 minutes'
        or is_astray and not (s.covered + told) @> open_time or other_coin is not null)
  ), gone_candles as (
    delete from market.candle c using wrong w where c.series_id = which and c.interval = s.interval and c.open_time = w.open_time
  ), gone_prices as (
    delete from market.price p using wrong w where s.interval > '24h' and p.series_id = which and p.time = w.open_time
  ), beside as (
    select h, ops.whole_slots(tstzmultirange(tstzrange(open_time, open_time, '[]')), ops.seconds_of(s.interval)) as slot
    from wrong where is_astray and not (s.covered + told) @> open_time
  )
  select count(*) as candles, coalesce(sum(h), 0) as digest, coalesce(range_agg(slot), '{}') as slots into removed from beside;
  delete from market.open_candle where series_id = which and (removed.slots @> open_time or other_coin is not null);
  select * into left_there from ops.sums(which, s.interval, '(,)', s.covered - told, told);
  is_counted_anew := is_astray and left_there.candles = left_there.final_candles + left_there.told_candles
    and (removed.candles > 0 or is_whole);
  if is_astray and not is_counted_anew then
    elsewhere.candles := rest.candles - removed.candles;
    elsewhere.digest := rest.digest - removed.digest;
  end if;
  if removed.candles > 0 or is_counted_anew then
    differing.detail := concat_ws('; ', differing.detail, format('outside coverage, candles did not add up to the digest of the series: %s removed (digest %s)',
      removed.candles, lpad(to_hex(ops.modulo_2_64(removed.digest)), 16, '0')));
  end if;
  -- Also what is not covered any more: its old values may be what is mended. Where forged coverage has no end, there are no slots.
  mended := (told + removed.slots + ops.whole_slots(stretch * coalesce(
    (select range_agg(slots) from market.evidence where series_id = which), '{}'), ops.seconds_of(s.interval)))
    * '{[1970-01-01Z,2200-01-01Z)}';
  if not isempty(mended) or is_counted_anew or is_whole and s.steps > 0 then
    new_link := ops.add_evidence(which, 'mended', mended, clock_timestamp(), clock_timestamp(), found_there.told_candles,
      found_there.told_digest, found_there.told_locator, why => nullif(concat_ws('; ', differing.detail,
        case when impossible_rows > 0 then impossible_rows || ' rows of evidence with impossible numbers removed' end,
        'the evidence was that of ' || other_coin || ', and the candles are removed',
        ops.kept_before(which, s.steps + 1, case when not is_whole then mended end)), ''));
  end if;
  update market.series set
    covered = covered - told,
    empty_once = empty_once - told - stretch,
    covered_candles = left_there.final_candles,
    candles = left_there.candles - elsewhere.candles,
    digest = ops.modulo_2_64(left_there.digest - elsewhere.digest),
    steps = steps + (new_link is not null)::integer,
    link = coalesce(new_link, link)
  where id = which;
end
$$;

create function ops.say_row(i market.candle_interval, open double precision, high double precision, low double precision, close double precision,
    volume double precision, market_cap double precision) returns text language sql stable parallel safe
  return case when i > '24h' then format('price %s, volume of 24 hours %s, market cap %s', coalesce(close::text, 'null'),
      coalesce(volume::text, 'null'), coalesce(market_cap::text, 'null'))
    else ops.say_candle(open, high, low, close, volume, market_cap) end;
comment on function ops.say_row(market.candle_interval, double precision, double precision, double precision, double precision, double precision, double precision) is 'The values of a candle or of a price in words.';

create or replace function market.story(coin text, "interval" market.candle_interval, slot_time timestamptz, quote text default 'usd')
  returns table (at timestamptz, event text, detail text)
  language sql stable parallel safe
begin atomic
  with s as (
    select r.*, case when r.interval > '24h' then 'no price' else 'no candle' end as nothing, to_timestamp(floor(date_part('epoch', slot_time) / ops.seconds_of(r.interval)) * ops.seconds_of(r.interval)) as slot
    from market.series r
    where r.coin_id = story.coin and r.interval = story."interval" and r.quote = story.quote
  ),
  steps as (
    select e.number, e.kind, e.known_at, lead(e.number) over (order by e.number) as next
    from s join market.evidence_steps e on e.series_id = s.id and e.slots @> s.slot
  ),
  -- What each step told is what was there until the next step about the slot.
  told as (
    select st.*, s.slot, s.nothing, a.as_of, a.fetch_id, a.body_sha256, a.detail, old.reason,
      case
        when st.next is null and now_there.is_there then ops.say_row(s.interval, now_there.open, now_there.high, now_there.low,
          now_there.close, now_there.volume, now_there.market_cap)
        when replaced.id is not null and not replaced.was_empty then ops.say_row(s.interval, replaced.open, replaced.high, replaced.low,
          replaced.close, replaced.volume, replaced.market_cap)
      end as value,
      case when not old.was_empty then ops.say_row(s.interval, old.open, old.high, old.low, old.close, old.volume, old.market_cap) end as old_value,
      -- A mending found that the step had told something else: of this slot, or of one that is not known.
      position(format('step %s told', a.number) in later.detail) > 0 and substring(later.detail from format('step %s told [^;]*', a.number))
        ~ (ops.say_time(s.slot) || ' differs|is not known') as is_doubted
    from s
    cross join steps st
    -- Of a row with several steps, request and digest are those of the last.
    left join market.evidence a on a.series_id = s.id and a.number + coalesce(cardinality(a.step_seconds), 1) - 1 = st.number
    left join market.revision old on old.series_id = s.id and old.open_time = s.slot and old.step = st.number
    left join market.revision replaced on replaced.series_id = s.id and replaced.open_time = s.slot and replaced.step = st.next
    left join market.evidence later on later.series_id = s.id and later.kind = 'mended' and later.number = st.next
    left join lateral (select true as is_there, c.* from ops.stored(s.id, s.interval) c where c.open_time = s.slot) now_there on true
  ),
  gap as (
    select g.reason, g.detail, g.next_ask_at
    from s join market.gaps g on g.coin_id = s.coin_id and g.interval = s.interval and g.quote = s.quote
      and g.gap_from <= s.slot and g.gap_to > s.slot
  ),
  rows as (
    select s.created_at as at, 0 as place, 'wanted' as event,
      'The series was wanted for the first time. ' || case when s.wanted @> s.slot then 'The slot is wanted.' else 'The slot is not wanted.' end as detail
    from s
    union all
    select t.known_at, 1,
      case when t.kind in ('answer', 'adopted') then case when t.reason is null then 'final' else 'revised' end else t.kind end,
      case t.kind
        when 'answer' then case
          when t.reason is null then 'An answer made the slot final: '
          else format('An answer replaced the final value (%s). Before: %s. Now: ', t.reason, coalesce(t.old_value, t.nothing))
        end || case when t.is_doubted then 'a value that is not known. When it was mended, ' else '' end || coalesce(t.value, t.nothing)
          || case when t.is_doubted then ' was there, and the digest of the answer is another' else '' end
          || case when t.detail = 'told twice' then '. An answer before it was implausible, and said the same' else '' end
          || coalesce('. Request ' || t.fetch_id || ', as of ' || ops.say_time(t.as_of),
            '. Its request is not kept: of small answers that continue each other, only the last one''s is')
          || coalesce(', SHA-256 of the answer ' || encode(t.body_sha256, 'hex'), '') || '.'
        when 'adopted' then format('The slot was final before Chandler kept evidence: %s.', coalesce(t.value, t.nothing))
        when 'mended' then format('The slot was taken out of coverage, to be requested again%s. Before: %s.',
          coalesce(' (' || nullif(regexp_replace(t.detail, '(; )?kept before: .*$', ''), '') || ')', ''), coalesce(t.old_value, t.nothing))
        when 'retention' then 'The slot was removed because of its age.'
      end
    from told t
    union all
    select e.known_at, 1, 'renamed', 'The upstream gave the coin a new id: ' || replace(e.detail, ' ', ' is now ') || '.'
    from s join market.evidence_steps e on e.series_id = s.id and e.kind = 'renamed'
    union all
    select r.seen_at, 1, 'revised', format('An answer replaced the final value, before Chandler kept evidence. Before: %s.',
      case when r.was_empty then s.nothing else ops.say_row(s.interval, r.open, r.high, r.low, r.close, r.volume, r.market_cap) end)
    from s join market.revision r on r.series_id = s.id and r.open_time = s.slot and r.step is null
    union all
    select q.seen_at, 1, 'quarantined', format('A row was quarantined: %s. As it came: %s', q.reason, left(q.row::text, 500))
    from s join market.quarantine q on q.series_id = s.id and q.open_time = s.slot
    union all
    select f.refused_at, 1, 'refused', format('The upstream refused it under the plan %s (%s): %s', f.account_plan, f.reason, f.message)
    from s join market.refusal f on f.series_id = s.id and f.span @> s.slot
      or f.series_id is null and f.interval = s.interval and (f.depth is null or s.slot < f.refused_at - f.depth)
    union all
    select now(), 2, 'now', case
      when not s.covered @> s.slot then case when c.is_there is null then format('The slot has no final answer, and %s.', s.nothing)
        else format('The slot has a value that is not final: %s.', ops.say_row(s.interval, c.open, c.high, c.low, c.close, c.volume, c.market_cap)) end
      when c.is_there then format('The slot is final: %s.', ops.say_row(s.interval, c.open, c.high, c.low, c.close, c.volume, c.market_cap))
      when s.empty_once @> s.slot then 'The slot is known to be empty: one answer said so.'
      else 'The slot is known to be empty: two answers said so.'
    end
    from s left join lateral (select true as is_there, r.* from ops.stored(s.id, s.interval) r where r.open_time = s.slot) c on true
    union all
    select now(), 3, 'next', format('It is missing: %s%s. %s', gap.reason, coalesce(' (' || gap.detail || ')', ''), case
      when gap.next_ask_at = 'infinity' then 'Chandler does not ask again by itself.'
      when gap.next_ask_at is not null then 'Chandler may ask again from ' || ops.say_time(gap.next_ask_at) || '.'
      when gap.reason = 'not asked yet' then 'The next backfill or refresh asks.'
      else 'Chandler asks again under another plan.' end)
    from gap
  )
  select rows.at, rows.event, rows.detail from rows order by rows.at, rows.place, rows.event, rows.detail;
end;

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
  where s.interval <= '24h'
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
  where s.interval <= '24h';
end;

create function market.prices_as_known(at timestamptz)
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
  where s.interval > '24h'
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
  where s.interval > '24h';
end;
comment on function market.prices_as_known(timestamptz) is 'The prices that were final at an instant, with the values that they had then, and since when each was known (known_at). As market.candles_as_known, for market.prices. Example: select * from market.prices_as_known(''2026-03-01Z'') where coin_id = ''btc-bitcoin'' and interval = ''1d'';';

-- Bars out of samples. Of price series, in each bar, the one that leaves the smallest gap in it; of two alike the narrower.
create function market.prices_sampled(coin text, width interval, from_time timestamptz, to_time timestamptz)
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
    where h.coin_id = coin and h.at >= from_time and h.at < to_time and h.price is not null
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
comment on function market.prices_sampled(text, interval, timestamptz, timestamptz) is 'Bars of a coin in US dollars, made of samples: of the tickers that Chandler has stored, and, in each bar, of that one of its narrower price series that leaves the smallest gap in it. A price stands at the start of its span. samples: how many a bar has; largest_gap: the longest stretch of the bar without one, its edges included; is_open_at_edge, is_close_at_edge: the first and the last sample lie within a twenty-fourth of the bar from its edge, and the first one is no mean of a longer time. These are not candles: between two samples the price went higher and lower (the range of bars of hourly samples is 25 percent too narrow, measured on 1,385 days of bitcoin), and a price of a series is about a mean of its span. There is no volume. Only bars that lie in the stretch whole. The width is at most of days, not of months. Example: select * from market.prices_sampled(''btc-bitcoin'', ''1 day'', ''2026-03-01Z'', ''2026-04-01Z'');';

comment on column market.coverage.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h; of a price series prices- and its width: prices-1d.';
comment on column market.gaps.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h; of a price series prices- and its width: prices-1d.';
comment on column market.freshness.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h; of a price series prices- and its width: prices-1d.';
comment on column ops.fetch.endpoint is 'Which kind of question: ohlcv, prices, coins and so on.';
