-- What a backfill spent and brought is counted as it happens: nobody counts millions of requests while somebody waits. And the starts of
-- services are found among all commands.

-- Nothing uses this index any more. It is dropped first: that locks the table, so no request is recorded before all are counted.
drop index ops.fetch_of_backfill;

-- Requests that are recorded at the same time have neighbouring numbers, and each waits only for the one sixteen before it.
alter table ops.fetch_totals add column part smallint not null default 0;
alter table ops.fetch_totals drop constraint fetch_totals_backfill_id_outcome_pk;
alter table ops.fetch_totals add constraint fetch_totals_backfill_id_outcome_part_pk primary key (backfill_id, outcome, part);
comment on table ops.fetch_totals is 'Sums of the requests of a backfill, those included whose rows in ops.fetch were removed for their age. A trigger counts each request in the transaction that records it.';
comment on column ops.fetch_totals.part is 'The sum of an outcome is that of its parts: so requests that are recorded at the same time do not wait for each other.';

create function ops.count_fetches() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into ops.fetch_totals as p (backfill_id, outcome, part, requests, rows, stored, revised, quarantined)
  select backfill_id, outcome, max(id) % 16, count(*), sum(rows), sum(stored), sum(revised), sum(quarantined)
  from made where backfill_id is not null group by 1, 2 order by 1, 2
  on conflict (backfill_id, outcome, part) do update
  set requests = p.requests + excluded.requests, rows = p.rows + excluded.rows, stored = p.stored + excluded.stored,
    revised = p.revised + excluded.revised, quarantined = p.quarantined + excluded.quarantined;
  return null;
end
$$;
comment on function ops.count_fetches() is 'Counts new requests in ops.fetch_totals.';
create trigger counts_new after insert on ops.fetch referencing new table as made
  for each statement execute function ops.count_fetches();

insert into ops.fetch_totals as p (backfill_id, outcome, part, requests, rows, stored, revised, quarantined)
select backfill_id, outcome, 0, count(*), sum(rows), sum(stored), sum(revised), sum(quarantined)
from ops.fetch where backfill_id is not null group by 1, 2
on conflict (backfill_id, outcome, part) do update
set requests = p.requests + excluded.requests, rows = p.rows + excluded.rows, stored = p.stored + excluded.stored,
  revised = p.revised + excluded.revised, quarantined = p.quarantined + excluded.quarantined;

create or replace view ops.backfill_progress as
select b.id, b.state, b.is_detached, b.priority, b.interval, b.quote, cardinality(b.coin_ids) as coins,
  lower(b.span) as "from", upper(b.span) as "to", b.requested_at, b.started_at, b.finished_at, b.planned_requests,
  coalesce(spent.requests, 0) as spent, coalesce(spent.stored, 0) as stored,
  b.left_requests, b.wait_until, b.finish_at, b.owner, b.heartbeat_at, b.message,
  case
    when b.state = 'done' then 1
    -- It has nothing to send, because others send it: that is no progress of its own.
    when b.state = 'queued' and b.message = 'another backfill' then b.progress
    -- Nothing was left of it because others had it, or it looks for more: that is no progress.
    when b.left_requests = 0 and b.progress is not null then b.progress
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
  select sum(p.requests)::bigint as requests, sum(p.stored)::bigint as stored from ops.fetch_totals p where p.backfill_id = b.id
) spent;

-- The start of a service before another one. Not by actor and command as well: of such an index the planner thinks too little, and walks
-- through all entries instead.
create index audit_starts on ops.audit (id) where settings is not null;

comment on column ops.tracked.refresh_at is 'Its last refresh time, which is when it was refreshed or earlier: the next one is the refresh_after of its tier later. Null: it was never refreshed.';
comment on column ops.tracked.asked_at is 'When its newest candles were last requested, answered or not; earlier, where the answer was not final, so that it is due sooner; null when never.';
