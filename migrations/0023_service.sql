-- What a service that runs for months goes by: chunks of tracked series that are in the queue, backfills that it takes over, and who runs.
ALTER TABLE "ops"."tracked" ADD COLUMN "queued_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "tracked_queued" ON "ops"."tracked" USING btree ("queued_at") WHERE queued_at is not null;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ALTER COLUMN "started_at" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ALTER COLUMN "owner" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ALTER COLUMN "heartbeat_at" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "is_detached" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "priority" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "coin_ids" text[];--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "left_requests" integer;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "wait_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "finish_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD COLUMN "message" text;--> statement-breakpoint
ALTER TABLE "ops"."backfill" DROP CONSTRAINT "backfill_state";--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD CONSTRAINT "backfill_state" CHECK (state in ('queued', 'running', 'paused', 'done', 'stopped', 'interrupted', 'failed', 'cancelled'));--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD CONSTRAINT "backfill_owned" CHECK (state <> 'running' or (owner is not null and heartbeat_at is not null and started_at is not null));--> statement-breakpoint
ALTER TABLE "ops"."backfill" ADD CONSTRAINT "backfill_detached" CHECK (not is_detached or coin_ids is not null);--> statement-breakpoint
CREATE INDEX "backfill_to_do" ON "ops"."backfill" USING btree ("priority","id") WHERE is_detached and state in ('queued', 'running');--> statement-breakpoint
CREATE TABLE "ops"."instance" (
	"owner" text PRIMARY KEY NOT NULL,
	"roles" text[] NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"heartbeat_at" timestamp with time zone NOT NULL
);--> statement-breakpoint
create view ops.backfill_progress as
select b.id, b.state, b.is_detached, b.priority, b.interval, b.quote, cardinality(b.coin_ids) as coins,
  lower(b.span) as "from", upper(b.span) as "to", b.requested_at, b.started_at, b.finished_at, b.planned_requests,
  coalesce(spent.requests, 0) as spent, coalesce(spent.stored, 0) as stored,
  b.left_requests, b.wait_until, b.finish_at, b.owner, b.heartbeat_at, b.message
from ops.backfill b
cross join lateral (
  select sum(requests)::bigint as requests, sum(stored)::bigint as stored from (
    select count(*) as requests, sum(f.stored) as stored from ops.fetch f where f.backfill_id = b.id
    union all
    select sum(p.requests), sum(p.stored) from ops.backfill_past p where p.backfill_id = b.id
  ) parts
) spent;--> statement-breakpoint
comment on column ops.tracked.queued_at is 'Since when a chunk of its newest end is in the queue; null when none is.';--> statement-breakpoint
comment on column ops.backfill.state is 'queued (waits for a service, or for wait_until), running, paused, done, stopped (early, with work left), interrupted, failed or cancelled.';--> statement-breakpoint
comment on column ops.backfill.started_at is 'When it began; null when it has not.';--> statement-breakpoint
comment on column ops.backfill.owner is 'Machine and process that work on it, or did last.';--> statement-breakpoint
comment on column ops.backfill.heartbeat_at is 'Last sign of life of that process; null when none has begun.';--> statement-breakpoint
comment on column ops.backfill.is_detached is 'For the service to work off; false: of a command that does it itself.';--> statement-breakpoint
comment on column ops.backfill.priority is 'Of those for the service the highest goes first.';--> statement-breakpoint
comment on column ops.backfill.coin_ids is 'For the service: the coins that were meant, in the order they are filled.';--> statement-breakpoint
comment on column ops.backfill.left_requests is 'What is still to be asked, as last counted.';--> statement-breakpoint
comment on column ops.backfill.wait_until is 'Before this there is nothing to spend on it.';--> statement-breakpoint
comment on column ops.backfill.finish_at is 'When it will be done by what is known of the quota; null when that cannot be said.';--> statement-breakpoint
comment on column ops.backfill.message is 'Why it waits, stopped or failed.';--> statement-breakpoint
comment on table ops.instance is 'Services that run, or ran lately.';--> statement-breakpoint
comment on column ops.instance.owner is 'Machine and process.';--> statement-breakpoint
comment on column ops.instance.roles is 'What it does: scheduler, worker, http.';--> statement-breakpoint
comment on column ops.instance.started_at is 'When it started.';--> statement-breakpoint
comment on column ops.instance.heartbeat_at is 'Its last sign of life.';--> statement-breakpoint
comment on view ops.backfill_progress is 'Backfills, what each has spent and brought, and what is left of it.';--> statement-breakpoint
comment on column ops.backfill_progress.id is 'Number of the backfill.';--> statement-breakpoint
comment on column ops.backfill_progress.state is 'As in ops.backfill.';--> statement-breakpoint
comment on column ops.backfill_progress.is_detached is 'For the service to work off.';--> statement-breakpoint
comment on column ops.backfill_progress.priority is 'The highest goes first.';--> statement-breakpoint
comment on column ops.backfill_progress.interval is 'Width of the candles.';--> statement-breakpoint
comment on column ops.backfill_progress.quote is 'Currency of the prices.';--> statement-breakpoint
comment on column ops.backfill_progress.coins is 'How many coins; null for one of a command.';--> statement-breakpoint
comment on column ops.backfill_progress."from" is 'Beginning of the stretch of time asked for.';--> statement-breakpoint
comment on column ops.backfill_progress."to" is 'Its end, exclusive.';--> statement-breakpoint
comment on column ops.backfill_progress.requested_at is 'When it was asked for.';--> statement-breakpoint
comment on column ops.backfill_progress.started_at is 'When it began; null when it has not.';--> statement-breakpoint
comment on column ops.backfill_progress.finished_at is 'When it ended; null when it has not.';--> statement-breakpoint
comment on column ops.backfill_progress.planned_requests is 'What it was to cost.';--> statement-breakpoint
comment on column ops.backfill_progress.spent is 'Requests made for it.';--> statement-breakpoint
comment on column ops.backfill_progress.stored is 'Candles that were new or changed.';--> statement-breakpoint
comment on column ops.backfill_progress.left_requests is 'What is still to be asked, as last counted.';--> statement-breakpoint
comment on column ops.backfill_progress.wait_until is 'Before this there is nothing to spend on it.';--> statement-breakpoint
comment on column ops.backfill_progress.finish_at is 'When it will be done by what is known of the quota; null when that cannot be said.';--> statement-breakpoint
comment on column ops.backfill_progress.owner is 'Machine and process that work on it, or did last.';--> statement-breakpoint
comment on column ops.backfill_progress.heartbeat_at is 'Last sign of life of that process.';--> statement-breakpoint
comment on column ops.backfill_progress.message is 'Why it waits, stopped or failed.';
