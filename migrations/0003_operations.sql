-- The bookkeeping of the program: accounts and quota, requests, backfills, tracking, schedules, notices, callers.

-- Written with the first answer, and never changed.
create table ops.origin (
  is_only boolean primary key default true,
  simulator text,
  since timestamptz not null default now(),
  constraint origin_is_only check (is_only)
);
comment on table ops.origin is 'Whose data this warehouse holds, as its first answer said: a simulator''s market, or the real one (null). Answers of any other are refused.';
comment on column ops.origin.is_only is 'Always true: there is one row at most.';
comment on column ops.origin.simulator is 'Name of the simulator''s market; null for the real one.';
comment on column ops.origin.since is 'When the first answer was stored.';

create table ops.account (
  id text primary key,
  origin text not null,
  plan text not null,
  auth_scheme text,
  account_path text,
  checked_at timestamptz,
  month_limit bigint,
  is_current boolean not null default false,
  refused_at timestamptz,
  refusals integer not null default 0,
  refused_scheme text,
  refusal text,
  constraint account_auth_scheme check (auth_scheme in ('bearer', 'bare')),
  constraint account_path check (account_path in ('/users/me', '/key/info')),
  constraint account_refused_scheme check (refused_scheme in ('auto', 'bearer', 'bare'))
);
-- Only one account can be the current one.
create unique index account_current on ops.account (is_current) where is_current;
comment on table ops.account is 'Accounts that were used with an upstream; a key itself is never stored.';
comment on column ops.account.id is 'Name of the account, without its key.';
comment on column ops.account.origin is 'Scheme and host of the upstream.';
comment on column ops.account.plan is 'The plan of the account, as configured or as upstream reported it.';
comment on column ops.account.auth_scheme is 'How the key is sent: bearer or bare; null until that is known.';
comment on column ops.account.account_path is 'Where upstream answers questions about the account; null until that is known.';
comment on column ops.account.checked_at is 'When upstream last answered about the account.';
comment on column ops.account.month_limit is 'Requests a month, as upstream reported them.';
comment on column ops.account.is_current is 'True for the one account that was used last: refusals count under its plan.';
comment on column ops.account.refused_at is 'When upstream last refused the key, or when Chandler last checked it again; null: the key is not refused.';
comment on column ops.account.refusals is 'How often in a row upstream has refused the key. After each refusal Chandler waits longer before it checks the key again.';
comment on column ops.account.refused_scheme is 'How the key was sent then: CHANDLER_AUTH_SCHEME.';
comment on column ops.account.refusal is 'What was said of it.';

-- One row per account holds all windows, so that one statement takes from all of them or from none.
-- The fill factor leaves room for the next versions of the row on its page: updates touch no index, and pruning needs no vacuum.
create table ops.quota (
  account_id text primary key,
  next_free timestamptz not null default 'epoch',
  day_start timestamptz not null default 'epoch',
  day_spent bigint not null default 0,
  month_start timestamptz not null default 'epoch',
  month_spent bigint not null default 0,
  month_limit bigint,
  month_limit_known boolean not null default false,
  pace_factor double precision not null default 1,
  limited_at timestamptz not null default 'epoch',
  limited_until timestamptz not null default 'epoch',
  limited_streak integer not null default 0,
  limited_message text not null default '',
  exhausted_until timestamptz not null default 'epoch',
  exhausted_message text not null default '',
  down_at timestamptz not null default 'epoch',
  down_until timestamptz not null default 'epoch',
  down_streak integer not null default 0,
  down_message text not null default '',
  probe text,
  probe_until timestamptz,
  constraint quota_pace_factor check (pace_factor >= 1 and pace_factor <= 32),
  constraint quota_probe check (probe in ('unavailable', 'exhausted')),
  constraint quota_spent_not_negative check (day_spent >= 0 and month_spent >= 0)
) with (fillfactor = 10);
comment on table ops.quota is 'What each account may still ask of the upstream: the windows, the pace, and what everybody waits for. Counted before sending, never given back.';
comment on column ops.quota.account_id is 'ops.account.id.';
comment on column ops.quota.next_free is 'The earliest instant the next request may be sent.';
comment on column ops.quota.day_start is 'Beginning of the day that day_spent is about.';
comment on column ops.quota.day_spent is 'Requests taken on that day.';
comment on column ops.quota.month_start is 'Beginning of the month that month_spent is about.';
comment on column ops.quota.month_spent is 'Requests taken in that month.';
comment on column ops.quota.month_limit is 'What the upstream itself says this month allows, null = no limit; only when month_limit_known.';
comment on column ops.quota.month_limit_known is 'True once upstream has reported month_limit.';
comment on column ops.quota.pace_factor is 'How many times slower than the plan after 429s, at limited_until; from then on it halves its distance to 1 every minute.';
comment on column ops.quota.limited_at is 'When upstream last answered 429.';
comment on column ops.quota.limited_until is 'No process sends a request before, because upstream answered 429.';
comment on column ops.quota.limited_streak is 'How many times in a row it did.';
comment on column ops.quota.limited_message is 'What it said.';
comment on column ops.quota.exhausted_until is 'No process sends a request before, because upstream says that the quota is used up.';
comment on column ops.quota.exhausted_message is 'What it said.';
comment on column ops.quota.down_at is 'When upstream last did not answer as it should.';
comment on column ops.quota.down_until is 'No process sends a request before, because upstream fails.';
comment on column ops.quota.down_streak is 'How many times in a row it did not.';
comment on column ops.quota.down_message is 'What was seen of it.';
comment on column ops.quota.probe is 'Why the next request goes alone, and everybody else waits (until probe_until) for what comes of it.';
comment on column ops.quota.probe_until is 'Until then one request alone finds out whether upstream answers again.';

create table ops.quota_spent (
  account_id text not null,
  month_start timestamptz not null,
  class text not null,
  name text not null,
  month_spent bigint not null,
  day_start timestamptz not null,
  day_spent bigint not null,
  primary key (account_id, month_start, class, name),
  constraint quota_spent_class check (class in ('scheduled', 'backfill'))
) with (fillfactor = 20);
comment on table ops.quota_spent is 'Who spent how many requests, per month and on the last day that had any.';
comment on column ops.quota_spent.account_id is 'ops.account.id.';
comment on column ops.quota_spent.month_start is 'Beginning of the month that month_spent is about.';
comment on column ops.quota_spent.class is 'scheduled or backfill.';
comment on column ops.quota_spent.name is 'Who spent it.';
comment on column ops.quota_spent.month_spent is 'Requests taken in that month.';
comment on column ops.quota_spent.day_start is 'Beginning of the day that day_spent is about.';
comment on column ops.quota_spent.day_spent is 'Requests taken on that day.';

create table ops.lifted_history_limit (
  account_plan text not null,
  interval market.candle_interval not null,
  lifted_at timestamptz not null,
  constraint lifted_history_limit_account_plan_interval_pk primary key (account_plan, interval)
);
comment on table ops.lifted_history_limit is 'History limits that the documents name, and that an answer from beyond them has disproved.';
comment on column ops.lifted_history_limit.account_plan is 'The plan it was found under.';
comment on column ops.lifted_history_limit.interval is 'The width of candle it is about.';
comment on column ops.lifted_history_limit.lifted_at is 'When an answer from beyond it came.';

-- answered_slots and unconfirmed_slots keep what each answer said by itself: so the order of storing does not decide which answer is believed about a slot.
create table ops.fetch (
  id bigint primary key generated always as identity,
  sent_at timestamptz not null,
  as_of timestamptz not null,
  account_id text not null,
  endpoint text not null,
  series_id integer,
  span tstzrange,
  backfill_id integer,
  attempt smallint not null,
  status smallint,
  outcome text not null,
  duration_ms integer not null,
  rows integer not null,
  stored integer not null,
  revised integer not null,
  quarantined integer not null,
  bytes integer not null,
  body_sha256 bytea,
  message text,
  answered_slots tstzmultirange,
  unconfirmed_slots tstzmultirange,
  subject text
);
create index fetch_of_series on ops.fetch (series_id, as_of) where series_id is not null;
create index fetch_of_backfill on ops.fetch (backfill_id) where backfill_id is not null;
create index fetch_unconfirmed on ops.fetch (series_id) where unconfirmed_slots is not null;
-- Status looks at the requests of the last day. They are written in the order they are sent, so a few bytes for each stretch of
-- pages are enough to find them (a million rows: 68 ms without, 4 ms with), and cost the writes nothing.
create index fetch_by_time on ops.fetch using brin (sent_at) with (autosummarize = on);
create index fetch_of_endpoint on ops.fetch (endpoint, account_id, sent_at) where series_id is null;
comment on table ops.fetch is 'Upstream requests as they happened, a row each.';
comment on column ops.fetch.id is 'In order of recording.';
comment on column ops.fetch.sent_at is 'When it was sent.';
comment on column ops.fetch.as_of is 'No fact in the answer is newer than this.';
comment on column ops.fetch.account_id is 'ops.account.id.';
comment on column ops.fetch.endpoint is 'Which kind of question: ohlcv, coins and so on.';
comment on column ops.fetch.series_id is 'market.series.id; null when it was not about candles.';
comment on column ops.fetch.span is 'The span of the candles that were requested.';
comment on column ops.fetch.backfill_id is 'ops.backfill.id of the run that wanted it.';
comment on column ops.fetch.attempt is '1 for the first try.';
comment on column ops.fetch.status is 'HTTP status; null when no status line arrived.';
comment on column ops.fetch.outcome is 'What became of it: stored, limited, refused, unavailable, malformed and so on.';
comment on column ops.fetch.duration_ms is 'Milliseconds from sending to the end of the answer.';
comment on column ops.fetch.rows is 'Rows in the answer.';
comment on column ops.fetch.stored is 'Candles that were written.';
comment on column ops.fetch.revised is 'Final candles that it changed.';
comment on column ops.fetch.quarantined is 'Rows that could not be true.';
comment on column ops.fetch.bytes is 'Size of the decoded body.';
comment on column ops.fetch.body_sha256 is 'SHA-256 of the decoded body.';
comment on column ops.fetch.message is 'What upstream said where it did not answer, cut at 2,000 characters.';
comment on column ops.fetch.answered_slots is 'Slots the answer has a candle for, and slots with candles on both sides of them; null when it is no stored answer about candles.';
comment on column ops.fetch.unconfirmed_slots is 'Slots missing at the edges of the answer: empty only when another answer long enough before or after lacks them, too.';
comment on column ops.fetch.subject is 'About which coin, exchange, tag, person or platform, for requests about one that is no series.';

create table ops.backfill (
  id integer primary key generated always as identity,
  requested_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  state text not null,
  spec jsonb not null,
  span tstzrange not null,
  interval market.candle_interval not null,
  quote text not null,
  planned_requests integer not null,
  owner text,
  heartbeat_at timestamptz,
  is_detached boolean not null default false,
  priority smallint not null default 0,
  coin_ids text[],
  left_requests integer,
  wait_until timestamptz,
  finish_at timestamptz,
  message text,
  requested_by text,
  constraint backfill_detached check (not is_detached or coin_ids is not null),
  constraint backfill_owned check (state <> 'running' or (owner is not null and heartbeat_at is not null and started_at is not null)),
  constraint backfill_state check (state in ('queued', 'running', 'paused', 'done', 'stopped', 'interrupted', 'failed', 'cancelled'))
);
create index backfill_to_do on ops.backfill (priority, id) where is_detached and state in ('queued', 'running');
comment on table ops.backfill is 'Backfills: who requested what, and their state.';
comment on column ops.backfill.id is 'Number of the backfill.';
comment on column ops.backfill.requested_at is 'When it was requested.';
comment on column ops.backfill.started_at is 'When it began; null when it has not.';
comment on column ops.backfill.finished_at is 'When it ended; null while it runs.';
comment on column ops.backfill.state is 'queued (waits for a service, or for wait_until), running, paused, done, stopped (early, with work left), interrupted, failed or cancelled.';
comment on column ops.backfill.spec is 'The coins and options as they were given.';
comment on column ops.backfill.span is 'The span that was requested.';
comment on column ops.backfill.interval is 'Width of the candles.';
comment on column ops.backfill.quote is 'Currency of the prices.';
comment on column ops.backfill.planned_requests is 'What it was to cost.';
comment on column ops.backfill.owner is 'Machine and process that work on it, or did last.';
comment on column ops.backfill.heartbeat_at is 'Last sign of life of that process; null when none has begun.';
comment on column ops.backfill.is_detached is 'For the service to work off; false: of a command that does it itself.';
comment on column ops.backfill.priority is 'Of those for the service the highest goes first.';
comment on column ops.backfill.coin_ids is 'For the service: the coins that were meant, in the order they are filled.';
comment on column ops.backfill.left_requests is 'Requests that are still to be sent, as last counted.';
comment on column ops.backfill.wait_until is 'Before this there is nothing to spend on it.';
comment on column ops.backfill.finish_at is 'When it will be done by what is known of the quota, what everybody waits for and what is done before it; null when that cannot be said.';
comment on column ops.backfill.message is 'Why it waits, stopped or failed.';
comment on column ops.backfill.requested_by is 'Who wants it: user@host of the command, or ''the audit of gaps'' for the past of tracked series; null when it was recorded before this was written down.';

create table ops.fetch_totals (
  backfill_id integer not null,
  outcome text not null,
  requests bigint not null,
  rows bigint not null,
  stored bigint not null,
  revised bigint not null,
  quarantined bigint not null,
  constraint fetch_totals_backfill_id_outcome_pk primary key (backfill_id, outcome)
);
comment on table ops.fetch_totals is 'Sums of the requests of a backfill whose rows in ops.fetch were removed for their age.';
comment on column ops.fetch_totals.backfill_id is 'ops.backfill.id.';
comment on column ops.fetch_totals.outcome is 'How the requests ended, as in ops.fetch.';
comment on column ops.fetch_totals.requests is 'How many there were.';
comment on column ops.fetch_totals.rows is 'Rows in their answers.';
comment on column ops.fetch_totals.stored is 'Rows that were new or changed.';
comment on column ops.fetch_totals.revised is 'Final candles that they changed or removed.';
comment on column ops.fetch_totals.quarantined is 'Rows that could not be true.';

create table ops.catalogue_item (
  kind text not null,
  id text not null,
  asked_at timestamptz not null,
  answered_at timestamptz,
  outcome text not null,
  times integer not null,
  wait_until timestamptz,
  rows integer not null default 0,
  is_truncated boolean not null default false,
  message text,
  constraint catalogue_item_kind_id_pk primary key (kind, id)
);
create index catalogue_item_by_age on ops.catalogue_item (kind, asked_at);
comment on table ops.catalogue_item is 'When each item of the catalogue was last requested, and with what outcome. The next request goes to the item that was not requested for the longest time.';
comment on column ops.catalogue_item.kind is 'The kind of item: as in market.document, and tags for the list of tags.';
comment on column ops.catalogue_item.id is 'About what; empty for what there is only one of.';
comment on column ops.catalogue_item.asked_at is 'When it was last requested.';
comment on column ops.catalogue_item.answered_at is 'When it was last answered with something that was stored.';
comment on column ops.catalogue_item.outcome is 'How the last request ended: stored, cut (only the beginning of a list was given), unconfirmed, or as in ops.fetch.';
comment on column ops.catalogue_item.times is 'So many requests in a row have ended like that.';
comment on column ops.catalogue_item.wait_until is 'Chandler does not request it before; null when its age decides.';
comment on column ops.catalogue_item.rows is 'Rows of the last answer.';
comment on column ops.catalogue_item.is_truncated is 'The tool gave only the beginning of the list: Chandler requests it from REST.';
comment on column ops.catalogue_item.message is 'What upstream said, where it did not answer.';

-- A row is about slots of a series (series_id, span), or about what its key names.
create table ops.second_opinion (
  claim text not null,
  key text,
  series_id integer constraint second_opinion_series_id_series_id_fk references market.series,
  span tstzrange,
  evidence jsonb,
  answers integer not null default 1,
  requested_at timestamptz not null,
  retry_at timestamptz not null,
  constraint second_opinion_subject check ((series_id is null) = (span is null) and (series_id is null) = (key is not null)),
  constraint second_opinion_claim check (series_id is null or claim in ('provisional', 'unconfirmed', 'malformed')),
  constraint second_opinion_span check (not isempty(span))
);
create unique index second_opinion_of_series on ops.second_opinion (series_id, span) where series_id is not null;
create unique index second_opinion_of_key on ops.second_opinion (claim, key) where key is not null;
comment on table ops.second_opinion is 'What upstream has answered, and is not believed before later answers agree; with when to ask again.';
comment on column ops.second_opinion.claim is 'What the answers say. Of slots: provisional (too young to be final), unconfirmed (no candle) or malformed (an impossible row). Other claims: src/core/second-opinion.ts.';
comment on column ops.second_opinion.key is 'What it is about, where that is not a series: a plan and an interval, a chunk, a kind of the catalogue, a list.';
comment on column ops.second_opinion.series_id is 'market.series.id.';
comment on column ops.second_opinion.span is 'The slots it is about: a gap.';
comment on column ops.second_opinion.evidence is 'What the answers said, where it is needed later.';
comment on column ops.second_opinion.answers is 'How many answers agree so far.';
comment on column ops.second_opinion.requested_at is 'The last request that counted, by our clock; requests before retry_at do not count.';
comment on column ops.second_opinion.retry_at is 'Chandler does not ask again before, by its own clock; infinity: it does not ask again by itself.';

create table ops.rpc (
  url text primary key,
  tools jsonb,
  listed_at timestamptz,
  closed_until timestamptz,
  failures integer not null default 0,
  message text
);
comment on table ops.rpc is 'JSON-RPC interfaces of upstreams: their tools, and how they are.';
comment on column ops.rpc.url is 'Address of the JSON-RPC interface.';
comment on column ops.rpc.tools is 'Its tools, as it lists them; null when it never has.';
comment on column ops.rpc.listed_at is 'When it listed them.';
comment on column ops.rpc.closed_until is 'Chandler does not use the interface before, because it failed; it uses REST meanwhile.';
comment on column ops.rpc.failures is 'So often in a row it could not be used.';
comment on column ops.rpc.message is 'Why it could not.';

-- One row per rule: a coin × interval × quote, the best-ranked N × interval × quote, or all active coins × interval × quote.
create table ops.track (
  id integer primary key generated always as identity,
  tier text not null,
  coin_id text constraint track_coin_id_coin_id_fk references market.coin,
  top integer,
  interval market.candle_interval not null,
  quote text not null,
  since timestamptz not null,
  priority smallint not null,
  target_age interval not null,
  created_at timestamptz not null,
  constraint track_rule unique nulls not distinct (tier, coin_id, top, interval, quote),
  constraint track_quote check (quote in ('usd', 'btc')),
  constraint track_target_age check (target_age > interval '0'),
  constraint track_tier check (
    case tier
      when 'list' then coin_id is not null and top is null
      when 'top' then coin_id is null and coalesce(top, 0) > 0
      when 'all' then coin_id is null and top is null
      else false
    end
  )
);
comment on table ops.track is 'The rules of chandler track: one row per coin, top N or all × interval × quote.';
comment on column ops.track.id is 'Number of the rule.';
comment on column ops.track.tier is 'list (a coin by its id), top (the best-ranked N) or all (every active coin).';
comment on column ops.track.coin_id is 'Of tier list: the coin, market.coin.id.';
comment on column ops.track.top is 'Of tier top: how many.';
comment on column ops.track.interval is 'Width of the candles.';
comment on column ops.track.quote is 'Currency of the prices.';
comment on column ops.track.since is 'What opens before it is not wanted for this rule.';
comment on column ops.track.priority is 'Higher goes first.';
comment on column ops.track.target_age is 'How old the newest data may become before Chandler refreshes it.';
comment on column ops.track.created_at is 'When it was added, or last given again.';

create table ops.tier (
  id integer primary key generated always as identity,
  tier text not null,
  priority smallint not null,
  interval market.candle_interval not null,
  target_age interval not null,
  achievable_age interval,
  keeps_up boolean not null default true,
  planned_at timestamptz,
  constraint tier_kind unique (tier, priority, interval, target_age),
  constraint tier_tier check (tier in ('list', 'top', 'all'))
);
comment on table ops.tier is 'Tracked series that are treated alike, and how old their data becomes with the requests there are.';
comment on column ops.tier.id is 'Number of the tier.';
comment on column ops.tier.tier is 'Why its series are tracked: list, top or all.';
comment on column ops.tier.priority is 'Higher goes first.';
comment on column ops.tier.interval is 'Width of the candles.';
comment on column ops.tier.target_age is 'How old the newest data may become, by the rules.';
comment on column ops.tier.achievable_age is 'Null: not planned yet, or (planned_at not null) nothing to spend on it.';
comment on column ops.tier.keeps_up is 'False: between two requests more candles come than one request holds.';
comment on column ops.tier.planned_at is 'When achievable_age was worked out; null when never.';

-- Rewritten with every answer: room on the page for the next version.
create table ops.tracked (
  series_id integer primary key constraint tracked_series_id_series_id_fk references market.series,
  tier_id integer not null constraint tracked_tier_id_tier_id_fk references ops.tier,
  tracked_at timestamptz not null,
  asked_at timestamptz,
  refresh_at timestamptz,
  seen_until timestamptz,
  ends_at timestamptz,
  queued_at timestamptz
) with (fillfactor = 70);
-- All series of a tier have the same target age, so they are refreshed in the order in which they were last requested: the series that was
-- requested first is first in its part of the index, those never requested are last.
create index tracked_by_age on ops.tracked (tier_id, asked_at);
create index tracked_by_refresh on ops.tracked (tier_id, refresh_at);
create index tracked_ending on ops.tracked (ends_at) where ends_at is not null;
create index tracked_queued on ops.tracked (queued_at) where queued_at is not null;
comment on table ops.tracked is 'The series that the rules select: when each was last requested, and up to which instant it has everything that upstream had.';
comment on column ops.tracked.series_id is 'market.series.id.';
comment on column ops.tracked.tier_id is 'ops.tier.id.';
comment on column ops.tracked.tracked_at is 'Since when it is tracked.';
comment on column ops.tracked.asked_at is 'When its newest candles were last requested, answered or not; null when never.';
comment on column ops.tracked.refresh_at is 'For a refresh before the target age is reached, the age counts from here: asked_at, or earlier.';
comment on column ops.tracked.seen_until is 'Up to here Chandler has everything that upstream had; null when upstream has not answered yet.';
comment on column ops.tracked.ends_at is 'No rule wants it any more: it is wanted up to here only, and leaves when that is complete.';
comment on column ops.tracked.queued_at is 'Since when a chunk of its newest end is in the queue; null when none is.';

create table ops.schedule_run (
  id bigint primary key generated always as identity,
  schedule text not null,
  tick timestamptz not null,
  state text not null,
  attempts smallint not null,
  failures integer not null,
  owner text not null,
  begun_at timestamptz not null,
  ended_at timestamptz,
  lease_until timestamptz,
  wait_until timestamptz,
  message text,
  constraint schedule_run_of_tick unique (schedule, tick),
  constraint schedule_run_state check (state in ('running', 'waiting', 'held', 'done', 'failed', 'superseded'))
);
create index schedule_run_latest on ops.schedule_run (schedule, id);
create index schedule_run_failures on ops.schedule_run (schedule, id) where state = 'failed';
comment on table ops.schedule_run is 'What the schedules ran: one row per schedule and tick, however many processes tick. Kept for a month.';
comment on column ops.schedule_run.id is 'In order of claiming.';
comment on column ops.schedule_run.schedule is 'Name of the schedule, as chandler schedule has it.';
comment on column ops.schedule_run.tick is 'The instant it was due.';
comment on column ops.schedule_run.state is 'running; waiting (it failed, and is tried again at wait_until); held (by the quota, until wait_until); done; failed (no attempt is left); superseded (the next tick came before it was done).';
comment on column ops.schedule_run.attempts is 'Times it was begun; those held by the quota do not count.';
comment on column ops.schedule_run.failures is 'Runs of this schedule that failed, one after the other, up to here; the more, the longer until the next.';
comment on column ops.schedule_run.owner is 'Who runs or ran it: host:pid.';
comment on column ops.schedule_run.begun_at is 'When it was begun last.';
comment on column ops.schedule_run.ended_at is 'When it ended last, however; null while it runs.';
comment on column ops.schedule_run.lease_until is 'Until when its owner is believed to be at it without another sign of life.';
comment on column ops.schedule_run.wait_until is 'Of waiting and held: when it goes on.';
comment on column ops.schedule_run.message is 'Why it failed last, or what it waits for.';

create table ops.instance (
  owner text primary key,
  roles text[] not null,
  started_at timestamptz not null,
  heartbeat_at timestamptz not null
);
comment on table ops.instance is 'Services that run, or ran lately.';
comment on column ops.instance.owner is 'Machine and process.';
comment on column ops.instance.roles is 'What it does: scheduler, worker, http.';
comment on column ops.instance.started_at is 'When it started.';
comment on column ops.instance.heartbeat_at is 'Its last sign of life.';

create table ops.notice (
  id bigint primary key generated always as identity,
  event text not null,
  topic text not null,
  text text not null,
  raised_at timestamptz not null,
  upto bigint,
  attempts smallint not null default 0,
  due_at timestamptz,
  sent_at timestamptz,
  owner text,
  message text
);
create index notice_of_topic on ops.notice (topic, raised_at);
create index notice_to_send on ops.notice (id) where due_at is not null;
comment on table ops.notice is 'Messages to the operator through CHANDLER_WEBHOOK_URL. Kept for a year.';
comment on column ops.notice.id is 'In the order in which they are sent.';
comment on column ops.notice.event is 'quota, stuck, history-limit, revisions or quarantine.';
comment on column ops.notice.topic is 'What exactly it is about. A topic is sent once in a while, however many services notice it.';
comment on column ops.notice.text is 'What is sent.';
comment on column ops.notice.raised_at is 'When it was noticed.';
comment on column ops.notice.upto is 'Of quarantine: the last row that the notice counts.';
comment on column ops.notice.attempts is 'Times it was sent, or tried to.';
comment on column ops.notice.due_at is 'When it is sent, or tried again; null when it was sent or given up.';
comment on column ops.notice.sent_at is 'When it was taken; null when it was not.';
comment on column ops.notice.owner is 'Machine and process that sent it last, or tried to.';
comment on column ops.notice.message is 'Why the last attempt failed.';

create table ops.watch (
  name text primary key,
  since timestamptz,
  seen_at timestamptz not null
);
comment on table ops.watch is 'What the services see for some time without a break, so that one that starts anew need not begin to wait again.';
comment on column ops.watch.name is 'What is seen.';
comment on column ops.watch.since is 'Since when; null: not now.';
comment on column ops.watch.seen_at is 'When a service looked last.';

create table ops.api_key (
  id integer primary key generated always as identity,
  prefix text not null,
  hash bytea not null,
  name text,
  plan text not null,
  requests_per_month bigint,
  requests_per_second double precision,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  replaced_by integer constraint api_key_replaced_by_api_key_id_fk references ops.api_key,
  constraint api_key_prefix unique (prefix),
  constraint api_key_hash check (octet_length(hash) = 32),
  constraint api_key_plan check (plan in ('free', 'starter', 'pro', 'business', 'ultimate', 'enterprise', 'unlimited'))
);
comment on table ops.api_key is 'Keys of those who may ask this service (chandler keys). The key itself is nowhere: only its SHA-256.';
comment on column ops.api_key.id is 'Names the key in ops.api_usage.';
comment on column ops.api_key.prefix is 'The part of the key by which it is recognised; no secret.';
comment on column ops.api_key.hash is 'SHA-256 of the whole key, which has 190 random bits.';
comment on column ops.api_key.name is 'Who has it; for the operator.';
comment on column ops.api_key.plan is 'A plan of the API document, or unlimited.';
comment on column ops.api_key.requests_per_month is 'Instead of the plan''s number; null: as the plan says.';
comment on column ops.api_key.requests_per_second is 'Instead of the plan''s number; null: as the plan says.';
comment on column ops.api_key.created_at is 'When it was made.';
comment on column ops.api_key.expires_at is 'From then on it is refused; null: never.';
comment on column ops.api_key.revoked_at is 'When it was taken back; null: it was not.';
comment on column ops.api_key.replaced_by is 'The key that took its place (chandler keys rotate).';

create table ops.api_usage (
  subject text primary key,
  month_start timestamptz not null,
  month_spent bigint not null,
  day_start timestamptz not null,
  day_spent bigint not null,
  updated_at timestamptz not null,
  month_leased bigint not null default 0
);
comment on table ops.api_usage is 'Requests answered by this service, by key (key:3) or by address without one (address:192.0.2.7). Includes what running processes hold in advance.';
comment on column ops.api_usage.subject is 'key:<id>, or address:<IPv4, or the first 64 bits of IPv6>.';
comment on column ops.api_usage.month_start is 'Begin of the calendar month (UTC) that month_spent counts.';
comment on column ops.api_usage.month_spent is 'Requests of that month, with those of month_leased.';
comment on column ops.api_usage.day_start is 'Begin of the day (UTC) that day_spent counts.';
comment on column ops.api_usage.day_spent is 'Requests of that day.';
comment on column ops.api_usage.updated_at is 'When a process last took some in advance.';
comment on column ops.api_usage.month_leased is 'Part of month_spent: requests that processes have leased and not yet reported as used (they report every five seconds). The lease of a process that died stays counted until the month ends.';

-- A reader may cache the data for as long as the number stays the same. Of candles each series has its own number.
create table ops.version (
  topic text primary key,
  version bigint not null
) with (fillfactor = 10);
comment on table ops.version is 'Of each kind of data that is served: a number that every transaction changes that changes any of it. What was read under one number is still true while the number stays.';
comment on column ops.version.topic is 'Name of the table in market; "document …": of that kind of the catalogue; "coin names": all of market.coin that is not its rank, nor when it was seen.';
comment on column ops.version.version is 'Goes up.';
insert into ops.version (topic, version)
  select topic, 1 from unnest(array['coin', 'coin names', 'ticker', 'global_history', 'exchange', 'coin_rename']) topic;

-- drizzle makes this table before the first migration; src/store/migration/migrate.ts adds the column name.
comment on table ops.migration is 'Migrations that were applied, in order.';
comment on column ops.migration.id is 'In order of applying.';
comment on column ops.migration.hash is 'SHA-256 of the migration''s text.';
comment on column ops.migration.created_at is 'The instant that orders the migration among the others, in milliseconds since 1970.';
