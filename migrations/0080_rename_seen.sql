-- When a rename was told, which is not when it happened: the answer about renames says what it stands on.
ALTER TABLE "market"."coin_rename" ADD COLUMN "seen_at" timestamp with time zone;--> statement-breakpoint
update market.coin_rename set seen_at = renamed_at where source = 'coins';--> statement-breakpoint
comment on column market.coin_rename.seen_at is 'As of when it was told; null: nobody wrote that down.';
