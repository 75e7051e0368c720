-- Who wanted each backfill.
ALTER TABLE "ops"."backfill" ADD COLUMN "requested_by" text;--> statement-breakpoint
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
  end as progress,
  b.requested_by
from ops.backfill b
cross join lateral (
  select sum(requests)::bigint as requests, sum(stored)::bigint as stored from (
    select count(*) as requests, sum(f.stored) as stored from ops.fetch f where f.backfill_id = b.id
    union all
    select sum(p.requests), sum(p.stored) from ops.backfill_past p where p.backfill_id = b.id
  ) parts
) spent;--> statement-breakpoint
comment on column ops.backfill.requested_by is 'Who wants it: user@host of the command, or ''the audit of gaps'' for the past of tracked series; null when it was recorded before this was written down.';--> statement-breakpoint
comment on column ops.backfill_progress.requested_by is 'Who wants it, as in ops.backfill.';--> statement-breakpoint
comment on column ops.track.created_at is 'When it was added, or last given again.';
