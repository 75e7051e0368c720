-- What analysts read, and what status and the service read: views. All except market.candles are cheap however many candles there are.

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
comment on view market.candles is 'Every stored candle with the coin it belongs to. Filter by coin_id, quote, interval (a literal, so that only its partitions are read) and open_time.';
comment on column market.candles.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.candles.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.candles.quote is 'Currency of the prices: usd or btc.';
comment on column market.candles.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
comment on column market.candles.open_time is 'Start of the candle, on the grid of its interval (days are UTC days).';
comment on column market.candles.close_time is 'Last second of the candle, as upstream writes it: open_time + width - 1 second.';
comment on column market.candles.open is 'First price in the interval, in the quote currency. Null where upstream says null.';
comment on column market.candles.high is 'Highest price in the interval, in the quote currency.';
comment on column market.candles.low is 'Lowest price in the interval, in the quote currency.';
comment on column market.candles.close is 'Last price in the interval, in the quote currency.';
comment on column market.candles.volume is 'Volume traded in the interval, as upstream gives it.';
comment on column market.candles.market_cap is 'Market capitalisation at the close, as upstream gives it.';
comment on column market.candles.is_final is 'True when upstream has given its final answer for this slot; false while the candle may still change.';

-- One row per series: the spans wanted up to now, from when the coin began; which of them are missing; until when slots are settled.
-- `offset 0` keeps the planner from repeating the range arithmetic in every column that uses it (six times as slow).
create view ops.series_now as
select s.id, s.coin_id, co.symbol, s.quote, s.interval, s.covered, t.width, t.settled_until, w.wanted, m.missing
from market.series s
join market.coin co on co.id = s.coin_id
cross join lateral (
  select
    width,
    to_timestamp(floor(date_part('epoch', co.first_data_at) / width) * width) as began,
    ops.settled_until(s.interval) as settled_until
  from (select ops.seconds_of(s.interval) as width offset 0) of_series
  offset 0
) t
cross join lateral (
  select s.wanted * tstzmultirange(tstzrange(t.began, greatest(now(), t.began))) as wanted offset 0
) w
cross join lateral (select w.wanted - s.covered as missing offset 0) m;
comment on view ops.series_now is 'Each series, with what of it is wanted up to now and what of that is missing; the views of market stand on it.';
comment on column ops.series_now.id is 'market.series.id.';
comment on column ops.series_now.coin_id is 'market.coin.id.';
comment on column ops.series_now.symbol is 'Ticker symbol.';
comment on column ops.series_now.quote is 'Currency of the prices.';
comment on column ops.series_now.interval is 'Width of the candles.';
comment on column ops.series_now.covered is 'Spans with a final answer.';
comment on column ops.series_now.width is 'Width of the candles in seconds.';
comment on column ops.series_now.settled_until is 'Candles that open before this have settled.';
comment on column ops.series_now.wanted is 'Spans wanted, from when the coin began up to now.';
comment on column ops.series_now.missing is 'Of these, what is not covered.';

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
comment on view market.coverage is 'Per series, how much of what is wanted has its final answer. One slot is one candle width; a covered slot without a candle is known to be empty.';
comment on column market.coverage.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.coverage.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.coverage.quote is 'Currency of the prices: usd or btc.';
comment on column market.coverage.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
comment on column market.coverage.wanted_from is 'Start of the first wanted span, never before the coin began.';
comment on column market.coverage.wanted_to is 'End of the last wanted span, at most now.';
comment on column market.coverage.slots_wanted is 'Slots wanted up to now.';
comment on column market.coverage.slots_covered is 'Slots upstream has given its final answer for.';
comment on column market.coverage.slots_missing is 'Slots wanted up to now and not covered, those too young for a final answer included. The slots of the series in market.gaps, which says why, add up to it.';
comment on column market.coverage.slots_unsettled is 'Of the missing slots, those too young for a final answer: their candle has not closed, or closed less than one candle width ago.';
comment on column market.coverage.covered is 'All spans with a final answer, also outside what is wanted.';
comment on column market.coverage.percent_complete is 'Covered slots in percent of the wanted slots old enough to be final; 100 only when none is missing.';

-- Every missing span with the reason why it is missing. Upstream answers nothing for an id that it does not know: the empty slots of
-- such a coin stay unconfirmed, and the gap says why.
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
    select claim as reason, retry_at, tstzmultirange(span) as spans,
      coalesce(range_agg(span) over (order by requested_at desc, span rows between unbounded preceding and 1 preceding), '{}') as earlier
    from ops.second_opinion
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
    end, waiting.retry_at
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
comment on view market.gaps is 'Every span that is wanted and not covered, with the reason. No row means nothing is missing.';
comment on column market.gaps.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.gaps.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.gaps.quote is 'Currency of the prices: usd or btc.';
comment on column market.gaps.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
comment on column market.gaps.gap_from is 'Start of the gap.';
comment on column market.gaps.gap_to is 'End of the gap (exclusive).';
comment on column market.gaps.slots is 'How many candle slots the gap holds, those too young for a final answer included. Those of a series add up to market.coverage.slots_missing.';
comment on column market.gaps.reason is 'not asked yet; provisional: answered, but too young to be final; unconfirmed: answered empty, to be confirmed by a second answer; malformed: the row given cannot be true, and is in market.quarantine; or why upstream refuses it: history limit, interval, unknown coin, forbidden, bad request.';
comment on column market.gaps.detail is 'What upstream said when it refused, or why two empty answers are not enough; null when nothing more is known.';
comment on column market.gaps.next_ask_at is 'When Chandler may request it again; null when there is nothing to wait for (not asked yet) or when it waits for a different plan (refused by a history limit of the plan; after a day one request tests whether it still holds).';

create view market.freshness as
select
  s.coin_id,
  co.symbol,
  s.quote,
  s.interval,
  upper(s.covered) as final_until,
  now() - upper(s.covered) as age,
  upper_inf(s.wanted) as is_tracked,
  s.priority,
  ti.tier,
  ti.target_age,
  ti.achievable_age,
  tr.seen_until,
  now() - tr.seen_until as seen_age,
  tr.asked_at
from market.series s
join market.coin co on co.id = s.coin_id
left join ops.tracked tr on tr.series_id = s.id
left join ops.tier ti on ti.id = tr.tier_id;
comment on view market.freshness is 'Per series, how old the newest final answer is.';
comment on column market.freshness.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.freshness.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.freshness.quote is 'Currency of the prices: usd or btc.';
comment on column market.freshness.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
comment on column market.freshness.final_until is 'End of the newest span with a final answer; null when there is none. Candles become final one candle width after they have closed.';
comment on column market.freshness.age is 'Time between final_until and now.';
comment on column market.freshness.is_tracked is 'True when the series is wanted without an end, and so kept up to now; false when only a span was requested.';
comment on column market.freshness.priority is 'The series with the higher priority is refreshed first.';
comment on column market.freshness.tier is 'Why it is tracked: list (named by its coin), top (among the best-ranked) or all; null when no rule of chandler track is behind it.';
comment on column market.freshness.target_age is 'How old its newest data may become before Chandler refreshes it, as chandler track says.';
comment on column market.freshness.achievable_age is 'How old it becomes with the requests there are: target_age, or more when the budget does not allow it. Null before the service has planned it, or when the budget leaves no request for it.';
comment on column market.freshness.seen_until is 'Up to this instant everything that upstream had is here, candles that are not final yet included; null when it was not answered since it is tracked.';
comment on column market.freshness.seen_age is 'Time between seen_until and now: to be compared with target_age and achievable_age.';
comment on column market.freshness.asked_at is 'When its newest candles were last requested, answered or not; null when never since it is tracked.';

create view market.catalogue as
select kind, count(*) filter (where gone_at is null) as known, count(*) filter (where gone_at is not null) as gone,
  min(as_of) filter (where gone_at is null) as oldest, max(as_of) as newest
from market.document group by kind;
comment on view market.catalogue is 'How much of the catalogue there is, and how old it is.';
comment on column market.catalogue.kind is 'As in market.document.';
comment on column market.catalogue.known is 'Things that upstream knows.';
comment on column market.catalogue.gone is 'Things that it no longer knows.';
comment on column market.catalogue.oldest is 'Instant of the oldest answer about one that it knows.';
comment on column market.catalogue.newest is 'Instant of the newest answer.';

-- The series that the rules want now, by the newest list of coins: each series once, with the best tier, priority and age of its rules.
-- A coin that the list has not held for two days is gone; so one broken list drops no coin.
create view ops.track_target as
with alive as (
  select id, case when rank > 0 then row_number() over (order by nullif(rank, 0) nulls last, id) end as position
  from market.coin c
  where is_active and last_seen_at > (select max(last_seen_at) from market.coin) - interval '2 days'
    and not exists (select from market.coin_rename r where r.old_id = c.id and r.renamed_at >= c.last_seen_at)
), named as (
  select t.*, a.id as of_coin, 0 as kind from ops.track t join alive a on a.id = t.coin_id where t.tier = 'list'
  union all
  select t.*, a.id, 1 from ops.track t join alive a on a.position <= t.top where t.tier = 'top'
  union all
  select t.*, a.id, 2 from ops.track t cross join alive a where t.tier = 'all'
)
select of_coin as coin_id, quote, interval, (array['list', 'top', 'all'])[min(kind) + 1] as tier, min(since) as since,
  max(priority) as priority, min(target_age) as target_age
from named
group by of_coin, quote, interval;
comment on view ops.track_target is 'The series that the rules want now, by the list of coins as last read.';
comment on column ops.track_target.coin_id is 'market.coin.id.';
comment on column ops.track_target.quote is 'Currency of the prices.';
comment on column ops.track_target.interval is 'Width of the candles.';
comment on column ops.track_target.tier is 'The first of list, top and all that holds.';
comment on column ops.track_target.since is 'The earliest of its rules.';
comment on column ops.track_target.priority is 'The highest of its rules.';
comment on column ops.track_target.target_age is 'The shortest of its rules.';

-- How far each backfill is: SQL, the command line and HTTP all read it here.
create view ops.backfill_progress as
select b.id, b.state, b.is_detached, b.priority, b.interval, b.quote, cardinality(b.coin_ids) as coins,
  lower(b.span) as "from", upper(b.span) as "to", b.requested_at, b.started_at, b.finished_at, b.planned_requests,
  coalesce(spent.requests, 0) as spent, coalesce(spent.stored, 0) as stored,
  b.left_requests, b.wait_until, b.finish_at, b.owner, b.heartbeat_at, b.message,
  case
    when b.state = 'done' then 1
    -- It may have grown since it was planned: then what is left is all there is.
    when b.left_requests is not null then 1 - b.left_requests::float8 / greatest(b.left_requests, b.planned_requests, 1)
    -- Of a command: the part of its planned requests that it has sent.
    when not b.is_detached and b.planned_requests > 0 then least(1, coalesce(spent.requests, 0)::float8 / b.planned_requests)
  end as progress,
  b.requested_by
from ops.backfill b
cross join lateral (
  select sum(requests)::bigint as requests, sum(stored)::bigint as stored from (
    select count(*) as requests, sum(f.stored) as stored from ops.fetch f where f.backfill_id = b.id
    union all
    select sum(p.requests), sum(p.stored) from ops.fetch_totals p where p.backfill_id = b.id
  ) parts
) spent;
comment on view ops.backfill_progress is 'Backfills, what each has spent and brought, and what is left of it.';
comment on column ops.backfill_progress.id is 'Number of the backfill.';
comment on column ops.backfill_progress.state is 'As in ops.backfill.';
comment on column ops.backfill_progress.is_detached is 'For the service to work off.';
comment on column ops.backfill_progress.priority is 'The highest goes first.';
comment on column ops.backfill_progress.interval is 'Width of the candles.';
comment on column ops.backfill_progress.quote is 'Currency of the prices.';
comment on column ops.backfill_progress.coins is 'How many coins; null for one of a command.';
comment on column ops.backfill_progress."from" is 'Beginning of the span that was requested.';
comment on column ops.backfill_progress."to" is 'Its end, exclusive.';
comment on column ops.backfill_progress.requested_at is 'When it was requested.';
comment on column ops.backfill_progress.started_at is 'When it began; null when it has not.';
comment on column ops.backfill_progress.finished_at is 'When it ended; null when it has not.';
comment on column ops.backfill_progress.planned_requests is 'What it was to cost.';
comment on column ops.backfill_progress.spent is 'Requests made for it.';
comment on column ops.backfill_progress.stored is 'Candles that were new or changed.';
comment on column ops.backfill_progress.left_requests is 'Requests that are still to be sent, as last counted.';
comment on column ops.backfill_progress.wait_until is 'Before this there is nothing to spend on it.';
comment on column ops.backfill_progress.finish_at is 'When it will be done by what is known of the quota, what everybody waits for and what is done before it; null when that cannot be said.';
comment on column ops.backfill_progress.owner is 'Machine and process that work on it, or did last.';
comment on column ops.backfill_progress.heartbeat_at is 'Last sign of life of that process.';
comment on column ops.backfill_progress.message is 'Why it waits, stopped or failed.';
comment on column ops.backfill_progress.progress is 'How much of it is done, from 0 to 1; null when it is unknown.';
comment on column ops.backfill_progress.requested_by is 'Who wants it, as in ops.backfill.';
