-- The history of a slot: within one second, the event that made the series wanted comes before the answer that made the slot final.
create or replace function ops.story(coin text, "interval" market.candle_interval, slot_time timestamptz, quote text default 'usd')
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
      when gap.next_ask_at = 'infinity' then 'Chandler does not request it again automatically.'
      when gap.next_ask_at is not null then 'Chandler may request it again from ' || ops.say_time(gap.next_ask_at) || '.'
      when gap.reason = 'not asked yet' then 'The next backfill or refresh requests it.'
      else 'Chandler requests it again under another plan.' end)
    from gap
  )
  -- Evidence keeps whole seconds. So within a second, the order is that of the events, and not of their fractions of a second.
  select rows.at, rows.event, rows.detail from rows order by date_trunc('second', rows.at), rows.place, rows.at, rows.event, rows.detail;
end;

-- Less work for the same answers, to the bit: a frame of rows does not compare the times of neighbours, each pair of closes is looked up once, only
-- whole slots are read where only they count, and the statements of realized_volatility and event_study keep their plans, as that of on_grid does.
-- One answer changes: a year has twelve monthly returns. With months of thirty days, their volatility was 0.7 % too large.
create or replace function market.max_drawdown(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (drawdown double precision, peak_at timestamptz, trough_at timestamptz, slots integer, complete boolean)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  since constant timestamptz := market.utc(from_time);
  -- A slot that ends after the span tells of what came later.
  last constant timestamptz := market.slot_of(width, coalesce(nullif(market.utc(to_time), 'infinity'), now()));
begin
  return query
    with closes as materialized (
      select o.open_time, o.close_time, o.close, max(o.close) over (order by o.open_time rows unbounded preceding) as peak
      from market.ohlcv(coin, width, since, last, quote) o
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

create or replace function market.realized_volatility(coin text, from_time anyelement, to_time anycompatible default now(), width interval default '1 day', quote text default 'usd')
  returns table (volatility double precision, returns integer, holes integer)
  language plpgsql stable parallel safe rows 1 cost 1000 as $$
declare
  -- A slot that ends after the span tells of what came later.
  last constant timestamptz := market.slot_of(width, coalesce(nullif(market.utc(to_time), 'infinity'), now()));
  months constant double precision := extract(year from width) * 12 + extract(month from width);
begin
  return query
    select stddev_samp(r.log_return) * sqrt(case when months > 0 then 12 / months else 31536000 / extract(epoch from width)::double precision end),
      count(r.log_return)::integer, count(*) filter (where r.log_return is null)::integer
    from market.returns(coin, width, from_time, last, quote) r;
end
$$;

create or replace function market.returns(coin text, width interval, from_time anyelement, to_time anycompatible default now(), quote text default 'usd')
  returns table (open_time timestamptz, close_time timestamptz, close double precision, previous_close double precision,
    simple_return double precision, log_return double precision, complete boolean)
  language plpgsql stable parallel safe cost 1000 as $$
#variable_conflict use_column
declare
  since constant timestamptz := market.utc(from_time);
begin
  return query
    select x.open_time, x.close_time, x.close, x.previous, x.at_end / nullif(x.previous, 0) - 1,
      case when x.at_end > 0 and x.previous > 0 then ln(x.at_end / x.previous) end,
      x.complete and x.at_end is not null and x.previous is not null
    from (
      select o.*, case when lag(o.close_time) over w = o.open_time - interval '1 second' then lag(o.at_end) over w end as previous
      from (
        select c.open_time, c.close_time, c.close, c.complete, case when c.is_closed then c.close end as at_end
        from market.ohlcv_closed(coin, width, market.slot_of(width, market.slot_of(width, since) - interval '1 microsecond'), market.utc(to_time), quote) c
      ) o
      window w as (order by o.open_time)
    ) x
    where x.open_time >= since or from_time is null
    order by x.open_time;
end
$$;

-- A negative max_fill left out the first slots.
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
  -- The reasons are in a large view: only where they are needed.
  if first < until and not spans @> tstzrange(first, until) then
    select array_agg(g.gap_from), array_agg(g.gap_to), array_agg(g.reason) into froms, tos, reasons from market.gaps g
      where g.coin_id = of_coin and g.quote = on_grid.quote and g.gap_to > first and g.gap_from < until
        and g.interval = (select max(s.interval) from market.series s where s.coin_id = of_coin and s.quote = on_grid.quote and s.interval <= base);
    select range_agg(e.slots) into removed from market.series s join market.evidence e on e.series_id = s.id
      where s.coin_id = of_coin and s.quote = on_grid.quote and s.interval <= base and e.kind = 'retention' and e.slots && tstzrange(first, until);
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

alter function market.event_study(text, anyelement, integer, integer, interval, text, text) set plan_cache_mode = force_generic_plan;

-- Comments in the words of the documents.
comment on function market.realized_volatility(text, anyelement, anycompatible, interval, text) is 'Annual volatility: the standard deviation of the logarithmic returns of candles of the width, times the root of how many of them a year has (of 365 days, or of 12 months). returns: how many count; holes: candles that have no return, because of a hole (see market.returns). Only slots that lie in the span as a whole. Example: select * from market.realized_volatility(''BTC'', ''2024-01-01'', ''2024-07-01'');';
comment on table ops.api_key is 'Keys of callers of this service (chandler keys). Of a key, only its SHA-256 is stored.';
comment on table ops.api_pace is 'The token bucket of each caller of the service that was active lately. A process writes it after every few requests of a caller. Not logged: after a crash of the server, all buckets are full.';
comment on table ops.quota is 'What each account may still request: the windows, the rate, and what all processes wait for. A request is counted before it is sent, and never given back.';
comment on table ops.second_opinion is 'What an answer of upstream says that Chandler does not store as final before later answers agree, and when it may request it again.';
comment on column ops.second_opinion.claim is 'What the answers say. Of slots: provisional (too recent to be final), unconfirmed (no candle), malformed (an impossible row) or implausible (evidence says why). Other claims: src/core/second-opinion.ts.';
comment on column ops.second_opinion.retry_at is 'Chandler does not request it again before this instant, by its own clock; infinity: it does not request it again automatically.';
comment on column ops.backfill.heartbeat_at is 'The last heartbeat of that process; null when no process has begun.';
comment on column ops.backfill_progress.heartbeat_at is 'The last heartbeat of that process.';
comment on column ops.instance.heartbeat_at is 'Its last heartbeat.';
comment on column ops.schedule_run.lease_until is 'The end of the lease of its owner; each heartbeat of the owner moves it.';
comment on column ops.notice.began_at is 'When the state began that the notice is about. Null: the notice is about an event, which has no end.';
comment on column market.coverage.slots_missing is 'Slots wanted up to now and not covered, with those that are too recent for a final answer. The slots of the series in market.gaps, which says why, add up to it.';
comment on column market.gaps.slots is 'How many candle slots the gap has, with those that are too recent for a final answer. The slots of all gaps of a series add up to market.coverage.slots_missing.';
comment on column market.gaps.reason is 'not asked yet; provisional: answered, but too recent to be final; unconfirmed: answered empty, to be confirmed by a second answer; malformed: the row cannot be true, and is in market.quarantine; implausible: nothing of the answer was stored, detail says why, and a second answer must say the same; or why upstream refuses it: history limit, interval, unknown coin, forbidden, bad request.';
comment on column market.gaps.detail is 'What upstream said when it refused, what is implausible, why two empty answers are not enough, or why the last full day is not requested yet; null when nothing more is known.';
comment on column market.gaps.next_ask_at is 'When Chandler may request it again; null when it waits for nothing (not asked yet), or for another plan (refused by a history limit of the plan; after a day, one request tests whether the limit still holds). Of a slot that was not requested yet: when the upstream may have gone on to the last full day.';
comment on function market.story(text, market.candle_interval, timestamptz, text) is 'The history of one slot, in order of time (within a second: in order of the events): since when its series is wanted, what made it final and which request, revisions, quarantined rows, refusals, what is there now, and when Chandler may request it again. slot_time: any instant in the slot. No row: there is no such series. Example: select * from market.story(''BTC'', ''24h'', ''2026-03-01'');';
