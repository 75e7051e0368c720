-- The market as it is now, and how it was at each snapshot: one answer of /tickers, /global or /exchanges is one snapshot.
-- Sub-partitions of ticker_history (market.ticker_history_2024m01) are made ahead of time: src/store/partition.ts.
CREATE TABLE "market"."ticker" (
	"coin_id" text PRIMARY KEY NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"rank" integer NOT NULL,
	"price" double precision,
	"volume_24h" double precision,
	"volume_24h_change_24h" double precision,
	"market_cap" double precision,
	"market_cap_change_24h" double precision,
	"percent_change_15m" double precision,
	"percent_change_30m" double precision,
	"percent_change_1h" double precision,
	"percent_change_6h" double precision,
	"percent_change_12h" double precision,
	"percent_change_24h" double precision,
	"percent_change_7d" double precision,
	"percent_change_30d" double precision,
	"percent_change_1y" double precision,
	"ath_price" double precision,
	"ath_at" timestamp with time zone,
	"percent_from_price_ath" double precision,
	"circulating_supply" double precision,
	"total_supply" double precision,
	"max_supply" double precision,
	"beta_value" double precision,
	"seen_at" timestamp with time zone NOT NULL
-- Every row is rewritten by every snapshot: room on the page keeps that out of the index.
) WITH (fillfactor = 45);--> statement-breakpoint
-- Every list of coins rewrites every coin.
alter table market.coin set (fillfactor = 50);--> statement-breakpoint
create table market.ticker_history (
  at timestamptz not null,
  updated_at timestamptz not null,
  price double precision,
  volume_24h double precision,
  market_cap double precision,
  circulating_supply double precision,
  rank integer not null,
  coin_id text not null,
  primary key (coin_id, at)
) partition by range (at);--> statement-breakpoint
-- Written in the order of time: a few bytes for each stretch of pages find all coins of one moment.
create index ticker_history_by_time on market.ticker_history using brin (at) with (autosummarize = on);--> statement-breakpoint
CREATE TABLE "market"."global_history" (
	"at" timestamp with time zone PRIMARY KEY NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"market_cap" double precision,
	"volume_24h" double precision,
	"bitcoin_dominance" double precision,
	"coins" integer,
	"market_cap_change_24h" double precision,
	"volume_24h_change_24h" double precision,
	"market_cap_ath" double precision,
	"market_cap_ath_at" timestamp with time zone,
	"volume_24h_ath" double precision,
	"volume_24h_ath_at" timestamp with time zone,
	"volume_24h_percent_from_ath" double precision,
	"volume_24h_percent_to_ath" double precision
);--> statement-breakpoint
CREATE TABLE "market"."exchange" (
	"id" text PRIMARY KEY NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"name" text NOT NULL,
	"types" text[] NOT NULL,
	"is_active" boolean NOT NULL,
	"website_status" boolean NOT NULL,
	"api_status" boolean NOT NULL,
	"markets_data_fetched" boolean NOT NULL,
	"description" text,
	"message" text,
	"links" jsonb NOT NULL,
	"fiats" jsonb NOT NULL,
	"adjusted_rank" integer,
	"reported_rank" integer,
	"currencies" integer,
	"markets" integer,
	"reported_volume_24h" double precision,
	"adjusted_volume_24h" double precision,
	"reported_volume_7d" double precision,
	"adjusted_volume_7d" double precision,
	"reported_volume_30d" double precision,
	"adjusted_volume_30d" double precision,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL
);--> statement-breakpoint
CREATE TABLE "market"."exchange_history" (
	"exchange_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"adjusted_rank" integer,
	"reported_rank" integer,
	"currencies" integer,
	"markets" integer,
	"reported_volume_24h" double precision,
	"adjusted_volume_24h" double precision,
	CONSTRAINT "exchange_history_exchange_id_at_pk" PRIMARY KEY("exchange_id","at")
);--> statement-breakpoint
-- Rows of snapshots are set aside beside those of candles: once for each record and reason, however often they come.
ALTER TABLE "market"."quarantine" ALTER COLUMN "series_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "market"."quarantine" ADD COLUMN "endpoint" text;--> statement-breakpoint
ALTER TABLE "market"."quarantine" ADD COLUMN "record_id" text;--> statement-breakpoint
ALTER TABLE "market"."quarantine" ADD COLUMN "times" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "market"."quarantine" ADD CONSTRAINT "quarantine_subject" CHECK ((series_id is null) = (endpoint is not null and record_id is not null));--> statement-breakpoint
CREATE UNIQUE INDEX "quarantine_of_record" ON "market"."quarantine" USING btree ("endpoint","record_id","reason") WHERE endpoint is not null;--> statement-breakpoint
-- Old requests are forgotten, but for those that something refers to.
CREATE INDEX "quarantine_of_fetch" ON "market"."quarantine" USING btree ("fetch_id");--> statement-breakpoint
CREATE INDEX "revision_of_fetch" ON "market"."revision" USING btree ("fetch_id");--> statement-breakpoint
CREATE INDEX "fetch_of_endpoint" ON "ops"."fetch" USING btree ("endpoint","account_id","sent_at") WHERE series_id is null;--> statement-breakpoint
-- What a backfill did, as far as the records of its requests have been removed for their age.
CREATE TABLE "ops"."backfill_past" (
	"backfill_id" integer NOT NULL,
	"outcome" text NOT NULL,
	"requests" bigint NOT NULL,
	"rows" bigint NOT NULL,
	"stored" bigint NOT NULL,
	"revised" bigint NOT NULL,
	"set_aside" bigint NOT NULL,
	CONSTRAINT "backfill_past_backfill_id_outcome_pk" PRIMARY KEY("backfill_id","outcome")
);--> statement-breakpoint
comment on table ops.backfill_past is 'Sums of the requests of a backfill whose rows in ops.fetch were removed for their age.';--> statement-breakpoint
comment on column ops.backfill_past.backfill_id is 'ops.backfill.id.';--> statement-breakpoint
comment on column ops.backfill_past.outcome is 'How the requests ended, as in ops.fetch.';--> statement-breakpoint
comment on column ops.backfill_past.requests is 'How many there were.';--> statement-breakpoint
comment on column ops.backfill_past.rows is 'Rows in their answers.';--> statement-breakpoint
comment on column ops.backfill_past.stored is 'Rows that were new or changed.';--> statement-breakpoint
comment on column ops.backfill_past.revised is 'Final candles that they changed or removed.';--> statement-breakpoint
comment on column ops.backfill_past.set_aside is 'Rows that could not be true.';--> statement-breakpoint
comment on table market.ticker is 'The newest ticker of every coin, prices in US dollars. A coin that upstream no longer lists keeps its last one: see seen_at.';--> statement-breakpoint
comment on column market.ticker.coin_id is 'market.coin.id: btc-bitcoin.';--> statement-breakpoint
comment on column market.ticker.updated_at is 'When upstream last updated it, as it says itself; of two tickers the one updated later is the newer.';--> statement-breakpoint
comment on column market.ticker.at is 'Instant of the snapshot the values are of; the same row is in market.ticker_history under it.';--> statement-breakpoint
comment on column market.ticker.rank is 'Rank by market capitalisation, 1 is first; 0 when it has none.';--> statement-breakpoint
comment on column market.ticker.price is 'Price in US dollars. Null where upstream says null.';--> statement-breakpoint
comment on column market.ticker.volume_24h is 'Volume of the last 24 hours in US dollars.';--> statement-breakpoint
comment on column market.ticker.volume_24h_change_24h is 'Change of volume_24h in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.ticker.market_cap is 'Market capitalisation in US dollars.';--> statement-breakpoint
comment on column market.ticker.market_cap_change_24h is 'Change of market_cap in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_15m is 'Change of the price in the last 15 minutes, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_30m is 'Change of the price in the last 30 minutes, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_1h is 'Change of the price in the last hour, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_6h is 'Change of the price in the last 6 hours, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_12h is 'Change of the price in the last 12 hours, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_24h is 'Change of the price in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_7d is 'Change of the price in the last 7 days, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_30d is 'Change of the price in the last 30 days, in percent.';--> statement-breakpoint
comment on column market.ticker.percent_change_1y is 'Change of the price in the last year, in percent.';--> statement-breakpoint
comment on column market.ticker.ath_price is 'Highest price ever, in US dollars.';--> statement-breakpoint
comment on column market.ticker.ath_at is 'When the price was highest.';--> statement-breakpoint
comment on column market.ticker.percent_from_price_ath is 'How far the price is below its highest, in percent.';--> statement-breakpoint
comment on column market.ticker.circulating_supply is 'Coins in circulation; null where the plan does not show it.';--> statement-breakpoint
comment on column market.ticker.total_supply is 'Coins that exist.';--> statement-breakpoint
comment on column market.ticker.max_supply is 'Most coins there can be; 0 when there is no bound.';--> statement-breakpoint
comment on column market.ticker.beta_value is 'Beta of the coin, as upstream gives it.';--> statement-breakpoint
comment on column market.ticker.seen_at is 'Instant of the newest snapshot that lists the coin at all.';--> statement-breakpoint
comment on table market.ticker_history is 'The tickers of every snapshot, prices in US dollars, partitioned by month. Removed when they are old (CHANDLER_KEEP_TICKERS).';--> statement-breakpoint
comment on column market.ticker_history.at is 'Instant of the snapshot: no fact in it is newer.';--> statement-breakpoint
comment on column market.ticker_history.updated_at is 'When upstream last updated the ticker, as it says itself; the instant of the snapshot where it says nothing.';--> statement-breakpoint
comment on column market.ticker_history.price is 'Price in US dollars. Null where upstream says null.';--> statement-breakpoint
comment on column market.ticker_history.volume_24h is 'Volume of the last 24 hours in US dollars.';--> statement-breakpoint
comment on column market.ticker_history.market_cap is 'Market capitalisation in US dollars.';--> statement-breakpoint
comment on column market.ticker_history.circulating_supply is 'Coins in circulation; null where the plan does not show it.';--> statement-breakpoint
comment on column market.ticker_history.rank is 'Rank by market capitalisation, 1 is first; 0 when it has none.';--> statement-breakpoint
comment on column market.ticker_history.coin_id is 'market.coin.id: btc-bitcoin.';--> statement-breakpoint
comment on table market.global_history is 'The market as a whole at every snapshot.';--> statement-breakpoint
comment on column market.global_history.at is 'Instant of the snapshot: no fact in it is newer.';--> statement-breakpoint
comment on column market.global_history.updated_at is 'When upstream last updated it, as it says itself; the instant of the snapshot where it says nothing.';--> statement-breakpoint
comment on column market.global_history.market_cap is 'Market capitalisation of all coins, in US dollars.';--> statement-breakpoint
comment on column market.global_history.volume_24h is 'Volume of the last 24 hours, in US dollars.';--> statement-breakpoint
comment on column market.global_history.bitcoin_dominance is 'Share of bitcoin in the market capitalisation, in percent.';--> statement-breakpoint
comment on column market.global_history.coins is 'How many coins upstream counts.';--> statement-breakpoint
comment on column market.global_history.market_cap_change_24h is 'Change of market_cap in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.global_history.volume_24h_change_24h is 'Change of volume_24h in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.global_history.market_cap_ath is 'Highest market capitalisation ever, in US dollars.';--> statement-breakpoint
comment on column market.global_history.market_cap_ath_at is 'When it was highest.';--> statement-breakpoint
comment on column market.global_history.volume_24h_ath is 'Highest volume of 24 hours ever, in US dollars, as upstream gives it (outliers included).';--> statement-breakpoint
comment on column market.global_history.volume_24h_ath_at is 'When it was highest.';--> statement-breakpoint
comment on column market.global_history.volume_24h_percent_from_ath is 'How far volume_24h is below its highest, in percent.';--> statement-breakpoint
comment on column market.global_history.volume_24h_percent_to_ath is 'How far volume_24h would have to rise to its highest, in percent; upstream writes at most 9999.99.';--> statement-breakpoint
comment on table market.exchange is 'Every exchange ever seen, as last seen, volumes in US dollars. Rows are never deleted.';--> statement-breakpoint
comment on column market.exchange.id is 'Upstream id: binance.';--> statement-breakpoint
comment on column market.exchange.updated_at is 'When upstream last updated it, as it says itself; the instant of the snapshot where it says nothing.';--> statement-breakpoint
comment on column market.exchange.at is 'Instant of the snapshot the values are of.';--> statement-breakpoint
comment on column market.exchange.name is 'Name, as last seen.';--> statement-breakpoint
comment on column market.exchange.types is 'What kind it is: cex, dex, perpetuals, spot, otc, other.';--> statement-breakpoint
comment on column market.exchange.is_active is 'False once upstream has stopped following it.';--> statement-breakpoint
comment on column market.exchange.website_status is 'Does its web page answer, as upstream sees it?';--> statement-breakpoint
comment on column market.exchange.api_status is 'Does its API answer, as upstream sees it?';--> statement-breakpoint
comment on column market.exchange.markets_data_fetched is 'Does upstream have its markets?';--> statement-breakpoint
comment on column market.exchange.description is 'Description, where there is one.';--> statement-breakpoint
comment on column market.exchange.message is 'What upstream wants known about it, where there is something.';--> statement-breakpoint
comment on column market.exchange.links is 'Addresses by kind: {"website": ["https://…"], "twitter": []}.';--> statement-breakpoint
comment on column market.exchange.fiats is 'Fiat currencies traded: [{"name": "US Dollars", "symbol": "USD"}].';--> statement-breakpoint
comment on column market.exchange.adjusted_rank is 'Rank by adjusted volume, 1 is first; null when it has none.';--> statement-breakpoint
comment on column market.exchange.reported_rank is 'Rank by reported volume, 1 is first; null when it has none.';--> statement-breakpoint
comment on column market.exchange.currencies is 'How many currencies it trades.';--> statement-breakpoint
comment on column market.exchange.markets is 'How many markets it has.';--> statement-breakpoint
comment on column market.exchange.reported_volume_24h is 'Volume of 24 hours as it reports itself.';--> statement-breakpoint
comment on column market.exchange.adjusted_volume_24h is 'Volume of 24 hours as upstream believes it.';--> statement-breakpoint
comment on column market.exchange.reported_volume_7d is 'Volume of 7 days as it reports itself.';--> statement-breakpoint
comment on column market.exchange.adjusted_volume_7d is 'Volume of 7 days as upstream believes it.';--> statement-breakpoint
comment on column market.exchange.reported_volume_30d is 'Volume of 30 days as it reports itself.';--> statement-breakpoint
comment on column market.exchange.adjusted_volume_30d is 'Volume of 30 days as upstream believes it.';--> statement-breakpoint
comment on column market.exchange.first_seen_at is 'Instant of the first snapshot that held it.';--> statement-breakpoint
comment on column market.exchange.last_seen_at is 'Instant of the newest snapshot that held it.';--> statement-breakpoint
comment on table market.exchange_history is 'Ranks and volumes of every exchange at every snapshot, in US dollars.';--> statement-breakpoint
comment on column market.exchange_history.exchange_id is 'market.exchange.id.';--> statement-breakpoint
comment on column market.exchange_history.at is 'Instant of the snapshot: no fact in it is newer.';--> statement-breakpoint
comment on column market.exchange_history.updated_at is 'When upstream last updated it, as it says itself; the instant of the snapshot where it says nothing.';--> statement-breakpoint
comment on column market.exchange_history.adjusted_rank is 'Rank by adjusted volume, 1 is first; null when it has none.';--> statement-breakpoint
comment on column market.exchange_history.reported_rank is 'Rank by reported volume, 1 is first; null when it has none.';--> statement-breakpoint
comment on column market.exchange_history.currencies is 'How many currencies it trades.';--> statement-breakpoint
comment on column market.exchange_history.markets is 'How many markets it has.';--> statement-breakpoint
comment on column market.exchange_history.reported_volume_24h is 'Volume of 24 hours as it reports itself.';--> statement-breakpoint
comment on column market.exchange_history.adjusted_volume_24h is 'Volume of 24 hours as upstream believes it.';--> statement-breakpoint
comment on table market.quarantine is 'Rows of answers that cannot be true, as they came, with the reason. They are in no other table.';--> statement-breakpoint
comment on column market.quarantine.series_id is 'market.series.id, for a row that claims to be a candle; null for a row of a snapshot.';--> statement-breakpoint
comment on column market.quarantine.endpoint is 'For a row of a snapshot: tickers, coins, global or exchanges.';--> statement-breakpoint
comment on column market.quarantine.record_id is 'For a row of a snapshot: the id it claims; empty when it has none that can be read.';--> statement-breakpoint
comment on column market.quarantine.times is 'For a row of a snapshot: in how many answers it came with the same reason; row, fetch_id and seen_at are of the newest.';
