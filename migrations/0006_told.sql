-- What each answer said by itself, and what it left in doubt: so that which answer has the last word about a slot does not
-- depend on the order in which they are stored.
ALTER TABLE "ops"."fetch" ADD COLUMN "told" "tstzmultirange";--> statement-breakpoint
ALTER TABLE "ops"."fetch" ADD COLUMN "doubted" "tstzmultirange";--> statement-breakpoint
CREATE INDEX "fetch_doubts" ON "ops"."fetch" USING btree ("series_id") WHERE doubted is not null;--> statement-breakpoint
comment on column ops.fetch.told is 'Slots the answer has a candle for, and slots with candles on both sides of them; null when it is no stored answer about candles.';--> statement-breakpoint
comment on column ops.fetch.doubted is 'Slots missing at the edges of the answer: empty only when another answer long enough before or after doubts them, too.';--> statement-breakpoint
comment on table market.revision is 'The old values of every candle that upstream changed or removed after it was final; all null where it added one to a slot known to be empty.';--> statement-breakpoint
comment on column market.revision.seen_at is 'As-of instant of the answer that changed it.';
