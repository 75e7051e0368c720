-- What the changelog says of a rename beside the two ids, so that it can be answered as upstream answered it.
ALTER TABLE "market"."coin_rename" ADD COLUMN "currency_id" text;--> statement-breakpoint
comment on column market.coin_rename.currency_id is 'The coin that it is about, as the changelog says; null: it did not say, and it is new_id.';
