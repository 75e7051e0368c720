-- A key that upstream refuses is not asked about at every start: each question is a request or two.
ALTER TABLE "ops"."account" ADD COLUMN "refused_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "ops"."account" ADD COLUMN "refusals" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."account" ADD COLUMN "refused_as" text;--> statement-breakpoint
ALTER TABLE "ops"."account" ADD COLUMN "refusal" text;--> statement-breakpoint
ALTER TABLE "ops"."account" ADD CONSTRAINT "account_refused_as" CHECK (refused_as in ('auto', 'bearer', 'bare'));--> statement-breakpoint
comment on column ops.account.refused_at is 'When upstream last refused the key, or was last asked whether it still does; null: it does not.';--> statement-breakpoint
comment on column ops.account.refusals is 'How often in a row it has refused the key: the more often, the later it is asked again.';--> statement-breakpoint
comment on column ops.account.refused_as is 'How the key was sent then: CHANDLER_AUTH_SCHEME.';--> statement-breakpoint
comment on column ops.account.refusal is 'What was said of it.';
