-- Of a backfill: a range for its end, why the forecast changed, the part that is done (which never falls), and where its chunks wait.

alter table ops.backfill add column finish_from timestamptz;
alter table ops.backfill add column finish_to timestamptz;
alter table ops.backfill add column finish_change text;
alter table ops.backfill add column finish_changed_at timestamptz;
alter table ops.backfill add column finish_basis jsonb;
alter table ops.backfill add column progress double precision not null default 0;
alter table ops.backfill add column chunks jsonb;
comment on column ops.backfill.finish_at is 'When it will be done, by the requests that it really gets, the quota, what everybody waits for and what goes before it; null when that cannot be said.';
comment on column ops.backfill.finish_from is 'The early end of the range of finish_at.';
comment on column ops.backfill.finish_to is 'The late end of the range of finish_at.';
comment on column ops.backfill.finish_change is 'Why the forecast last left its range; null when it never did.';
comment on column ops.backfill.finish_changed_at is 'When it did.';
comment on column ops.backfill.finish_basis is 'What the forecast was made from when it last left its range, or when it was first made.';
comment on column ops.backfill.progress is 'How much of it is done, from 0 to 1: the most that ever was.';
comment on column ops.backfill.chunks is 'How many of its chunks are in progress, in the queue or waiting for a retry, and some of these; null while no process works on it.';
comment on column ops.backfill.planned_requests is 'What it is to cost: more than at first where a later plan found more.';

create or replace view ops.backfill_progress as
select b.id, b.state, b.is_detached, b.priority, b.interval, b.quote, cardinality(b.coin_ids) as coins,
  lower(b.span) as "from", upper(b.span) as "to", b.requested_at, b.started_at, b.finished_at, b.planned_requests,
  coalesce(spent.requests, 0) as spent, coalesce(spent.stored, 0) as stored,
  b.left_requests, b.wait_until, b.finish_at, b.owner, b.heartbeat_at, b.message,
  case
    when b.state = 'done' then 1
    -- It has nothing to send, because others send it: that is no progress of its own.
    when b.state = 'queued' and b.message = 'another backfill' then b.progress
    when b.left_requests is not null
      then greatest(b.progress, 1 - b.left_requests::float8 / greatest(b.left_requests, b.planned_requests, 1))
    -- Of a command of an older version: the part of its planned requests that it has sent.
    when not b.is_detached and b.planned_requests > 0 then least(1, coalesce(spent.requests, 0)::float8 / b.planned_requests)
  end as progress,
  b.requested_by,
  b.finish_from, b.finish_to, b.finish_change, b.finish_changed_at,
  coalesce((b.chunks ->> 'retrying')::int, 0) as retrying, (b.chunks ->> 'retryFrom')::timestamptz as retry_from,
  (b.chunks ->> 'retryTo')::timestamptz as retry_to
from ops.backfill b
cross join lateral (
  select sum(requests)::bigint as requests, sum(stored)::bigint as stored from (
    select count(*) as requests, sum(f.stored) as stored from ops.fetch f where f.backfill_id = b.id
    union all
    select sum(p.requests), sum(p.stored) from ops.fetch_totals p where p.backfill_id = b.id
  ) parts
) spent;
comment on column ops.backfill_progress.planned_requests is 'What it is to cost: more than at first where a later plan found more.';
comment on column ops.backfill_progress.finish_at is 'When it will be done, by the requests that it really gets, the quota, what everybody waits for and what goes before it; null when that cannot be said.';
comment on column ops.backfill_progress.progress is 'How much of it is done, from 0 to 1: the most that ever was.';
comment on column ops.backfill_progress.finish_from is 'The early end of the range of finish_at.';
comment on column ops.backfill_progress.finish_to is 'The late end of the range of finish_at.';
comment on column ops.backfill_progress.finish_change is 'Why the forecast last left its range; null when it never did.';
comment on column ops.backfill_progress.finish_changed_at is 'When it did.';
comment on column ops.backfill_progress.retrying is 'How many of its chunks wait for a retry.';
comment on column ops.backfill_progress.retry_from is 'When the first of them is retried.';
comment on column ops.backfill_progress.retry_to is 'When the last of them is retried, as far as is known.';
