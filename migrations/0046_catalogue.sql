-- The catalogue: what is known about coins, tags, people, platforms, contracts, exchanges and markets. Every answer is kept as it
-- came (market.document), and what analysts ask for beside it in plain columns. Nothing is deleted: what upstream no longer lists
-- is marked as gone, or its stretch of validity ends.
CREATE TABLE "market"."document" (
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"changed_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone,
	"is_cut" boolean DEFAULT false NOT NULL,
	"essence" bytea NOT NULL,
	"received" json NOT NULL,
	CONSTRAINT "document_kind_id_pk" PRIMARY KEY("kind","id")
);--> statement-breakpoint
CREATE TABLE "market"."document_revision" (
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone NOT NULL,
	"received" json NOT NULL,
	CONSTRAINT "document_revision_kind_id_valid_from_pk" PRIMARY KEY("kind","id","valid_from")
);--> statement-breakpoint
CREATE TABLE "market"."coin_detail" (
	"coin_id" text PRIMARY KEY NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"name" text NOT NULL,
	"symbol" text NOT NULL,
	"type" text,
	"is_active" boolean,
	"parent_id" text,
	"description" text,
	"message" text,
	"open_source" boolean,
	"hardware_wallet" boolean,
	"started_at" timestamp with time zone,
	"development_status" text,
	"proof_type" text,
	"org_structure" text,
	"hash_algorithm" text,
	"platform_id" text,
	"contract" text,
	"logo_url" text,
	"whitepaper_url" text,
	"first_data_at" timestamp with time zone,
	"last_data_at" timestamp with time zone
);--> statement-breakpoint
CREATE TABLE "market"."coin_link" (
	"coin_id" text NOT NULL,
	"kind" text NOT NULL,
	"url" text NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone,
	CONSTRAINT "coin_link_coin_id_kind_url_valid_from_pk" PRIMARY KEY("coin_id","kind","url","valid_from")
);--> statement-breakpoint
CREATE TABLE "market"."position" (
	"coin_id" text NOT NULL,
	"person_id" text NOT NULL,
	"position" text NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone,
	CONSTRAINT "position_coin_id_person_id_position_valid_from_pk" PRIMARY KEY("coin_id","person_id","position","valid_from")
);--> statement-breakpoint
CREATE TABLE "market"."coin_tag" (
	"coin_id" text NOT NULL,
	"tag_id" text NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone,
	CONSTRAINT "coin_tag_coin_id_tag_id_valid_from_pk" PRIMARY KEY("coin_id","tag_id","valid_from")
);--> statement-breakpoint
CREATE TABLE "market"."tag" (
	"id" text PRIMARY KEY NOT NULL,
	"place" integer NOT NULL,
	"name" text NOT NULL,
	"type" text,
	"description" text,
	"coins" integer,
	"icos" integer,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone
);--> statement-breakpoint
CREATE TABLE "market"."person" (
	"id" text PRIMARY KEY NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"teams" integer
);--> statement-breakpoint
CREATE TABLE "market"."platform" (
	"id" text PRIMARY KEY NOT NULL,
	"place" integer NOT NULL,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone
);--> statement-breakpoint
CREATE TABLE "market"."contract" (
	"platform_id" text NOT NULL,
	"address" text NOT NULL,
	"coin_id" text NOT NULL,
	"type" text,
	"is_active" boolean,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone,
	CONSTRAINT "contract_platform_id_address_coin_id_valid_from_pk" PRIMARY KEY("platform_id","address","coin_id","valid_from")
);--> statement-breakpoint
CREATE TABLE "market"."coin_event" (
	"coin_id" text NOT NULL,
	"id" text NOT NULL,
	"date" timestamp with time zone NOT NULL,
	"date_to" timestamp with time zone,
	"name" text NOT NULL,
	"description" text,
	"is_conference" boolean,
	"link" text,
	"proof_image_link" text,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone,
	CONSTRAINT "coin_event_coin_id_id_pk" PRIMARY KEY("coin_id","id")
);--> statement-breakpoint
CREATE TABLE "market"."coin_exchange" (
	"coin_id" text NOT NULL,
	"exchange_id" text NOT NULL,
	"name" text NOT NULL,
	"fiats" text[] NOT NULL,
	"adjusted_volume_24h_share" double precision,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone,
	CONSTRAINT "coin_exchange_coin_id_exchange_id_pk" PRIMARY KEY("coin_id","exchange_id")
);--> statement-breakpoint
CREATE TABLE "market"."coin_market" (
	"coin_id" text NOT NULL,
	"exchange_id" text NOT NULL,
	"base_currency_id" text NOT NULL,
	"quote_currency_id" text NOT NULL,
	"pair" text NOT NULL,
	"category" text NOT NULL,
	"market_url" text,
	"fee_type" text,
	"outlier" boolean,
	"adjusted_volume_24h_share" double precision,
	"price" double precision,
	"volume_24h" double precision,
	"updated_at" timestamp with time zone,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone,
	CONSTRAINT "coin_market_pk" PRIMARY KEY("coin_id","exchange_id","base_currency_id","quote_currency_id","pair","category")
);--> statement-breakpoint
CREATE TABLE "market"."exchange_market" (
	"exchange_id" text NOT NULL,
	"base_currency_id" text NOT NULL,
	"quote_currency_id" text NOT NULL,
	"pair" text NOT NULL,
	"category" text NOT NULL,
	"market_url" text,
	"fee_type" text,
	"outlier" boolean,
	"reported_volume_24h_share" double precision,
	"price" double precision,
	"volume_24h" double precision,
	"updated_at" timestamp with time zone,
	"first_seen_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"gone_at" timestamp with time zone,
	CONSTRAINT "exchange_market_pk" PRIMARY KEY("exchange_id","base_currency_id","quote_currency_id","pair","category")
);--> statement-breakpoint
CREATE INDEX "position_of_person" ON "market"."position" USING btree ("person_id");--> statement-breakpoint
CREATE INDEX "coin_tag_of_tag" ON "market"."coin_tag" USING btree ("tag_id");--> statement-breakpoint
-- Hexadecimal addresses are written in any case.
CREATE INDEX "contract_by_address" ON "market"."contract" USING btree ("platform_id",lower("address"));--> statement-breakpoint
CREATE INDEX "contract_of_coin" ON "market"."contract" USING btree ("coin_id");--> statement-breakpoint
CREATE INDEX "coin_market_of_exchange" ON "market"."coin_market" USING btree ("exchange_id");--> statement-breakpoint
CREATE INDEX "coin_exchange_of_exchange" ON "market"."coin_exchange" USING btree ("exchange_id");--> statement-breakpoint
ALTER TABLE "ops"."fetch" ADD COLUMN "subject" text;--> statement-breakpoint
CREATE TABLE "ops"."catalogue_item" (
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"asked_at" timestamp with time zone NOT NULL,
	"answered_at" timestamp with time zone,
	"outcome" text NOT NULL,
	"times" integer NOT NULL,
	"wait_until" timestamp with time zone,
	"rows" integer DEFAULT 0 NOT NULL,
	"is_cut" boolean DEFAULT false NOT NULL,
	"message" text,
	CONSTRAINT "catalogue_item_kind_id_pk" PRIMARY KEY("kind","id")
);--> statement-breakpoint
CREATE TABLE "ops"."catalogue_refusal" (
	"account_plan" text NOT NULL,
	"kind" text NOT NULL,
	"reason" text NOT NULL,
	"times" integer NOT NULL,
	"message" text NOT NULL,
	"refused_at" timestamp with time zone NOT NULL,
	CONSTRAINT "catalogue_refusal_account_plan_kind_pk" PRIMARY KEY("account_plan","kind")
);--> statement-breakpoint
CREATE TABLE "ops"."rpc" (
	"url" text PRIMARY KEY NOT NULL,
	"tools" jsonb,
	"listed_at" timestamp with time zone,
	"closed_until" timestamp with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"message" text
);--> statement-breakpoint
create view market.catalogue as
select kind, count(*) filter (where gone_at is null) as known, count(*) filter (where gone_at is not null) as gone,
  min(as_of) filter (where gone_at is null) as oldest, max(as_of) as newest
from market.document group by kind;--> statement-breakpoint
comment on table market.document is 'The newest answer of upstream about each thing of the catalogue, as received. Never deleted.';--> statement-breakpoint
comment on column market.document.kind is 'What it is about: coin, coin_events, coin_exchanges, coin_markets, exchange_markets, tag, person, platforms, contracts.';--> statement-breakpoint
comment on column market.document.id is 'Id of the coin, exchange, tag, person or platform; empty for what there is only one of.';--> statement-breakpoint
comment on column market.document.as_of is 'Instant of the newest answer: no fact in it is newer.';--> statement-breakpoint
comment on column market.document.changed_at is 'Instant of the answer that last changed more than counters and ranks.';--> statement-breakpoint
comment on column market.document.gone_at is 'Since when upstream no longer knows the id; null while it does.';--> statement-breakpoint
comment on column market.document.is_cut is 'The list may go on after its end: it was asked for with a limit, and has as many rows.';--> statement-breakpoint
comment on column market.document.essence is 'SHA-256 of the answer without what changes all the time.';--> statement-breakpoint
comment on column market.document.received is 'The answer as received: keys, their order and the text of numbers are the upstream''s.';--> statement-breakpoint
comment on table market.document_revision is 'Old versions of market.document, except of markets and contracts: one for each change of more than counters and ranks.';--> statement-breakpoint
comment on column market.document_revision.kind is 'As in market.document.';--> statement-breakpoint
comment on column market.document_revision.id is 'As in market.document.';--> statement-breakpoint
comment on column market.document_revision.valid_from is 'Instant of the first answer that said so.';--> statement-breakpoint
comment on column market.document_revision.valid_to is 'Instant of the answer that changed it.';--> statement-breakpoint
comment on column market.document_revision.received is 'The last answer that said so, as received.';--> statement-breakpoint
comment on table market.coin_detail is 'What upstream tells of a coin beyond its price, as last received. Older versions are in market.document_revision (kind coin).';--> statement-breakpoint
comment on column market.coin_detail.coin_id is 'market.coin.id: btc-bitcoin.';--> statement-breakpoint
comment on column market.coin_detail.as_of is 'Instant of the answer the values are of.';--> statement-breakpoint
comment on column market.coin_detail.name is 'Name.';--> statement-breakpoint
comment on column market.coin_detail.symbol is 'Symbol; not unique.';--> statement-breakpoint
comment on column market.coin_detail.type is 'coin or token.';--> statement-breakpoint
comment on column market.coin_detail.is_active is 'Does upstream still follow it?';--> statement-breakpoint
comment on column market.coin_detail.parent_id is 'Id of the coin it lives on, or came from; null when there is none.';--> statement-breakpoint
comment on column market.coin_detail.description is 'What it is, in English.';--> statement-breakpoint
comment on column market.coin_detail.message is 'What upstream wants known about it, where there is something.';--> statement-breakpoint
comment on column market.coin_detail.open_source is 'Is its source open?';--> statement-breakpoint
comment on column market.coin_detail.hardware_wallet is 'Do hardware wallets hold it?';--> statement-breakpoint
comment on column market.coin_detail.started_at is 'When it was launched; its data may begin later.';--> statement-breakpoint
comment on column market.coin_detail.development_status is 'As upstream words it: Working product.';--> statement-breakpoint
comment on column market.coin_detail.proof_type is 'Proof of Work, Proof of Stake …';--> statement-breakpoint
comment on column market.coin_detail.org_structure is 'Decentralized, Semi-centralized …';--> statement-breakpoint
comment on column market.coin_detail.hash_algorithm is 'SHA256, Ethash …';--> statement-breakpoint
comment on column market.coin_detail.platform_id is 'Platform of its first contract: market.platform.id.';--> statement-breakpoint
comment on column market.coin_detail.contract is 'Address of its first contract.';--> statement-breakpoint
comment on column market.coin_detail.logo_url is 'Address of its logo.';--> statement-breakpoint
comment on column market.coin_detail.whitepaper_url is 'Address of its white paper.';--> statement-breakpoint
comment on column market.coin_detail.first_data_at is 'Its data begin here, as upstream says.';--> statement-breakpoint
comment on column market.coin_detail.last_data_at is 'Newest data that upstream had of it then.';--> statement-breakpoint
comment on table market.coin_link is 'Web pages of coins, with the time in which upstream listed each.';--> statement-breakpoint
comment on column market.coin_link.coin_id is 'market.coin.id.';--> statement-breakpoint
comment on column market.coin_link.kind is 'website, explorer, source_code, reddit …';--> statement-breakpoint
comment on column market.coin_link.url is 'The address.';--> statement-breakpoint
comment on column market.coin_link.valid_from is 'Instant of the first answer that says so.';--> statement-breakpoint
comment on column market.coin_link.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';--> statement-breakpoint
comment on table market.position is 'Who belongs to which coin, as what, with the time in which upstream said so.';--> statement-breakpoint
comment on column market.position.coin_id is 'market.coin.id.';--> statement-breakpoint
comment on column market.position.person_id is 'market.person.id.';--> statement-breakpoint
comment on column market.position.position is 'What the person is there: Founder; empty where upstream does not say.';--> statement-breakpoint
comment on column market.position.valid_from is 'Instant of the first answer that says so.';--> statement-breakpoint
comment on column market.position.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';--> statement-breakpoint
comment on table market.coin_tag is 'Which coin has which tag, with the time in which upstream said so.';--> statement-breakpoint
comment on column market.coin_tag.coin_id is 'market.coin.id.';--> statement-breakpoint
comment on column market.coin_tag.tag_id is 'market.tag.id.';--> statement-breakpoint
comment on column market.coin_tag.valid_from is 'Instant of the first answer that says so.';--> statement-breakpoint
comment on column market.coin_tag.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';--> statement-breakpoint
comment on table market.tag is 'Tags, as last received. Older versions are in market.document_revision (kind tag), who has one in market.coin_tag.';--> statement-breakpoint
comment on column market.tag.id is 'Upstream id: smart-contracts.';--> statement-breakpoint
comment on column market.tag.place is 'Its place in the list of tags, from 0.';--> statement-breakpoint
comment on column market.tag.name is 'Name.';--> statement-breakpoint
comment on column market.tag.type is 'functional or technical.';--> statement-breakpoint
comment on column market.tag.description is 'What it means.';--> statement-breakpoint
comment on column market.tag.coins is 'How many coins have it, as upstream counts.';--> statement-breakpoint
comment on column market.tag.icos is 'How many initial coin offerings have it, as upstream counts.';--> statement-breakpoint
comment on column market.tag.first_seen_at is 'Instant of the first answer that lists it.';--> statement-breakpoint
comment on column market.tag.last_seen_at is 'Instant of the last answer that lists it.';--> statement-breakpoint
comment on column market.tag.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';--> statement-breakpoint
comment on table market.person is 'People of the coins that are kept, as last received. Older versions are in market.document_revision (kind person).';--> statement-breakpoint
comment on column market.person.id is 'Upstream id: vitalik-buterin.';--> statement-breakpoint
comment on column market.person.as_of is 'Instant of the answer the values are of.';--> statement-breakpoint
comment on column market.person.name is 'Name.';--> statement-breakpoint
comment on column market.person.description is 'Who that is.';--> statement-breakpoint
comment on column market.person.teams is 'In how many teams, as upstream counts.';--> statement-breakpoint
comment on table market.platform is 'Chains that contracts of coins live on.';--> statement-breakpoint
comment on column market.platform.id is 'Id of the coin whose chain it is: eth-ethereum.';--> statement-breakpoint
comment on column market.platform.place is 'Its place in the list of platforms, from 0.';--> statement-breakpoint
comment on column market.platform.first_seen_at is 'Instant of the first answer that lists it.';--> statement-breakpoint
comment on column market.platform.last_seen_at is 'Instant of the last answer that lists it.';--> statement-breakpoint
comment on column market.platform.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';--> statement-breakpoint
comment on table market.contract is 'Contracts of coins, with the time in which upstream said so.';--> statement-breakpoint
comment on column market.contract.platform_id is 'market.platform.id.';--> statement-breakpoint
comment on column market.contract.address is 'Address of the contract, as upstream writes it.';--> statement-breakpoint
comment on column market.contract.coin_id is 'The coin behind it: market.coin.id.';--> statement-breakpoint
comment on column market.contract.type is 'ERC20 …';--> statement-breakpoint
comment on column market.contract.is_active is 'Does upstream call it active?';--> statement-breakpoint
comment on column market.contract.valid_from is 'Instant of the first answer that says so.';--> statement-breakpoint
comment on column market.contract.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';--> statement-breakpoint
comment on table market.coin_event is 'Events of coins, as last received.';--> statement-breakpoint
comment on column market.coin_event.coin_id is 'market.coin.id.';--> statement-breakpoint
comment on column market.coin_event.id is 'Upstream id of the event.';--> statement-breakpoint
comment on column market.coin_event.date is 'When it is, or begins.';--> statement-breakpoint
comment on column market.coin_event.date_to is 'When it ends; null when upstream does not say.';--> statement-breakpoint
comment on column market.coin_event.name is 'Name.';--> statement-breakpoint
comment on column market.coin_event.description is 'What happens.';--> statement-breakpoint
comment on column market.coin_event.is_conference is 'Is it a conference?';--> statement-breakpoint
comment on column market.coin_event.link is 'Address of its page.';--> statement-breakpoint
comment on column market.coin_event.proof_image_link is 'Address of a picture that proves it.';--> statement-breakpoint
comment on column market.coin_event.first_seen_at is 'Instant of the first answer that lists it.';--> statement-breakpoint
comment on column market.coin_event.last_seen_at is 'Instant of the last answer that lists it.';--> statement-breakpoint
comment on column market.coin_event.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';--> statement-breakpoint
comment on table market.coin_exchange is 'Exchanges on which a coin is traded, as last received.';--> statement-breakpoint
comment on column market.coin_exchange.coin_id is 'market.coin.id.';--> statement-breakpoint
comment on column market.coin_exchange.exchange_id is 'market.exchange.id.';--> statement-breakpoint
comment on column market.coin_exchange.name is 'Name of the exchange.';--> statement-breakpoint
comment on column market.coin_exchange.fiats is 'Symbols of the national currencies that it takes.';--> statement-breakpoint
comment on column market.coin_exchange.adjusted_volume_24h_share is 'Its share in the adjusted volume of the coin in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.coin_exchange.first_seen_at is 'Instant of the first answer that lists it.';--> statement-breakpoint
comment on column market.coin_exchange.last_seen_at is 'Instant of the last answer that lists it.';--> statement-breakpoint
comment on column market.coin_exchange.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';--> statement-breakpoint
comment on table market.coin_market is 'Markets of a coin, as last received.';--> statement-breakpoint
comment on column market.coin_market.coin_id is 'market.coin.id.';--> statement-breakpoint
comment on column market.coin_market.exchange_id is 'market.exchange.id.';--> statement-breakpoint
comment on column market.coin_market.base_currency_id is 'Id of the coin that is bought.';--> statement-breakpoint
comment on column market.coin_market.quote_currency_id is 'Id of the coin or currency that it is paid in.';--> statement-breakpoint
comment on column market.coin_market.pair is 'Symbols of the two: BTC/USDT.';--> statement-breakpoint
comment on column market.coin_market.category is 'Spot, Derivatives, OTC; empty where upstream does not say.';--> statement-breakpoint
comment on column market.coin_market.market_url is 'Address of its page.';--> statement-breakpoint
comment on column market.coin_market.fee_type is 'Percentage, No Fees …';--> statement-breakpoint
comment on column market.coin_market.outlier is 'Upstream leaves its price out of the average.';--> statement-breakpoint
comment on column market.coin_market.adjusted_volume_24h_share is 'Its share in the adjusted volume of the coin in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.coin_market.price is 'Price in US dollars.';--> statement-breakpoint
comment on column market.coin_market.volume_24h is 'Volume of the last 24 hours in US dollars.';--> statement-breakpoint
comment on column market.coin_market.updated_at is 'When upstream last updated it, as it says itself.';--> statement-breakpoint
comment on column market.coin_market.first_seen_at is 'Instant of the first answer that lists it.';--> statement-breakpoint
comment on column market.coin_market.last_seen_at is 'Instant of the last answer that lists it.';--> statement-breakpoint
comment on column market.coin_market.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';--> statement-breakpoint
comment on table market.exchange_market is 'Markets of an exchange, as last received.';--> statement-breakpoint
comment on column market.exchange_market.exchange_id is 'market.exchange.id.';--> statement-breakpoint
comment on column market.exchange_market.base_currency_id is 'Id of the coin that is bought.';--> statement-breakpoint
comment on column market.exchange_market.quote_currency_id is 'Id of the coin or currency that it is paid in.';--> statement-breakpoint
comment on column market.exchange_market.pair is 'Symbols of the two: BTC/USDT.';--> statement-breakpoint
comment on column market.exchange_market.category is 'Spot, Derivatives, OTC; empty where upstream does not say.';--> statement-breakpoint
comment on column market.exchange_market.market_url is 'Address of its page.';--> statement-breakpoint
comment on column market.exchange_market.fee_type is 'Percentage, No Fees …';--> statement-breakpoint
comment on column market.exchange_market.outlier is 'Upstream leaves its price out of the average.';--> statement-breakpoint
comment on column market.exchange_market.reported_volume_24h_share is 'Its share in the reported volume of the exchange in the last 24 hours, in percent.';--> statement-breakpoint
comment on column market.exchange_market.price is 'Price in US dollars.';--> statement-breakpoint
comment on column market.exchange_market.volume_24h is 'Volume of the last 24 hours in US dollars.';--> statement-breakpoint
comment on column market.exchange_market.updated_at is 'When upstream last updated it, as it says itself.';--> statement-breakpoint
comment on column market.exchange_market.first_seen_at is 'Instant of the first answer that lists it.';--> statement-breakpoint
comment on column market.exchange_market.last_seen_at is 'Instant of the last answer that lists it.';--> statement-breakpoint
comment on column market.exchange_market.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';--> statement-breakpoint
comment on column ops.fetch.subject is 'About which coin, exchange, tag, person or platform, for requests about one that is no series.';--> statement-breakpoint
comment on table ops.catalogue_item is 'When each thing of the catalogue was asked, and what came of it: the order of turns goes by it.';--> statement-breakpoint
comment on column ops.catalogue_item.kind is 'What is asked: as in market.document, and tags for the list of them.';--> statement-breakpoint
comment on column ops.catalogue_item.id is 'About what; empty for what there is only one of.';--> statement-breakpoint
comment on column ops.catalogue_item.asked_at is 'When it was asked last.';--> statement-breakpoint
comment on column ops.catalogue_item.answered_at is 'When it was last answered with something that was stored.';--> statement-breakpoint
comment on column ops.catalogue_item.outcome is 'How the last request ended: stored, or as in ops.fetch.';--> statement-breakpoint
comment on column ops.catalogue_item.times is 'So many requests in a row have ended like that.';--> statement-breakpoint
comment on column ops.catalogue_item.wait_until is 'Not asked before; null when its age decides.';--> statement-breakpoint
comment on column ops.catalogue_item.rows is 'Rows of the last answer.';--> statement-breakpoint
comment on column ops.catalogue_item.is_cut is 'The tool gave only the beginning of the list: REST is asked for it.';--> statement-breakpoint
comment on column ops.catalogue_item.message is 'What upstream said, where it did not answer.';--> statement-breakpoint
comment on table ops.catalogue_refusal is 'What of the catalogue upstream does not give to a plan: not asked again until the plan changes.';--> statement-breakpoint
comment on column ops.catalogue_refusal.account_plan is 'The plan it was refused to.';--> statement-breakpoint
comment on column ops.catalogue_refusal.kind is 'What was asked, as in ops.catalogue_item.';--> statement-breakpoint
comment on column ops.catalogue_refusal.reason is 'wall: not in the plan. forbidden: not for this key.';--> statement-breakpoint
comment on column ops.catalogue_refusal.times is 'How often in a row; the third time it is off.';--> statement-breakpoint
comment on column ops.catalogue_refusal.message is 'What upstream said.';--> statement-breakpoint
comment on column ops.catalogue_refusal.refused_at is 'When it last did.';--> statement-breakpoint
comment on table ops.rpc is 'JSON-RPC interfaces of upstreams: their tools, and how they are.';--> statement-breakpoint
comment on column ops.rpc.url is 'Address of the JSON-RPC interface.';--> statement-breakpoint
comment on column ops.rpc.tools is 'Its tools, as it lists them; null when it never has.';--> statement-breakpoint
comment on column ops.rpc.listed_at is 'When it listed them.';--> statement-breakpoint
comment on column ops.rpc.closed_until is 'Left alone until then, because it could not be used; REST is asked meanwhile.';--> statement-breakpoint
comment on column ops.rpc.failures is 'So often in a row it could not be used.';--> statement-breakpoint
comment on column ops.rpc.message is 'Why it could not.';--> statement-breakpoint
comment on view market.catalogue is 'How much of the catalogue there is, and how old it is.';--> statement-breakpoint
comment on column market.catalogue.kind is 'As in market.document.';--> statement-breakpoint
comment on column market.catalogue.known is 'Things that upstream knows.';--> statement-breakpoint
comment on column market.catalogue.gone is 'Things that it no longer knows.';--> statement-breakpoint
comment on column market.catalogue.oldest is 'Instant of the oldest answer about one that it knows.';--> statement-breakpoint
comment on column market.catalogue.newest is 'Instant of the newest answer.';
