-- How far each backfill is, as one number, the same for SQL, the command line and HTTP.
create or replace view ops.backfill_progress as
select b.id, b.state, b.is_detached, b.priority, b.interval, b.quote, cardinality(b.coin_ids) as coins,
  lower(b.span) as "from", upper(b.span) as "to", b.requested_at, b.started_at, b.finished_at, b.planned_requests,
  coalesce(spent.requests, 0) as spent, coalesce(spent.stored, 0) as stored,
  b.left_requests, b.wait_until, b.finish_at, b.owner, b.heartbeat_at, b.message,
  case
    when b.state = 'done' then 1
    -- It may have grown since it was planned: then what is left is all there is.
    when b.left_requests is not null then 1 - b.left_requests::float8 / greatest(b.left_requests, b.planned_requests, 1)
    -- Of a command: what it has asked of what it meant to ask.
    when not b.is_detached and b.planned_requests > 0 then least(1, coalesce(spent.requests, 0)::float8 / b.planned_requests)
  end as progress
from ops.backfill b
cross join lateral (
  select sum(requests)::bigint as requests, sum(stored)::bigint as stored from (
    select count(*) as requests, sum(f.stored) as stored from ops.fetch f where f.backfill_id = b.id
    union all
    select sum(p.requests), sum(p.stored) from ops.backfill_past p where p.backfill_id = b.id
  ) parts
) spent;
--> statement-breakpoint
comment on column ops.backfill_progress.progress is 'How much of it is done, from 0 to 1; null when nobody can say.';
--> statement-breakpoint
comment on column ops.backfill_progress.finish_at is 'When it will be done by what is known of the quota, what everybody waits for and what is done before it; null when that cannot be said.';
--> statement-breakpoint
comment on column ops.backfill.finish_at is 'When it will be done by what is known of the quota, what everybody waits for and what is done before it; null when that cannot be said.';
