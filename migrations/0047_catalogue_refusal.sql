-- What one upstream does not give to a plan, another may.
ALTER TABLE "ops"."catalogue_refusal" ADD COLUMN "account_id" text NOT NULL;--> statement-breakpoint
ALTER TABLE "ops"."catalogue_refusal" DROP CONSTRAINT "catalogue_refusal_account_plan_kind_pk";--> statement-breakpoint
ALTER TABLE "ops"."catalogue_refusal" ADD CONSTRAINT "catalogue_refusal_account_id_account_plan_kind_pk" PRIMARY KEY("account_id","account_plan","kind");--> statement-breakpoint
CREATE INDEX "catalogue_item_by_age" ON "ops"."catalogue_item" USING btree ("kind","asked_at");--> statement-breakpoint
comment on column ops.catalogue_refusal.account_id is 'ops.account.id: to whom it was refused.';--> statement-breakpoint
comment on column ops.catalogue_refusal.reason is 'wall: not in the plan. forbidden: not for this key. unknown route: upstream has no such thing.';--> statement-breakpoint
comment on column ops.catalogue_item.outcome is 'How the last request ended: stored, cut (only the beginning of a list was given), doubted, or as in ops.fetch.';
