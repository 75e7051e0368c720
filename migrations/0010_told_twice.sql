-- An answer that was implausible until a second one said the same is told twice: its step of evidence says so, in the chain. The record of the
-- request cannot: an implausible answer before it may have said something else, and requests are removed because of their age.
-- Such a step is a row of its own.
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
  -- Never before the step before, whatever our clock says.
  known := greatest(date_trunc('second', at),
    last.known_at + coalesce(last.step_seconds[cardinality(last.step_seconds)], 0) * interval '1 second');
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

drop function ops.record_answer(integer, market.candle_interval, tstzrange, tstzmultirange, tstzmultirange, tstzmultirange, timestamptz,
  timestamptz, bigint, bytea, integer, bigint, integer);
create function ops.record_answer(of_series integer, of_interval market.candle_interval, span tstzrange, granted tstzmultirange,
    told tstzmultirange, once tstzmultirange, at timestamptz, answer_as_of timestamptz, of_fetch bigint, body bytea,
    candles_before integer, digest_before bigint, final_before integer, why text)
  returns void language plpgsql as $$
declare
  final_now tstzmultirange;
  now_there record;
  new_link bytea;
begin
  select covered + granted into final_now from market.series where id = of_series;
  select * into now_there from ops.sums(of_series, of_interval, span, final_now, told);
  if not isempty(told) then
    new_link := ops.add_evidence(of_series, 'answer', told, at, answer_as_of, now_there.told_candles, now_there.told_digest,
      now_there.told_locator, of_fetch, body, why);
  end if;
  update market.series set
    covered = final_now,
    covered_candles = covered_candles + now_there.final_candles - final_before,
    candles = candles + now_there.candles - candles_before,
    digest = ops.modulo_2_64(digest::numeric + now_there.digest - digest_before),
    empty_once = empty_once - tstzmultirange(span) + once,
    answered_at = greatest(answered_at, answer_as_of),
    steps = steps + (new_link is not null)::integer,
    link = coalesce(new_link, link)
  where id = of_series;
end
$$;
comment on function ops.record_answer(integer, market.candle_interval, tstzrange, tstzmultirange, tstzmultirange, tstzmultirange, timestamptz, timestamptz, bigint, bytea, integer, bigint, integer, text) is 'Writes what follows for a series from the candles of an answer: coverage, counts, digest and evidence.';

comment on column market.evidence.detail is 'answer: told twice, if it was implausible until a second answer said the same. renamed: the old id and the new one. mended: why, or how what was found there differed from what had been told; null when it did not.';

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
      case when not old.was_empty then ops.say_candle(old.open, old.high, old.low, old.close, old.volume, old.market_cap) end as old_value
    from s
    cross join steps st
    -- Of a row with several steps, request and digest are those of the last.
    left join market.evidence a on a.series_id = s.id and a.number + coalesce(cardinality(a.step_seconds), 1) - 1 = st.number
    left join market.revision old on old.series_id = s.id and old.open_time = s.slot and old.step = st.number
    left join market.revision replaced on replaced.series_id = s.id and replaced.open_time = s.slot and replaced.step = st.next
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
        end || coalesce(t.value, 'no candle')
          || case when t.detail = 'told twice' then '. An answer before it was implausible, and said the same' else '' end
          || coalesce('. Request ' || t.fetch_id || ', as of ' || ops.say_time(t.as_of),
            '. Its request is not kept: of small answers that continue each other, only the last one''s is')
          || coalesce(', SHA-256 of the answer ' || encode(t.body_sha256, 'hex'), '') || '.'
        when 'adopted' then format('The slot was final before Chandler kept evidence: %s.', coalesce(t.value, 'no candle'))
        when 'mended' then format('The slot was taken out of coverage, to be requested again%s. Before: %s.',
          coalesce(' (' || t.detail || ')', ''), coalesce(t.old_value, 'no candle'))
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
