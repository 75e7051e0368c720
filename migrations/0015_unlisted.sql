-- An id that upstream does not know is answered with nothing: such a coin's empty slots stay unconfirmed, and the gap says why.
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
-- Refusals of this series, then walls of its interval; where they overlap, the first one speaks.
cross join lateral (
  with ranked as (
    select 0 as tier, id, reason, message, tstzmultirange(span) as spans,
      -- Of one series it may have been a passing mood of the upstream, or of a gateway before it: asked again after a day.
      refused_at + interval '1 day' as again_at
    from market.refusal
    where series_id = s.id and account_plan = (select plan from ops.account where is_current)
    union all
    -- The first slot that opens behind the wall is the first one to be had.
    select 1, id, reason, message, tstzmultirange(case
      when depth is null then '(,)'
      else tstzrange(null, to_timestamp(ceil(date_part('epoch', now() - depth) / s.width) * s.width))
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
    select reason, due_at, tstzmultirange(span) as spans,
      coalesce(range_agg(span) over (order by asked_at desc, span rows between unbounded preceding and 1 preceding), '{}') as earlier
    from market.pending
    where series_id = s.id
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
    end, waiting.due_at
  from waiting cross join totals
  union all
  select s.missing - totals.refused - totals.waiting, 'not asked yet', null, null
  from totals
) piece
cross join lateral unnest(piece.spans) r
cross join lateral (
  select (ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width))::bigint as slots
) n
where not isempty(s.missing) and n.slots > 0;
--> statement-breakpoint
comment on column market.gaps.detail is 'What upstream said when it refused, or why two empty answers are not enough; null when nothing more is known.';
--> statement-breakpoint
comment on column market.pending.asked_at is 'When it was last asked, by our clock; questions before it was due do not count.';
--> statement-breakpoint
comment on column market.pending.due_at is 'Not to be asked before, by our clock.';
