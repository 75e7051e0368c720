-- A mending changes count and digest of a series by what it mends, so that what differs elsewhere stays a difference.

-- In the place of ops.unlike_told. Who changes a candle and then mends it must not hide that: the step of the mending says what differed. Sums are
-- of whole steps, as answers told them. Of what retention has removed nothing is known any more; a single slot that differs is left out if it is
-- not mended.
drop function ops.unlike_told(integer, market.candle_interval, tstzmultirange);
create function ops.unlike_steps(of_series integer, of_interval market.candle_interval, mended tstzmultirange)
  returns table (number integer, told_candles integer, told_digest bigint, candles integer, digest bigint, slot timestamptz,
    new_candles integer, new_digest numeric)
  language plpgsql stable as $$
#variable_conflict use_column
declare
  width constant numeric := ops.seconds_of(of_interval);
  reach constant tstzmultirange := (select range_agg(slots) from market.evidence
    where series_id = of_series and kind in ('answer', 'adopted') and slots && mended);
begin
  return query
  with told as materialized (
    select e.*, e.number + coalesce(cardinality(e.step_seconds), 1) - 1 as last,
      e.slots - coalesce(range_agg(e.slots) over later, '{}') as latest,
      coalesce(range_agg(e.slots) filter (where e.kind = 'retention') over later, '{}') as removed
    from market.evidence e where e.series_id = of_series and e.slots && reach
    window later as (order by e.number desc rows between unbounded preceding and 1 preceding)
  ), found as (
    select t.number, t.latest * mended as mended_now, t.candles as told_candles, t.digest as told_digest,
      stored.told_candles + replaced.candles as candles,
      ops.modulo_2_64(stored.told_digest + replaced.digest) as digest,
      ops.modulo_2_64(stored.told_locator + replaced.locator - t.locator) as locator
    from told t
    cross join lateral ops.sums(of_series, of_interval, range_merge(t.latest), '{}', t.latest) stored
    -- What the next step about a slot replaced is what was there until then.
    cross join lateral (
      select count(*)::integer as candles, coalesce(sum(h), 0) as digest,
        coalesce(sum((h & 4294967295) * round(extract(epoch from open_time) / width)), 0) as locator
      from (
        select distinct on (v.open_time) v.open_time, v.was_empty,
          market.candle_hash(v.open_time, v.open, v.high, v.low, v.close, v.volume, v.market_cap) as h
        from market.revision v
        where v.series_id = of_series and v.step > t.last and t.slots @> v.open_time and not t.latest @> v.open_time
          and not exists (select from market.evidence g where g.series_id = of_series and g.kind = 'mended'
            and g.number > t.last and g.number < v.step and g.slots @> v.open_time)
        order by v.open_time, v.step
      ) v
      where not was_empty
    ) replaced
    where t.kind in ('answer', 'adopted') and t.latest && mended and not t.slots && t.removed
  ),
  -- What earlier mendings found of the same steps: of each, the last one.
  recorded as (
    select distinct on (m.parts[1]) m.parts[1]::integer as number, m.parts[4]::integer - m.parts[2]::integer as candles,
      ('x' || m.parts[5])::bit(64)::bigint::numeric - ('x' || m.parts[3])::bit(64)::bigint as digest
    from market.evidence e
    cross join lateral regexp_matches(e.detail,
      'step (\d+) told (\d+) candles \(digest ([0-9a-f]{16})\), found were (\d+) \(digest ([0-9a-f]{16})\)', 'g') m(parts)
    where e.series_id = of_series and e.kind = 'mended'
    order by m.parts[1], e.number desc
  )
  select f.number, f.told_candles, f.told_digest, f.candles, f.digest, one.slot,
    f.candles - f.told_candles - coalesce(r.candles, 0), f.digest::numeric - f.told_digest - coalesce(r.digest, 0)
  from found f
  -- As src/views/verify/modulo.ts finds the only slot that differs.
  left join lateral (
    select to_timestamp((f.locator / d.d * width)::float8) as slot
    from (select mod(mod(f.digest::numeric - f.told_digest, 4294967296) + 4294967296, 4294967296) as low) l
    cross join lateral (values (l.low), (l.low - 4294967296)) d(d)
    where abs(f.candles - f.told_candles) <= 1 and d.d <> 0 and mod(f.locator, d.d) = 0 and f.locator / d.d between 1 and 1099511627776
    limit 1
  ) one on true
  left join recorded r on r.number = f.number
  where (f.candles <> f.told_candles or f.digest <> f.told_digest) and coalesce(f.mended_now @> one.slot, true)
  order by f.number;
end
$$;
comment on function ops.unlike_steps(integer, market.candle_interval, tstzmultirange) is 'For ops.uncover: of the steps that told these slots last, which do not agree with the stored candles; the only slot that differs, if it is one; and by how much they differ more than earlier mendings have recorded.';

-- What is inside coverage is proved by its steps; of what is outside, only the digest of the series is known. So what does not add up there
-- cannot be told from candles that are not final: all that is outside coverage in the mended stretch is removed, and counts as what nobody told.
-- When nothing else is left outside, or the whole series is mended, it is counted anew.
create or replace function ops.uncover(which integer, from_time timestamptz default '-infinity', to_time timestamptz default 'infinity')
  returns void language plpgsql as $$
declare
  s market.series;
  told tstzmultirange;
  found_there record;
  differing record;
  rest record;
  elsewhere record;
  is_astray boolean := false;
  is_counted_anew boolean;
  removed record;
  left_there record;
  new_link bytea;
begin
  -- Waits for a transaction that stores an answer of this series, and holds up the next one.
  select * into s from market.series where id = which for update;
  if not found then
    raise exception 'no series has the number %', which;
  end if;
  told := s.covered * tstzmultirange(tstzrange(from_time, to_time));
  -- Before anything is written: a revision of this mending would count as replaced.
  select coalesce(array_agg(u.number), '{}') as steps, coalesce(sum(u.new_candles), 0) as candles, coalesce(sum(u.new_digest), 0) as digest,
    'what was found differs from what was told: ' || string_agg(
      format('step %s told %s candles (digest %s), found were %s (digest %s), %s', u.number, u.told_candles, lpad(to_hex(u.told_digest), 16, '0'),
        u.candles, lpad(to_hex(u.digest), 16, '0'), coalesce('the slot ' || ops.say_time(u.slot) || ' differs',
          'which of its slots is not known')), '; ' order by u.number) as detail
    into differing from ops.unlike_steps(which, s.interval, told) u;
  select * into found_there from ops.sums(which, s.interval, '(,)', '{}', told);
  -- What the stretch does not explain: other slots inside coverage, or candles outside.
  select found_there.candles - s.candles - differing.candles as candles,
    ops.modulo_2_64(found_there.digest::numeric - s.digest - differing.digest) as digest into rest;
  select 0::bigint as candles, 0::numeric as digest into elsewhere;
  if rest.candles <> 0 or rest.digest <> 0 then
    select coalesce(sum(u.new_candles), 0) as candles, coalesce(sum(u.new_digest), 0) as digest
      into elsewhere from ops.unlike_steps(which, s.interval, s.covered) u where u.number <> all (differing.steps);
    is_astray := rest.candles <> elsewhere.candles or rest.digest <> ops.modulo_2_64(elsewhere.digest);
  end if;
  insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, open, high, low, close, volume, market_cap)
    select which, open_time, clock_timestamp(), clock_timestamp(), s.steps + 1, 'mended', open, high, low, close, volume, market_cap
    from market.candle where series_id = which and interval = s.interval and told @> open_time order by open_time;
  -- Candles off the grid, too: no answer ever replaces them.
  with gone as (
    delete from market.candle
    where series_id = which and interval = s.interval and open_time >= from_time and open_time < to_time
      and (mod(extract(epoch from open_time), ops.seconds_of(s.interval)::numeric) <> 0 or is_astray and not s.covered @> open_time)
    returning open_time, market.candle_hash(open_time, open, high, low, close, volume, market_cap) as h
  ), beside as (
    select h, to_timestamp(floor(extract(epoch from open_time) / ops.seconds_of(s.interval)) * ops.seconds_of(s.interval)) as slot
    from gone where is_astray and not s.covered @> open_time
  )
  select count(*) as candles, coalesce(sum(h), 0) as digest,
    coalesce(range_agg(tstzrange(slot, slot + market.width_of(s.interval))), '{}') as slots into removed from beside;
  delete from market.open_candle where series_id = which and removed.slots @> open_time;
  select * into left_there from ops.sums(which, s.interval, '(,)', s.covered - told, told);
  is_counted_anew := is_astray and left_there.candles = left_there.final_candles + left_there.told_candles
    and (removed.candles > 0 or from_time = '-infinity' and to_time = 'infinity');
  if is_astray and not is_counted_anew then
    elsewhere.candles := rest.candles - removed.candles;
    elsewhere.digest := rest.digest - removed.digest;
  end if;
  if removed.candles > 0 or is_counted_anew then
    differing.detail := concat_ws('; ', differing.detail, format('outside coverage, candles did not add up to the digest of the series: %s removed (digest %s)',
      removed.candles, lpad(to_hex(ops.modulo_2_64(removed.digest)), 16, '0')));
  end if;
  if not isempty(told + removed.slots) or is_counted_anew then
    new_link := ops.add_evidence(which, 'mended', told + removed.slots, clock_timestamp(), clock_timestamp(), found_there.told_candles,
      found_there.told_digest, found_there.told_locator, why => differing.detail);
  end if;
  update market.series set
    covered = covered - told,
    empty_once = empty_once - told,
    covered_candles = left_there.final_candles,
    candles = left_there.candles - elsewhere.candles,
    digest = ops.modulo_2_64(left_there.digest - elsewhere.digest),
    steps = steps + (new_link is not null)::integer,
    link = coalesce(new_link, link)
  where id = which;
end
$$;
comment on function ops.uncover(integer, timestamptz, timestamptz) is 'Takes a stretch of a series out of coverage, so that the next backfill requests it again: for what chandler verify found wrong. Its final values are kept in market.revision. Its candles stay until an answer replaces them, except those off the grid, and those outside coverage if such candles do not add up to the digest of the series: they are removed, and the step of evidence says so. What differs elsewhere stays a difference.';
