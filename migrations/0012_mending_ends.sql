-- A mending ends every difference that it is about, also of evidence and revisions: its step says what was kept until then, so what was changed
-- before it is known, and what is changed after it is still found.

create function ops.kept_before(of_series integer, of_step integer, of_slots tstzmultirange) returns text
  language sql stable parallel safe
begin atomic
  with kept as (
    select 'evidence' as what, sha256(int4send(e.number) || e.link
      || ops.evidence_link('', e.kind, e.detail, e.known_at, e.slots, e.candles, e.digest) || int8send(e.locator)
      || timestamptz_send(e.as_of) || int8send(coalesce(e.fetch_id, 0)) || coalesce(e.body_sha256, '')
      || convert_to(coalesce(e.step_seconds::text, '') || ' ' || coalesce(e.step_slots::text, ''), 'UTF8')) as hash
    from market.evidence e where e.series_id = of_series and e.number < of_step and of_slots is null
    union all
    select 'revision', sha256(timestamptz_send(r.open_time) || int4send(coalesce(r.step, 0)) || convert_to(r.reason, 'UTF8')
      || timestamptz_send(r.seen_at) || timestamptz_send(coalesce(r.known_at, '-infinity')) || int8send(coalesce(r.fetch_id, 0))
      || boolsend(r.was_empty)
      || int8send(market.candle_hash(case when isfinite(r.open_time) then r.open_time else 'epoch' end, r.open, r.high, r.low, r.close,
        r.volume, r.market_cap)))
    from market.revision r
    where r.series_id = of_series and coalesce(r.step, 0) < of_step and (of_slots is null or of_slots @> r.open_time)
  )
  select 'kept before: ' || case when of_slots is null then count(*) filter (where what = 'evidence') || ' rows of evidence of ' || (
      select coalesce((select split_part(e.detail, ' ', 1) from market.evidence e
        where e.series_id = s.id and e.kind = 'renamed' and e.number > of_step order by e.number limit 1), s.coin_id)
      from market.series s where s.id = of_series) || ' and ' else '' end
    || format('%s revisions (digest %s)', count(*) filter (where what = 'revision'),
      lpad(to_hex(ops.modulo_2_64(coalesce(sum(('x' || encode(substr(hash, 1, 8), 'hex'))::bit(64)::bigint), 0))), 16, '0'))
  from kept;
end;
comment on function ops.kept_before(integer, integer, tstzmultirange) is 'What a mending finds of a series from before its step, as its detail ends: the revisions of these slots; with null instead of slots, all evidence and revisions of the series. The digest is the sum of the first eight bytes of the SHA-256 of each row.';

create function ops.whole_slots(spans tstzmultirange, width double precision) returns tstzmultirange
  language sql immutable parallel safe
  return coalesce((
    select range_agg(tstzrange(
      to_timestamp(floor(date_part('epoch', lower(r)) / width) * width),
      to_timestamp(case when upper_inc(r) then floor(date_part('epoch', upper(r)) / width) + 1
        else ceil(date_part('epoch', upper(r)) / width) end * width)))
    from unnest(spans) r), '{}');
comment on function ops.whole_slots(tstzmultirange, double precision) is 'The slots of a width in seconds that these spans touch.';

create or replace function ops.add_evidence(of_series integer, of_kind text, told tstzmultirange, at timestamptz, answer_as_of timestamptz,
    told_candles integer, told_digest bigint, told_locator bigint, of_fetch bigint default null, body bytea default null, why text default null)
  returns bytea language plpgsql as $$
declare
  most_slots constant integer := 32;
  most_steps constant integer := 256;
  s record;
  last market.evidence;
  known timestamptz;
  new_link bytea;
  slots_told integer;
begin
  select coin_id, quote, interval, steps, link, ops.seconds_of(interval) as width into s from market.series where id = of_series;
  if s.steps > 0 then
    select * into last from market.evidence where series_id = of_series order by number desc limit 1;
  end if;
  -- Never before the step before, whatever our clock says; and in whole seconds, whatever was written there.
  known := greatest(date_trunc('second', at), date_trunc('second', last.known_at + interval '0.999999 seconds')
    + coalesce(last.step_seconds[cardinality(last.step_seconds)], 0) * interval '1 second');
  new_link := ops.evidence_link(coalesce(s.link, ops.first_link(s.coin_id, s.quote, s.interval)), of_kind, why, known, told, told_candles, told_digest);
  slots_told := ((date_part('epoch', upper(told)) - date_part('epoch', lower(told))) / s.width)::integer;
  if of_kind = 'answer' and why is null and last.step_seconds is not null and cardinality(last.step_seconds) < most_steps
      and slots_told <= most_slots and told = range_merge(told)::tstzmultirange and upper(last.slots) = lower(told) then
    update market.evidence set
      slots = last.slots + told,
      as_of = answer_as_of,
      candles = last.candles + told_candles,
      digest = ops.modulo_2_64(last.digest::numeric + told_digest),
      locator = ops.modulo_2_64(last.locator::numeric + told_locator),
      link = new_link,
      step_seconds = last.step_seconds || extract(epoch from known - last.known_at)::integer,
      step_slots = case when last.step_slots is not null or slots_told > 1
        then coalesce(last.step_slots, array_fill(1::smallint, array[cardinality(last.step_seconds)])) || slots_told::smallint end,
      fetch_id = of_fetch,
      body_sha256 = body
    where series_id = of_series and number = last.number;
  else
    insert into market.evidence (series_id, number, kind, slots, known_at, as_of, candles, digest, locator, link, step_seconds, step_slots,
      fetch_id, body_sha256, detail)
    values (of_series, s.steps + 1, of_kind, told, known, answer_as_of, told_candles, told_digest, told_locator, new_link,
      case when of_kind = 'answer' and why is null and slots_told <= most_slots and told = range_merge(told)::tstzmultirange then array[0] end,
      case when of_kind = 'answer' and why is null and slots_told between 2 and most_slots and told = range_merge(told)::tstzmultirange then array[slots_told::smallint] end,
      of_fetch, body, why);
  end if;
  return new_link;
end
$$;

-- In the place of the function of this name: also of old values that were replaced or mended, and with the locator.
drop function ops.unlike_steps(integer, market.candle_interval, tstzmultirange);
create function ops.unlike_steps(of_series integer, of_interval market.candle_interval, mended tstzmultirange)
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
    select t.number, t.slots * mended as mended_now, t.latest && mended as is_stored, t.candles as told_candles, t.digest as told_digest,
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
            and not exists (select from told g
            where g.number > t.last and g.last < v.step and g.slots @> v.open_time) end
        order by v.open_time, v.step
      ) v
      where not was_empty
    ) replaced
    where t.kind in ('answer', 'adopted', 'mended') and t.slots && mended and not t.slots && t.removed
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
    case when f.is_stored then f.candles - f.told_candles - coalesce(r.candles, 0) else 0 end,
    case when f.is_stored then f.digest::numeric - f.told_digest - coalesce(r.digest, 0) else 0 end, f.locator
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
  where (f.candles <> f.told_candles or f.digest <> f.told_digest or f.locator <> 0) and coalesce(f.mended_now @> one.slot, true)
  order by f.number;
end
$$;
comment on function ops.unlike_steps(integer, market.candle_interval, tstzmultirange) is 'For ops.uncover: of the steps about these slots, which do not agree with what is stored or kept as revisions; the only slot that differs, if it is one; by how much they differ more than earlier mendings have recorded; and by how much the locator differs.';

-- What is inside coverage is proved by its steps; of what is outside, only the digest of the series is known. So what does not add up there
-- cannot be told from candles that are not final: all that is outside coverage in the mended stretch is removed, and counts as what nobody told.
-- When nothing else is left outside, or the whole series is mended, it is counted anew.
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
    from market.candle where series_id = which and interval = s.interval and told @> open_time order by open_time;
  -- Candles that no answer tells are removed: off the grid, impossible, from the future. No answer would ever replace them.
  with gone as (
    delete from market.candle
    where series_id = which and interval = s.interval and open_time >= from_time and open_time < to_time
      and (mod(extract(epoch from open_time), ops.seconds_of(s.interval)::numeric) <> 0
        or not (high >= low and high >= open and high >= close and low <= open and low <= close)
        or not (least(open, high, low, close, volume, market_cap) >= 0
          and greatest(open, high, low, close, volume, market_cap) < 'infinity')
        or open_time > clock_timestamp() + interval '10 minutes'
        or is_astray and not (s.covered + told) @> open_time or other_coin is not null)
    returning open_time, market.candle_hash(open_time, open, high, low, close, volume, market_cap) as h
  ), beside as (
    select h, ops.whole_slots(tstzmultirange(tstzrange(open_time, open_time, '[]')), ops.seconds_of(s.interval)) as slot
    from gone where is_astray and not (s.covered + told) @> open_time
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
comment on function ops.uncover(integer, timestamptz, timestamptz) is 'Takes a stretch of a series out of coverage, so that the next backfill requests it again: for what chandler verify found wrong. Its final values are kept in market.revision. Its candles stay until an answer replaces them, except those that no answer can have told (off the grid, impossible, from the future), those outside coverage if such candles do not add up to the digest of the series, and all of them if the evidence is that of another coin: they are removed, and the step of evidence says so. What differs elsewhere stays a difference. Without times, the whole series is mended, with its evidence.';

-- A value that was changed by hand and then mended is not what the answer told.
create or replace function market.story(coin text, "interval" market.candle_interval, slot_time timestamptz, quote text default 'usd')
  returns table (at timestamptz, event text, detail text)
  language sql stable parallel safe
begin atomic
  with s as (
    select r.*, to_timestamp(floor(date_part('epoch', slot_time) / ops.seconds_of(r.interval)) * ops.seconds_of(r.interval)) as slot
    from market.series r
    where r.coin_id = story.coin and r.interval = story."interval" and r.quote = story.quote
  ),
  steps as (
    select e.number, e.kind, e.known_at, lead(e.number) over (order by e.number) as next
    from s join market.evidence_steps e on e.series_id = s.id and e.slots @> s.slot
  ),
  -- What each step told is what was there until the next step about the slot.
  told as (
    select st.*, s.slot, a.as_of, a.fetch_id, a.body_sha256, a.detail, old.reason,
      case
        when st.next is null and now_there.series_id is not null then ops.say_candle(now_there.open, now_there.high, now_there.low,
          now_there.close, now_there.volume, now_there.market_cap)
        when replaced.id is not null and not replaced.was_empty then ops.say_candle(replaced.open, replaced.high, replaced.low,
          replaced.close, replaced.volume, replaced.market_cap)
      end as value,
      case when not old.was_empty then ops.say_candle(old.open, old.high, old.low, old.close, old.volume, old.market_cap) end as old_value,
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
    left join market.candle now_there on now_there.series_id = s.id and now_there.interval = s.interval and now_there.open_time = s.slot
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
          else format('An answer replaced the final value (%s). Before: %s. Now: ', t.reason, coalesce(t.old_value, 'no candle'))
        end || case when t.is_doubted then 'a value that is not known. When it was mended, ' else '' end || coalesce(t.value, 'no candle')
          || case when t.is_doubted then ' was there, and the digest of the answer is another' else '' end
          || case when t.detail = 'told twice' then '. An answer before it was implausible, and said the same' else '' end
          || coalesce('. Request ' || t.fetch_id || ', as of ' || ops.say_time(t.as_of),
            '. Its request is not kept: of small answers that continue each other, only the last one''s is')
          || coalesce(', SHA-256 of the answer ' || encode(t.body_sha256, 'hex'), '') || '.'
        when 'adopted' then format('The slot was final before Chandler kept evidence: %s.', coalesce(t.value, 'no candle'))
        when 'mended' then format('The slot was taken out of coverage, to be requested again%s. Before: %s.',
          coalesce(' (' || nullif(regexp_replace(t.detail, '(; )?kept before: .*$', ''), '') || ')', ''), coalesce(t.old_value, 'no candle'))
        when 'retention' then 'The slot was removed because of its age.'
      end
    from told t
    union all
    select e.known_at, 1, 'renamed', 'The upstream gave the coin a new id: ' || replace(e.detail, ' ', ' is now ') || '.'
    from s join market.evidence_steps e on e.series_id = s.id and e.kind = 'renamed'
    union all
    select r.seen_at, 1, 'revised', format('An answer replaced the final value, before Chandler kept evidence. Before: %s.',
      case when r.was_empty then 'no candle' else ops.say_candle(r.open, r.high, r.low, r.close, r.volume, r.market_cap) end)
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
      when not s.covered @> s.slot then case when c.series_id is null then 'The slot has no final answer, and no candle.'
        else format('The slot has a candle that is not final: %s.', ops.say_candle(c.open, c.high, c.low, c.close, c.volume, c.market_cap)) end
      when c.series_id is not null then format('The slot is final: %s.', ops.say_candle(c.open, c.high, c.low, c.close, c.volume, c.market_cap))
      when s.empty_once @> s.slot then 'The slot is known to be empty: one answer said so.'
      else 'The slot is known to be empty: two answers said so.'
    end
    from s left join market.candle c on c.series_id = s.id and c.interval = s.interval and c.open_time = s.slot
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
