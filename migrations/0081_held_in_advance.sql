-- What was taken in advance is told apart from what was used.
ALTER TABLE "ops"."api_usage" ADD COLUMN "month_held" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
comment on column ops.api_usage.month_spent is 'Requests of that month, with those of month_held.';--> statement-breakpoint
comment on column ops.api_usage.month_held is 'Of month_spent: taken in advance by a process, and not used as far as it has told (every five seconds). Processes that died took theirs with them until the month ends.';
