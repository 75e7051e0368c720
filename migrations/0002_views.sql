-- What analysts read. Everything except market.candles reads series, pending and refusals only: cheap, however many candles.
create view market.candles as
select
  s.coin_id,
  co.symbol,
  s.quote,
  s.interval,
  c.open_time,
  c.open_time + market.width_of(s.interval) - interval '1 second' as close_time,
  c.open,
  c.high,
  c.low,
  c.close,
  c.volume,
  c.market_cap,
  s.covered @> c.open_time as is_final
from market.candle c
join market.series s on s.id = c.series_id and s.interval = c.interval
join market.coin co on co.id = s.coin_id;
--> statement-breakpoint
-- One row per series: what of it is wanted up to now, from when the coin began; what of that is missing; when the settled
-- part ends. `offset 0` keeps the planner from repeating the range arithmetic in every column that uses it (six times as slow).
create view ops.series_now as
select s.id, s.coin_id, co.symbol, s.quote, s.interval, s.covered, t.width, t.settled_until, w.wanted, m.missing
from market.series s
join market.coin co on co.id = s.coin_id
cross join lateral (
  select
    width,
    to_timestamp(floor(date_part('epoch', co.first_data_at) / width) * width) as began,
    to_timestamp(floor(date_part('epoch', now()) / width - 1) * width) as settled_until
  from (select ops.seconds_of(s.interval) as width offset 0) of_series
  offset 0
) t
cross join lateral (
  select s.wanted * tstzmultirange(tstzrange(t.began, greatest(now(), t.began))) as wanted offset 0
) w
cross join lateral (select w.wanted - s.covered as missing offset 0) m;
--> statement-breakpoint
create view market.coverage as
select
  s.coin_id,
  s.symbol,
  s.quote,
  s.interval,
  lower(s.wanted) as wanted_from,
  upper(s.wanted) as wanted_to,
  n.wanted as slots_wanted,
  n.wanted - n.missing as slots_covered,
  n.missing as slots_missing,
  n.unsettled as slots_unsettled,
  s.covered,
  case
    when n.wanted = n.unsettled then 100.0
    else trunc(100.0 * (n.wanted - n.missing) / greatest(n.wanted - n.unsettled, n.wanted - n.missing), 2)
  end as percent_complete
from ops.series_now s
cross join lateral (
  select
    (
      select coalesce(sum(ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width)), 0)::bigint
      from unnest(s.wanted) r
    ) as wanted,
    coalesce(sum(ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width)), 0)::bigint as missing,
    coalesce(sum(greatest(
      ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', greatest(lower(r), s.settled_until)) / s.width), 0
    )), 0)::bigint as unsettled
  from unnest(s.missing) r
) n;
--> statement-breakpoint
create view market.gaps as
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
      -- These two may have been a passing mood of the upstream: they are asked again after a day.
      case when reason in ('forbidden', 'bad request') then refused_at + interval '1 day' end as again_at
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
  select s.missing * (waiting.spans - waiting.earlier - totals.refused), waiting.reason, null, waiting.due_at
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
create view market.freshness as
select
  s.coin_id,
  co.symbol,
  s.quote,
  s.interval,
  upper(s.covered) as final_until,
  now() - upper(s.covered) as age,
  s.wanted @> now() as is_tracked,
  s.priority
from market.series s
join market.coin co on co.id = s.coin_id;
