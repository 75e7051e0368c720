-- What the operator is told of (CHANDLER_WEBHOOK_URL): one row for each notice, whichever of the services noticed; and since when something holds.
CREATE TABLE "ops"."notice" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."notice_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event" text NOT NULL,
	"topic" text NOT NULL,
	"text" text NOT NULL,
	"raised_at" timestamp with time zone NOT NULL,
	"upto" bigint,
	"attempts" smallint DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone,
	"sent_at" timestamp with time zone,
	"owner" text,
	"message" text
);
--> statement-breakpoint
CREATE INDEX "notice_of_topic" ON "ops"."notice" USING btree ("topic","raised_at");
--> statement-breakpoint
CREATE INDEX "notice_to_send" ON "ops"."notice" USING btree ("id") WHERE due_at is not null;
--> statement-breakpoint
CREATE TABLE "ops"."watch" (
	"name" text PRIMARY KEY NOT NULL,
	"since" timestamp with time zone,
	"seen_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
comment on table ops.notice is 'What the operator is told of through CHANDLER_WEBHOOK_URL. Kept for a year.';
--> statement-breakpoint
comment on column ops.notice.id is 'In the order in which they are sent.';
--> statement-breakpoint
comment on column ops.notice.event is 'quota, stuck, wall, revisions or quarantine.';
--> statement-breakpoint
comment on column ops.notice.topic is 'What exactly it is about: told once in a while, however many services notice.';
--> statement-breakpoint
comment on column ops.notice.text is 'What is sent.';
--> statement-breakpoint
comment on column ops.notice.raised_at is 'When it was noticed.';
--> statement-breakpoint
comment on column ops.notice.upto is 'Of quarantine: the last row it tells of.';
--> statement-breakpoint
comment on column ops.notice.attempts is 'Times it was sent, or tried to.';
--> statement-breakpoint
comment on column ops.notice.due_at is 'When it is sent, or tried again; null when it was sent or given up.';
--> statement-breakpoint
comment on column ops.notice.sent_at is 'When it was taken; null when it was not.';
--> statement-breakpoint
comment on column ops.notice.owner is 'Machine and process that sent it last, or tried to.';
--> statement-breakpoint
comment on column ops.notice.message is 'Why the last attempt failed.';
--> statement-breakpoint
comment on table ops.watch is 'What the services see for some time without a break, so that one that starts anew need not begin to wait again.';
--> statement-breakpoint
comment on column ops.watch.name is 'What is seen.';
--> statement-breakpoint
comment on column ops.watch.since is 'Since when; null: not now.';
--> statement-breakpoint
comment on column ops.watch.seen_at is 'When a service looked last.';
