-- Who may ask this service, and what they have asked: keys that the operator hands out, and counts by key or by address.
CREATE TABLE "ops"."api_key" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."api_key_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"prefix" text NOT NULL,
	"hash" "bytea" NOT NULL,
	"name" text,
	"plan" text NOT NULL,
	"requests_per_month" bigint,
	"requests_per_second" double precision,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"replaced_by" integer,
	CONSTRAINT "api_key_prefix" UNIQUE("prefix"),
	CONSTRAINT "api_key_plan" CHECK (plan in ('free', 'starter', 'pro', 'business', 'ultimate', 'enterprise', 'unlimited')),
	CONSTRAINT "api_key_hash" CHECK (octet_length(hash) = 32)
);
--> statement-breakpoint
CREATE TABLE "ops"."api_usage" (
	"subject" text PRIMARY KEY NOT NULL,
	"month_start" timestamp with time zone NOT NULL,
	"month_spent" bigint NOT NULL,
	"day_start" timestamp with time zone NOT NULL,
	"day_spent" bigint NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "ops"."api_key" ADD CONSTRAINT "api_key_replaced_by_api_key_id_fk" FOREIGN KEY ("replaced_by") REFERENCES "ops"."api_key"("id") ON DELETE no action ON UPDATE no action;
--> statement-breakpoint
comment on table ops.api_key is 'Keys of those who may ask this service (chandler keys). The key itself is nowhere: only its SHA-256.';
--> statement-breakpoint
comment on column ops.api_key.id is 'Names the key in ops.api_usage.';
--> statement-breakpoint
comment on column ops.api_key.prefix is 'The part of the key by which it is recognised; no secret.';
--> statement-breakpoint
comment on column ops.api_key.hash is 'SHA-256 of the whole key, which has 190 random bits.';
--> statement-breakpoint
comment on column ops.api_key.name is 'Who has it; for the operator.';
--> statement-breakpoint
comment on column ops.api_key.plan is 'A plan of the API document, or unlimited.';
--> statement-breakpoint
comment on column ops.api_key.requests_per_month is 'Instead of the plan''s number; null: as the plan says.';
--> statement-breakpoint
comment on column ops.api_key.requests_per_second is 'Instead of the plan''s number; null: as the plan says.';
--> statement-breakpoint
comment on column ops.api_key.created_at is 'When it was made.';
--> statement-breakpoint
comment on column ops.api_key.expires_at is 'From then on it is refused; null: never.';
--> statement-breakpoint
comment on column ops.api_key.revoked_at is 'When it was taken back; null: it was not.';
--> statement-breakpoint
comment on column ops.api_key.replaced_by is 'The key that took its place (chandler keys rotate).';
--> statement-breakpoint
comment on table ops.api_usage is 'Requests answered by this service, by key (key:3) or by address without one (address:192.0.2.7). Includes what running processes hold in advance.';
--> statement-breakpoint
comment on column ops.api_usage.subject is 'key:<id>, or address:<IPv4, or the first 64 bits of IPv6>.';
--> statement-breakpoint
comment on column ops.api_usage.month_start is 'Begin of the calendar month (UTC) that month_spent counts.';
--> statement-breakpoint
comment on column ops.api_usage.day_start is 'Begin of the day (UTC) that day_spent counts.';
--> statement-breakpoint
comment on column ops.api_usage.month_spent is 'Requests of that month.';
--> statement-breakpoint
comment on column ops.api_usage.day_spent is 'Requests of that day.';
--> statement-breakpoint
comment on column ops.api_usage.updated_at is 'When a process last took some in advance.';
--> statement-breakpoint
-- Who may serve must be able to count.
create or replace function ops.admit_server() returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = 'chandler_server') then
    begin
      create role chandler_server nologin;
    exception
      when insufficient_privilege then
        raise notice 'role chandler_server was not created (this user may not create roles): create it as an administrator and run chandler migrate again';
        return;
      -- Another database of this server was migrated at the same moment.
      when duplicate_object or unique_violation then null;
    end;
  end if;
  grant usage on schema market, ops to chandler_server;
  grant select on all tables in schema market to chandler_server;
  alter default privileges in schema market grant select on tables to chandler_server;
  grant select on ops.version, ops.migration to chandler_server;
  -- Who serves counts what callers ask, and does nothing else but read.
  grant select on ops.api_key to chandler_server;
  grant select, insert, update, delete on ops.api_usage to chandler_server;
  -- So that who migrated may also step down to it.
  begin
    execute format('grant chandler_server to %I', current_user);
  exception
    when others then
      raise notice 'role chandler_server was not granted to %: %', current_user, sqlerrm;
  end;
end
$$;
