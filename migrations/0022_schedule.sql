-- One row per run of a schedule. Of each schedule the row with the highest number is where it stands: which tick was claimed last.
CREATE TABLE "ops"."schedule_run" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	"schedule" text NOT NULL,
	"tick" timestamp with time zone NOT NULL,
	"state" text NOT NULL,
	"attempts" smallint NOT NULL,
	"failures" integer NOT NULL,
	"owner" text NOT NULL,
	"begun_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"lease_until" timestamp with time zone,
	"wait_until" timestamp with time zone,
	"message" text,
	CONSTRAINT "schedule_run_of_tick" UNIQUE("schedule","tick"),
	CONSTRAINT "schedule_run_state" CHECK (state in ('running', 'waiting', 'held', 'done', 'failed', 'overtaken'))
);
--> statement-breakpoint
CREATE INDEX "schedule_run_latest" ON "ops"."schedule_run" USING btree ("schedule","id");
--> statement-breakpoint
CREATE INDEX "schedule_run_failures" ON "ops"."schedule_run" USING btree ("schedule","id") WHERE state = 'failed';
--> statement-breakpoint
comment on table ops.schedule_run is 'What the schedules ran: one row per schedule and tick, however many processes tick. Kept for a month.';
--> statement-breakpoint
comment on column ops.schedule_run.tick is 'The instant it was due.';
--> statement-breakpoint
comment on column ops.schedule_run.state is 'running; waiting (it failed, and is tried again at wait_until); held (by the quota, until wait_until); done; failed (no attempt is left); overtaken (the next tick came before it could be done).';
--> statement-breakpoint
comment on column ops.schedule_run.attempts is 'Times it was begun; those held by the quota do not count.';
--> statement-breakpoint
comment on column ops.schedule_run.failures is 'Runs of this schedule that failed, one after the other, up to here; the more, the longer until the next.';
--> statement-breakpoint
comment on column ops.schedule_run.lease_until is 'Until when its owner is believed to be at it without another sign of life.';
--> statement-breakpoint
comment on column ops.schedule_run.message is 'Why it failed last, or what it waits for.';
--> statement-breakpoint
comment on column ops.schedule_run.id is 'In order of claiming.';
--> statement-breakpoint
comment on column ops.schedule_run.schedule is 'Name of the schedule, as chandler schedule has it.';
--> statement-breakpoint
comment on column ops.schedule_run.owner is 'Who runs or ran it: host:pid.';
--> statement-breakpoint
comment on column ops.schedule_run.begun_at is 'When it was begun last.';
--> statement-breakpoint
comment on column ops.schedule_run.ended_at is 'When it ended last, however; null while it runs.';
--> statement-breakpoint
comment on column ops.schedule_run.wait_until is 'Of waiting and held: when it goes on.';
