-- Where a plan gives only the last full day of daily candles, that day does not lie beyond its history limit: it is asked for by itself
-- (/ohlcv/latest). While the upstream has not gone on to it, the gap says so, and when Chandler asks again.

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
      refused_at + interval '1 day' as again_at
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
comment on column market.gaps.detail is 'What upstream said when it refused, what is implausible, why two empty answers are not enough, or why the last full day is not asked for yet; null when nothing more is known.';
comment on column market.gaps.next_ask_at is 'When Chandler may request it again; null when there is nothing to wait for (not asked yet) or when it waits for a different plan (refused by a history limit of the plan; after a day one request tests whether it still holds). Of a slot that was not asked for yet: when the upstream may have gone on to the last full day.';
