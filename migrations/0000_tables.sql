CREATE SCHEMA IF NOT EXISTS "market";
--> statement-breakpoint
CREATE SCHEMA IF NOT EXISTS "ops";
--> statement-breakpoint
CREATE TYPE "market"."candle_interval" AS ENUM('5m', '15m', '30m', '1h', '6h', '12h', '24h');--> statement-breakpoint
CREATE TABLE "ops"."account" (
	"id" text PRIMARY KEY NOT NULL,
	"origin" text NOT NULL,
	"plan" text NOT NULL,
	"auth_scheme" text,
	"account_path" text,
	"checked_at" timestamp with time zone,
	"month_limit" bigint,
	"is_current" boolean DEFAULT false NOT NULL,
	CONSTRAINT "account_auth_scheme" CHECK (auth_scheme in ('bearer', 'bare')),
	CONSTRAINT "account_path" CHECK (account_path in ('/users/me', '/key/info'))
);
--> statement-breakpoint
CREATE TABLE "ops"."backfill" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."backfill_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"requested_at" timestamp with time zone NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"finished_at" timestamp with time zone,
	"state" text NOT NULL,
	"spec" jsonb NOT NULL,
	"span" "tstzrange" NOT NULL,
	"interval" "market"."candle_interval" NOT NULL,
	"quote" text NOT NULL,
	"planned_requests" integer NOT NULL,
	"owner" text NOT NULL,
	"heartbeat_at" timestamp with time zone NOT NULL,
	CONSTRAINT "backfill_state" CHECK (state in ('running', 'done', 'stopped', 'interrupted', 'failed'))
);
--> statement-breakpoint
CREATE TABLE "ops"."backfill_series" (
	"backfill_id" integer NOT NULL,
	"series_id" integer NOT NULL,
	CONSTRAINT "backfill_series_backfill_id_series_id_pk" PRIMARY KEY("backfill_id","series_id")
);
--> statement-breakpoint
CREATE TABLE "market"."coin" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"symbol" text NOT NULL,
	"rank" integer NOT NULL,
	"type" text,
	"is_new" boolean NOT NULL,
	"is_active" boolean NOT NULL,
	"first_data_at" timestamp with time zone,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"rank_seen_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "market"."coin_change" (
	"coin_id" text NOT NULL,
	"seen_at" timestamp with time zone NOT NULL,
	"field" text NOT NULL,
	"old_value" text NOT NULL,
	"new_value" text NOT NULL,
	CONSTRAINT "coin_change_coin_id_seen_at_field_pk" PRIMARY KEY("coin_id","seen_at","field"),
	CONSTRAINT "coin_change_field" CHECK (field in ('name', 'symbol', 'is_active'))
);
--> statement-breakpoint
CREATE TABLE "ops"."fetch" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."fetch_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"sent_at" timestamp with time zone NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"account_id" text NOT NULL,
	"endpoint" text NOT NULL,
	"series_id" integer,
	"span" "tstzrange",
	"backfill_id" integer,
	"attempt" smallint NOT NULL,
	"status" smallint,
	"outcome" text NOT NULL,
	"duration_ms" integer NOT NULL,
	"rows" integer NOT NULL,
	"stored" integer NOT NULL,
	"revised" integer NOT NULL,
	"set_aside" integer NOT NULL,
	"bytes" integer NOT NULL,
	"body_sha256" "bytea",
	"message" text
);
--> statement-breakpoint
CREATE TABLE "ops"."open_wall" (
	"account_plan" text NOT NULL,
	"interval" "market"."candle_interval" NOT NULL,
	"proven_at" timestamp with time zone NOT NULL,
	CONSTRAINT "open_wall_account_plan_interval_pk" PRIMARY KEY("account_plan","interval")
);
--> statement-breakpoint
CREATE TABLE "market"."pending" (
	"series_id" integer NOT NULL,
	"span" "tstzrange" NOT NULL,
	"reason" text NOT NULL,
	"answers" integer DEFAULT 1 NOT NULL,
	"asked_at" timestamp with time zone NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	CONSTRAINT "pending_series_id_span_pk" PRIMARY KEY("series_id","span"),
	CONSTRAINT "pending_reason" CHECK (reason in ('provisional', 'unconfirmed', 'malformed')),
	CONSTRAINT "pending_span" CHECK (not isempty(span))
);
--> statement-breakpoint
CREATE TABLE "market"."quarantine" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "market"."quarantine_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"series_id" integer NOT NULL,
	"open_time" timestamp with time zone,
	"reason" text NOT NULL,
	"row" jsonb NOT NULL,
	"fetch_id" bigint,
	"seen_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "market"."refusal" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "market"."refusal_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"account_plan" text NOT NULL,
	"series_id" integer,
	"interval" "market"."candle_interval",
	"span" "tstzrange",
	"depth" interval,
	"reason" text NOT NULL,
	"message" text NOT NULL,
	"refused_at" timestamp with time zone NOT NULL,
	"fetch_id" bigint,
	CONSTRAINT "refusal_reason" CHECK (reason in ('plan wall', 'interval', 'unknown coin', 'forbidden', 'bad request')),
	CONSTRAINT "refusal_subject" CHECK (case when series_id is null then interval is not null and span is null else span is not null and depth is null end)
);
--> statement-breakpoint
CREATE TABLE "market"."revision" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "market"."revision_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"series_id" integer NOT NULL,
	"open_time" timestamp with time zone NOT NULL,
	"seen_at" timestamp with time zone NOT NULL,
	"fetch_id" bigint,
	"open" double precision,
	"high" double precision,
	"low" double precision,
	"close" double precision,
	"volume" double precision,
	"market_cap" double precision
);
--> statement-breakpoint
CREATE TABLE "market"."series" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "market"."series_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"coin_id" text NOT NULL,
	"quote" text NOT NULL,
	"interval" "market"."candle_interval" NOT NULL,
	"wanted" "tstzmultirange" DEFAULT '{}' NOT NULL,
	"covered" "tstzmultirange" DEFAULT '{}' NOT NULL,
	"covered_candles" bigint DEFAULT 0 NOT NULL,
	"priority" smallint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "series_of_coin" UNIQUE("coin_id","quote","interval"),
	CONSTRAINT "series_quote" CHECK (quote in ('usd', 'btc'))
);
--> statement-breakpoint
ALTER TABLE "ops"."backfill_series" ADD CONSTRAINT "backfill_series_backfill_id_backfill_id_fk" FOREIGN KEY ("backfill_id") REFERENCES "ops"."backfill"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "market"."coin_change" ADD CONSTRAINT "coin_change_coin_id_coin_id_fk" FOREIGN KEY ("coin_id") REFERENCES "market"."coin"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "market"."pending" ADD CONSTRAINT "pending_series_id_series_id_fk" FOREIGN KEY ("series_id") REFERENCES "market"."series"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "market"."refusal" ADD CONSTRAINT "refusal_series_id_series_id_fk" FOREIGN KEY ("series_id") REFERENCES "market"."series"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "market"."series" ADD CONSTRAINT "series_coin_id_coin_id_fk" FOREIGN KEY ("coin_id") REFERENCES "market"."coin"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "coin_by_rank" ON "market"."coin" USING btree ("rank") WHERE is_active and rank > 0;--> statement-breakpoint
CREATE INDEX "coin_by_symbol" ON "market"."coin" USING btree ("symbol");--> statement-breakpoint
CREATE INDEX "fetch_of_series" ON "ops"."fetch" USING btree ("series_id","as_of") WHERE series_id is not null;--> statement-breakpoint
CREATE INDEX "fetch_of_backfill" ON "ops"."fetch" USING btree ("backfill_id") WHERE backfill_id is not null;--> statement-breakpoint
CREATE INDEX "quarantine_of_series" ON "market"."quarantine" USING btree ("series_id","open_time");--> statement-breakpoint
CREATE UNIQUE INDEX "refusal_wall" ON "market"."refusal" USING btree ("account_plan","interval") WHERE series_id is null;--> statement-breakpoint
CREATE UNIQUE INDEX "refusal_of_series" ON "market"."refusal" USING btree ("series_id","account_plan","span") WHERE series_id is not null;--> statement-breakpoint
CREATE INDEX "revision_of_candle" ON "market"."revision" USING btree ("series_id","open_time");