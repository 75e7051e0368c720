-- Every table, view and column says what it is; and tracked means wanted without an end, not that a stretch asked for has not
-- quite passed.
create or replace view market.freshness as
select
  s.coin_id,
  co.symbol,
  s.quote,
  s.interval,
  upper(s.covered) as final_until,
  now() - upper(s.covered) as age,
  upper_inf(s.wanted) as is_tracked,
  s.priority
from market.series s
join market.coin co on co.id = s.coin_id;
--> statement-breakpoint
comment on table ops.migration is 'Migrations that were applied, in order.';
--> statement-breakpoint
comment on column ops.migration.id is 'In order of applying.';
--> statement-breakpoint
comment on column ops.migration.hash is 'SHA-256 of the migration''s text.';
--> statement-breakpoint
comment on column ops.migration.created_at is 'The instant that orders the migration among the others, in milliseconds since 1970.';
--> statement-breakpoint
comment on table ops.account is 'Accounts that were used with an upstream; a key itself is never stored.';
--> statement-breakpoint
comment on column ops.account.id is 'Name of the account, without its key.';
--> statement-breakpoint
comment on column ops.account.origin is 'Scheme and host of the upstream.';
--> statement-breakpoint
comment on column ops.account.plan is 'The plan it has, as configured or as upstream told.';
--> statement-breakpoint
comment on column ops.account.auth_scheme is 'How the key is sent: bearer or bare; null until that is known.';
--> statement-breakpoint
comment on column ops.account.account_path is 'Where upstream tells about the account; null until that is known.';
--> statement-breakpoint
comment on column ops.account.checked_at is 'When upstream last told about the account.';
--> statement-breakpoint
comment on column ops.account.month_limit is 'Requests a month, as upstream told.';
--> statement-breakpoint
comment on column ops.account.is_current is 'True for the one account that was used last: refusals count under its plan.';
--> statement-breakpoint
comment on table ops.open_wall is 'Walls that the documents name and that were found not to be there.';
--> statement-breakpoint
comment on column ops.open_wall.account_plan is 'The plan it was found under.';
--> statement-breakpoint
comment on column ops.open_wall.interval is 'The width of candle it is about.';
--> statement-breakpoint
comment on column ops.open_wall.proven_at is 'When an answer from beyond it came.';
--> statement-breakpoint
comment on table ops.backfill is 'Backfills: who asked for what, and how it goes.';
--> statement-breakpoint
comment on column ops.backfill.id is 'Number of the backfill.';
--> statement-breakpoint
comment on column ops.backfill.requested_at is 'When it was asked for.';
--> statement-breakpoint
comment on column ops.backfill.started_at is 'When it began.';
--> statement-breakpoint
comment on column ops.backfill.finished_at is 'When it ended; null while it runs.';
--> statement-breakpoint
comment on column ops.backfill.state is 'running, done, stopped, interrupted or failed.';
--> statement-breakpoint
comment on column ops.backfill.spec is 'The coins and options as they were given.';
--> statement-breakpoint
comment on column ops.backfill.span is 'The stretch of time asked for.';
--> statement-breakpoint
comment on column ops.backfill.interval is 'Width of the candles.';
--> statement-breakpoint
comment on column ops.backfill.quote is 'Currency of the prices.';
--> statement-breakpoint
comment on column ops.backfill.planned_requests is 'What it was to cost.';
--> statement-breakpoint
comment on column ops.backfill.owner is 'Machine and process that work on it.';
--> statement-breakpoint
comment on column ops.backfill.heartbeat_at is 'Last sign of life of that process.';
--> statement-breakpoint
comment on table ops.backfill_series is 'Which series a backfill is about.';
--> statement-breakpoint
comment on column ops.backfill_series.backfill_id is 'ops.backfill.id.';
--> statement-breakpoint
comment on column ops.backfill_series.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column ops.quota.account_id is 'ops.account.id.';
--> statement-breakpoint
comment on column ops.quota.day_start is 'Beginning of the day that day_spent is about.';
--> statement-breakpoint
comment on column ops.quota.day_spent is 'Requests taken on that day.';
--> statement-breakpoint
comment on column ops.quota.month_start is 'Beginning of the month that month_spent is about.';
--> statement-breakpoint
comment on column ops.quota.month_spent is 'Requests taken in that month.';
--> statement-breakpoint
comment on column ops.quota.month_limit_known is 'Requests a month, as upstream told; null when it has not.';
--> statement-breakpoint
comment on column ops.quota.limited_at is 'When upstream last asked for a pause.';
--> statement-breakpoint
comment on column ops.quota.limited_until is 'Nobody asks before, because upstream asked for a pause.';
--> statement-breakpoint
comment on column ops.quota.limited_streak is 'How many times in a row it did.';
--> statement-breakpoint
comment on column ops.quota.limited_message is 'What it said.';
--> statement-breakpoint
comment on column ops.quota.spent_until is 'Nobody asks before, because upstream says that the quota is used up.';
--> statement-breakpoint
comment on column ops.quota.spent_message is 'What it said.';
--> statement-breakpoint
comment on column ops.quota.down_at is 'When upstream last did not answer as it should.';
--> statement-breakpoint
comment on column ops.quota.down_until is 'Nobody asks before, because upstream did not answer as it should.';
--> statement-breakpoint
comment on column ops.quota.down_streak is 'How many times in a row it did not.';
--> statement-breakpoint
comment on column ops.quota.down_message is 'What was seen of it.';
--> statement-breakpoint
comment on column ops.quota.probe_until is 'Until then one request alone finds out whether upstream answers again.';
--> statement-breakpoint
comment on column ops.quota_spent.account_id is 'ops.account.id.';
--> statement-breakpoint
comment on column ops.quota_spent.class is 'scheduled or backfill.';
--> statement-breakpoint
comment on column ops.quota_spent.name is 'Who spent it.';
--> statement-breakpoint
comment on column ops.quota_spent.month_start is 'Beginning of the month that month_spent is about.';
--> statement-breakpoint
comment on column ops.quota_spent.month_spent is 'Requests taken in that month.';
--> statement-breakpoint
comment on column ops.quota_spent.day_start is 'Beginning of the day that day_spent is about.';
--> statement-breakpoint
comment on column ops.quota_spent.day_spent is 'Requests taken on that day.';
--> statement-breakpoint
comment on table ops.fetch is 'Upstream requests as they happened, a row each.';
--> statement-breakpoint
comment on column ops.fetch.id is 'In order of recording.';
--> statement-breakpoint
comment on column ops.fetch.sent_at is 'When it was sent.';
--> statement-breakpoint
comment on column ops.fetch.as_of is 'No fact in the answer is newer than this.';
--> statement-breakpoint
comment on column ops.fetch.account_id is 'ops.account.id.';
--> statement-breakpoint
comment on column ops.fetch.endpoint is 'Which kind of question: ohlcv, coins and so on.';
--> statement-breakpoint
comment on column ops.fetch.series_id is 'market.series.id; null when it was not about candles.';
--> statement-breakpoint
comment on column ops.fetch.span is 'The stretch of candles asked for.';
--> statement-breakpoint
comment on column ops.fetch.backfill_id is 'ops.backfill.id of the run that wanted it.';
--> statement-breakpoint
comment on column ops.fetch.attempt is '1 for the first try.';
--> statement-breakpoint
comment on column ops.fetch.status is 'HTTP status; null when no status line arrived.';
--> statement-breakpoint
comment on column ops.fetch.outcome is 'What became of it: stored, limited, refused, unavailable, malformed and so on.';
--> statement-breakpoint
comment on column ops.fetch.duration_ms is 'Milliseconds from sending to the end of the answer.';
--> statement-breakpoint
comment on column ops.fetch.rows is 'Rows in the answer.';
--> statement-breakpoint
comment on column ops.fetch.stored is 'Candles that were written.';
--> statement-breakpoint
comment on column ops.fetch.revised is 'Final candles that it changed.';
--> statement-breakpoint
comment on column ops.fetch.set_aside is 'Rows that could not be true.';
--> statement-breakpoint
comment on column ops.fetch.bytes is 'Size of the decoded body.';
--> statement-breakpoint
comment on column ops.fetch.body_sha256 is 'SHA-256 of the decoded body.';
--> statement-breakpoint
comment on column ops.fetch.message is 'What upstream said where it did not answer, cut at 2,000 characters.';
--> statement-breakpoint
comment on column ops.origin.is_only is 'Always true: there is one row at most.';
--> statement-breakpoint
comment on column ops.origin.simulator is 'Name of the simulator''s market; null for the real one.';
--> statement-breakpoint
comment on column ops.origin.since is 'When the first answer was stored.';
--> statement-breakpoint
comment on view ops.series_now is 'Each series, with what of it is wanted up to now and what of that is missing; the views of market stand on it.';
--> statement-breakpoint
comment on column ops.series_now.id is 'market.series.id.';
--> statement-breakpoint
comment on column ops.series_now.coin_id is 'market.coin.id.';
--> statement-breakpoint
comment on column ops.series_now.symbol is 'Ticker symbol.';
--> statement-breakpoint
comment on column ops.series_now.quote is 'Currency of the prices.';
--> statement-breakpoint
comment on column ops.series_now.interval is 'Width of the candles.';
--> statement-breakpoint
comment on column ops.series_now.covered is 'Spans with a final answer.';
--> statement-breakpoint
comment on column ops.series_now.width is 'Width of the candles in seconds.';
--> statement-breakpoint
comment on column ops.series_now.settled_until is 'Candles that open before this have settled.';
--> statement-breakpoint
comment on column ops.series_now.wanted is 'Spans wanted, from when the coin began up to now.';
--> statement-breakpoint
comment on column ops.series_now.missing is 'Of these, what is not covered.';
--> statement-breakpoint
comment on table market.coin is 'Every coin ever seen in the upstream''s catalogue. Rows are never deleted: no survivorship bias.';
--> statement-breakpoint
comment on table market.coin_change is 'Every change of a coin''s name, symbol or activity that we saw.';
--> statement-breakpoint
comment on column market.candle.interval is 'The series'' interval, repeated here so that partitions prune.';
--> statement-breakpoint
comment on column market.freshness.is_tracked is 'True when the series is wanted without an end, and so kept up to now; false when only a stretch of time was asked for.';
--> statement-breakpoint
do $$
declare
  leaf record;
begin
  for leaf in
    select c.relname, p.relname as parent from pg_inherits i
    join pg_class c on c.oid = i.inhrelid and c.relkind = 'r'
    join pg_class p on p.oid = i.inhparent
    where c.relnamespace = 'market'::regnamespace and p.relname like 'candle\_%'
  loop
    execute format('comment on table market.%I is %L', leaf.relname, 'A stretch of time of market.' || leaf.parent || '.');
  end loop;
end
$$;
