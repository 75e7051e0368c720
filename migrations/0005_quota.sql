-- The ledger: one row per account holds all windows, so that one statement takes from all of them or from none.
-- The fill factor leaves room for the row's next versions on its page: updates touch no index, and pruning needs no vacuum.
CREATE TABLE "ops"."quota" (
	"account_id" text PRIMARY KEY NOT NULL,
	"next_free" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"day_start" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"day_spent" bigint DEFAULT 0 NOT NULL,
	"month_start" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"month_spent" bigint DEFAULT 0 NOT NULL,
	"month_limit" bigint,
	"month_limit_known" boolean DEFAULT false NOT NULL,
	"pace_factor" double precision DEFAULT 1 NOT NULL,
	"limited_at" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"limited_until" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"limited_streak" integer DEFAULT 0 NOT NULL,
	"limited_message" text DEFAULT '' NOT NULL,
	"spent_until" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"spent_message" text DEFAULT '' NOT NULL,
	"down_at" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"down_until" timestamp with time zone DEFAULT 'epoch' NOT NULL,
	"down_streak" integer DEFAULT 0 NOT NULL,
	"down_message" text DEFAULT '' NOT NULL,
	"probe" text,
	"probe_until" timestamp with time zone,
	CONSTRAINT "quota_spent_not_negative" CHECK (day_spent >= 0 and month_spent >= 0),
	CONSTRAINT "quota_pace_factor" CHECK (pace_factor >= 1 and pace_factor <= 32),
	CONSTRAINT "quota_probe" CHECK (probe in ('unavailable', 'spent'))
) WITH (fillfactor = 10);
--> statement-breakpoint
CREATE TABLE "ops"."quota_spent" (
	"account_id" text NOT NULL,
	"month_start" timestamp with time zone NOT NULL,
	"class" text NOT NULL,
	"name" text NOT NULL,
	"month_spent" bigint NOT NULL,
	"day_start" timestamp with time zone NOT NULL,
	"day_spent" bigint NOT NULL,
	PRIMARY KEY ("account_id", "month_start", "class", "name"),
	CONSTRAINT "quota_spent_class" CHECK (class in ('scheduled', 'backfill'))
) WITH (fillfactor = 20);
--> statement-breakpoint
COMMENT ON TABLE "ops"."quota" IS 'What each account may still ask of the upstream: the windows, the pace, and what everybody waits for. Counted before sending, never given back.';
--> statement-breakpoint
COMMENT ON TABLE "ops"."quota_spent" IS 'Who spent how many requests, per month and on the last day that had any.';
--> statement-breakpoint
COMMENT ON COLUMN "ops"."quota"."next_free" IS 'The earliest instant the next request may be sent.';
--> statement-breakpoint
COMMENT ON COLUMN "ops"."quota"."month_limit" IS 'What the upstream itself says this month allows, null = no limit; only when month_limit_known.';
--> statement-breakpoint
COMMENT ON COLUMN "ops"."quota"."pace_factor" IS 'How many times slower than the plan after 429s, at limited_until; from then on it halves its distance to 1 every minute.';
--> statement-breakpoint
COMMENT ON COLUMN "ops"."quota"."probe" IS 'Why the next request goes alone, and everybody else waits (until probe_until) for what comes of it.';
