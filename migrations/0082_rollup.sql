-- Coarser candles made ahead of time: a year of days out of 5m candles is 105,408 rows, which nobody reads in 15 milliseconds.
CREATE TABLE "market"."rollup" (
	"series_id" integer NOT NULL,
	"interval" "market"."candle_interval" NOT NULL,
	"open_time" timestamp with time zone NOT NULL,
	"open" double precision,
	"high" double precision,
	"low" double precision,
	"close" double precision,
	"volume" double precision,
	"market_cap" double precision,
	CONSTRAINT "rollup_series_id_interval_open_time_pk" PRIMARY KEY("series_id","interval","open_time")
);
--> statement-breakpoint
-- Beside the series, not in it: that they were made changes no answer, and a change of the series would say that one did.
CREATE TABLE "market"."rolled" (
	"series_id" integer PRIMARY KEY NOT NULL,
	"spans" "tstzmultirange" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "market"."rollup" ADD CONSTRAINT "rollup_series_id_series_id_fk" FOREIGN KEY ("series_id") REFERENCES "market"."series"("id") ON DELETE cascade ON UPDATE no action;
--> statement-breakpoint
ALTER TABLE "market"."rolled" ADD CONSTRAINT "rolled_series_id_series_id_fk" FOREIGN KEY ("series_id") REFERENCES "market"."series"("id") ON DELETE cascade ON UPDATE no action;
--> statement-breakpoint
comment on table market.rollup is 'Coarser candles, each made of all final candles of one series in its slot: 6h, 12h and 24h of 5m and 15m, 12h and 24h of 30m, 24h of 1h, where no coarser series says the same. Made by the service every hour and at the end of chandler backfill, so what was covered last may not have its own yet; removed in the transaction that changes a candle they are made of. market.rolled says where they are complete.';
--> statement-breakpoint
comment on column market.rollup.series_id is 'The series of the finer candles: market.series.id.';
--> statement-breakpoint
comment on column market.rollup.interval is 'Width of this candle, not of those it is made of.';
--> statement-breakpoint
comment on column market.rollup.open_time is 'UTC, on the grid of its interval. A slot in which there are no finer candles has no row.';
--> statement-breakpoint
comment on column market.rollup.open is 'Of the first finer candle.';
--> statement-breakpoint
comment on column market.rollup.high is 'The highest; null where one of the finer candles has none.';
--> statement-breakpoint
comment on column market.rollup.low is 'The lowest; null where one of the finer candles has none.';
--> statement-breakpoint
comment on column market.rollup.close is 'Of the last finer candle.';
--> statement-breakpoint
comment on column market.rollup.volume is 'The sum; null where one of the finer candles has none.';
--> statement-breakpoint
comment on column market.rollup.market_cap is 'Of the last finer candle.';
--> statement-breakpoint
comment on table market.rolled is 'Of which spans of a series market.rollup has all candles that can be made. Whoever changes candles by hand deletes the row of their series: then they are made anew.';
--> statement-breakpoint
comment on column market.rolled.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column market.rolled.spans is 'A slot that lies in it as a whole, and in market.series.covered, has its row in market.rollup, or no candle.';
