-- What retention removes, and small answers that share a row of evidence, in links and stories.

-- Several steps in one row told slots that no step between them changed: what they told is what was there after the last of them.
create or replace function ops.link_at(of_series integer, step integer) returns bytea
  language plpgsql stable parallel safe as $$
declare
  s market.series;
  e market.evidence;
  told record;
  upto integer;
  of_link bytea;
begin
  select * into s from market.series where id = of_series;
  select ops.first_link(coalesce((select split_part(r.detail, ' ', 1) from market.evidence r
    where r.series_id = of_series and r.kind = 'renamed' order by r.number limit 1), s.coin_id), s.quote, s.interval) into of_link;
  upto := 0;
  for e in select * from market.evidence where series_id = of_series and number <= step order by number loop
    if e.number <> upto + 1 then
      return null;
    end if;
    if coalesce(cardinality(e.step_seconds), 1) = 1 then
      upto := e.number;
      of_link := ops.evidence_link(of_link, e.kind, e.detail, e.known_at, e.slots, e.candles, e.digest);
      continue;
    end if;
    upto := least(step, e.number + cardinality(e.step_seconds) - 1);
    -- What retention has removed cannot be added up again. The link of a whole row is in the row: later links prove it.
    if exists (select from market.evidence g
        where g.series_id = of_series and g.kind = 'retention' and g.number > upto and g.slots && e.slots) then
      if upto < e.number + cardinality(e.step_seconds) - 1 then
        return '';
      end if;
      of_link := e.link;
      continue;
    end if;
    for told in
      select t.seconds, t.span, count(c.open_time)::integer as candles, ops.modulo_2_64(coalesce(sum(
        market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap)), 0)) as digest
      from (
        select u.n, u.seconds, tstzrange(lower(e.slots) + (sum(u.slots) over (order by u.n) - u.slots) * market.width_of(s.interval),
          lower(e.slots) + sum(u.slots) over (order by u.n) * market.width_of(s.interval)) as span
        from (select i.n, i.seconds, coalesce(e.step_slots[i.n], 1)::integer as slots
          from unnest(e.step_seconds[1:upto - e.number + 1]) with ordinality as i(seconds, n)) u
      ) t
      left join ops.final_at(of_series, s.interval, upto, range_merge(e.slots)) c on t.span @> c.open_time
      group by t.n, t.seconds, t.span order by t.n
    loop
      of_link := ops.evidence_link(of_link, e.kind, e.detail, e.known_at + told.seconds * interval '1 second',
        tstzmultirange(told.span), told.candles, told.digest);
    end loop;
  end loop;
  return case when upto = step then of_link end;
end
$$;
comment on function ops.link_at(integer, integer) is 'The link of a step of a series, computed again from its name, its evidence and its candles; null when a step is missing; empty when retention has removed what is needed to compute it.';

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
