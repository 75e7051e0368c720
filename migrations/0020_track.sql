-- What is to be kept fresh: the rules, what they come to (a series each), and how fresh the budget lets each kind be.
-- One row a rule, so that adding, changing and removing are each about one row: a coin × interval × quote, the best-ranked N ×
-- interval × quote, or all active coins × interval × quote.
CREATE TABLE "ops"."track" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."track_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"tier" text NOT NULL,
	"coin_id" text,
	"top" integer,
	"interval" "market"."candle_interval" NOT NULL,
	"quote" text NOT NULL,
	"since" timestamp with time zone NOT NULL,
	"priority" smallint NOT NULL,
	"target_age" interval NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "track_rule" UNIQUE NULLS NOT DISTINCT("tier","coin_id","top","interval","quote"),
	CONSTRAINT "track_tier" CHECK (case tier when 'list' then coin_id is not null and top is null when 'top' then coin_id is null and coalesce(top, 0) > 0 when 'all' then coin_id is null and top is null else false end),
	CONSTRAINT "track_quote" CHECK (quote in ('usd', 'btc')),
	CONSTRAINT "track_target_age" CHECK (target_age > interval '0')
);
--> statement-breakpoint
CREATE TABLE "ops"."tier" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ops"."tier_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"tier" text NOT NULL,
	"priority" smallint NOT NULL,
	"interval" "market"."candle_interval" NOT NULL,
	"target_age" interval NOT NULL,
	"achievable_age" interval,
	"keeps_up" boolean DEFAULT true NOT NULL,
	"planned_at" timestamp with time zone,
	CONSTRAINT "tier_kind" UNIQUE("tier","priority","interval","target_age"),
	CONSTRAINT "tier_tier" CHECK (tier in ('list', 'top', 'all'))
);
--> statement-breakpoint
CREATE TABLE "ops"."tracked" (
	"series_id" integer PRIMARY KEY NOT NULL,
	"tier_id" integer NOT NULL,
	"tracked_at" timestamp with time zone NOT NULL,
	"asked_at" timestamp with time zone,
	"turn_at" timestamp with time zone,
	"seen_until" timestamp with time zone,
	"ends_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "market"."coin_rename" (
	"old_id" text PRIMARY KEY NOT NULL,
	"new_id" text NOT NULL,
	"renamed_at" timestamp with time zone NOT NULL,
	"source" text NOT NULL,
	CONSTRAINT "coin_rename_ids" CHECK (old_id <> new_id),
	CONSTRAINT "coin_rename_source" CHECK (source in ('coins', 'changelog'))
);
--> statement-breakpoint
ALTER TABLE "ops"."track" ADD CONSTRAINT "track_coin_id_coin_id_fk" FOREIGN KEY ("coin_id") REFERENCES "market"."coin"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "ops"."tracked" ADD CONSTRAINT "tracked_series_id_series_id_fk" FOREIGN KEY ("series_id") REFERENCES "market"."series"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "ops"."tracked" ADD CONSTRAINT "tracked_tier_id_tier_id_fk" FOREIGN KEY ("tier_id") REFERENCES "ops"."tier"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
-- Within a tier all series have one age to keep, so the order of their turns is that of when they were last asked: the next ones
-- of each tier lie at the beginning of its part of the index, those never asked at its end.
CREATE INDEX "tracked_by_age" ON "ops"."tracked" USING btree ("tier_id","asked_at");--> statement-breakpoint
CREATE INDEX "tracked_by_turn" ON "ops"."tracked" USING btree ("tier_id","turn_at");--> statement-breakpoint
CREATE INDEX "tracked_ending" ON "ops"."tracked" USING btree ("ends_at") WHERE ends_at is not null;--> statement-breakpoint
-- Rewritten with every answer: room on the page for the next version.
alter table ops.tracked set (fillfactor = 70);
--> statement-breakpoint
-- What the rules want at this moment, by the list of coins as last read: each series once, with the best that any rule gives it.
-- A coin that the list has not held for two days is gone, whatever it said last; a list that came broken once drops nobody.
create view ops.track_target as
with alive as (
  select id, case when rank > 0 then row_number() over (order by nullif(rank, 0) nulls last, id) end as position
  from market.coin c
  where is_active and last_seen_at > (select max(last_seen_at) from market.coin) - interval '2 days'
    and not exists (select from market.coin_rename r where r.old_id = c.id and r.renamed_at >= c.last_seen_at)
), named as (
  select t.*, a.id as of_coin, 0 as kind from ops.track t join alive a on a.id = t.coin_id where t.tier = 'list'
  union all
  select t.*, a.id, 1 from ops.track t join alive a on a.position <= t.top where t.tier = 'top'
  union all
  select t.*, a.id, 2 from ops.track t cross join alive a where t.tier = 'all'
)
select of_coin as coin_id, quote, interval, (array['list', 'top', 'all'])[min(kind) + 1] as tier, min(since) as since,
  max(priority) as priority, min(target_age) as target_age
from named
group by of_coin, quote, interval;
--> statement-breakpoint
create or replace view market.freshness as
select
  s.coin_id,
  co.symbol,
  s.quote,
  s.interval,
  upper(s.covered) as final_until,
  now() - upper(s.covered) as age,
  upper_inf(s.wanted) as is_tracked,
  s.priority,
  ti.tier,
  ti.target_age,
  ti.achievable_age,
  tr.seen_until,
  now() - tr.seen_until as seen_age,
  tr.asked_at
from market.series s
join market.coin co on co.id = s.coin_id
left join ops.tracked tr on tr.series_id = s.id
left join ops.tier ti on ti.id = tr.tier_id;
--> statement-breakpoint
comment on column market.freshness.final_until is 'End of the newest span with a final answer; null when there is none. Candles become final one candle width after they have closed.';
--> statement-breakpoint
comment on column market.freshness.tier is 'Why it is tracked: list (named by its coin), top (among the best-ranked) or all; null when no rule of chandler track is behind it.';
--> statement-breakpoint
comment on column market.freshness.target_age is 'How old its newest data may become before it is asked again, as chandler track says.';
--> statement-breakpoint
comment on column market.freshness.achievable_age is 'How old it becomes with the requests there are: target_age, or more when the budget does not allow it. Null while nobody has planned it, or when there is nothing to spend.';
--> statement-breakpoint
comment on column market.freshness.seen_until is 'Up to this instant everything that upstream had is here, candles that are not final yet included; null when it was not answered since it is tracked.';
--> statement-breakpoint
comment on column market.freshness.seen_age is 'Time between seen_until and now: to be compared with target_age and achievable_age.';
--> statement-breakpoint
comment on column market.freshness.asked_at is 'When its newest candles were last asked for, answered or not; null when never since it is tracked.';
--> statement-breakpoint
comment on table market.coin_rename is 'Coins that upstream gave a new id. What was kept under the old id is kept under the new one since: their series and candles are one history.';
--> statement-breakpoint
comment on column market.coin_rename.old_id is 'The id it had; still in market.coin.';
--> statement-breakpoint
comment on column market.coin_rename.new_id is 'The id it was given.';
--> statement-breakpoint
comment on column market.coin_rename.renamed_at is 'When we saw it, or when upstream says it was.';
--> statement-breakpoint
comment on column market.coin_rename.source is 'coins: seen in the list of coins, the same name and symbol under a new id while the old one left; changelog: upstream says so.';
--> statement-breakpoint
comment on table ops.track is 'The rules of chandler track: one row per coin, top N or all × interval × quote.';
--> statement-breakpoint
comment on table ops.tier is 'Tracked series that are treated alike, and how old their data becomes with the requests there are.';
--> statement-breakpoint
comment on column ops.tier.achievable_age is 'Null: not planned yet, or (planned_at not null) nothing to spend on it.';
--> statement-breakpoint
comment on column ops.tier.keeps_up is 'False: between two requests more candles come than one request holds.';
--> statement-breakpoint
comment on table ops.tracked is 'The series the rules come to: when each was asked, and up to when upstream has told all it had.';
--> statement-breakpoint
comment on column ops.tracked.turn_at is 'From when its age counts for being asked early: asked_at, or before it.';
--> statement-breakpoint
comment on column ops.tracked.ends_at is 'No rule wants it any more: it is wanted up to here only, and leaves when that is complete.';
--> statement-breakpoint
comment on view ops.track_target is 'The series that the rules want now, by the list of coins as last read.';
--> statement-breakpoint
comment on column ops.track.id is 'Number of the rule.';
--> statement-breakpoint
comment on column ops.track.tier is 'list (a coin by its id), top (the best-ranked N) or all (every active coin).';
--> statement-breakpoint
comment on column ops.track.coin_id is 'Of tier list: the coin, market.coin.id.';
--> statement-breakpoint
comment on column ops.track.top is 'Of tier top: how many.';
--> statement-breakpoint
comment on column ops.track.interval is 'Width of the candles.';
--> statement-breakpoint
comment on column ops.track.quote is 'Currency of the prices.';
--> statement-breakpoint
comment on column ops.track.since is 'What opens before it is not wanted for this rule.';
--> statement-breakpoint
comment on column ops.track.priority is 'Higher goes first.';
--> statement-breakpoint
comment on column ops.track.target_age is 'How old the newest data may become before it is asked again.';
--> statement-breakpoint
comment on column ops.track.created_at is 'When it was first added.';
--> statement-breakpoint
comment on column ops.tier.id is 'Number of the tier.';
--> statement-breakpoint
comment on column ops.tier.tier is 'Why its series are tracked: list, top or all.';
--> statement-breakpoint
comment on column ops.tier.priority is 'Higher goes first.';
--> statement-breakpoint
comment on column ops.tier.interval is 'Width of the candles.';
--> statement-breakpoint
comment on column ops.tier.target_age is 'How old the newest data may become, by the rules.';
--> statement-breakpoint
comment on column ops.tier.planned_at is 'When achievable_age was worked out; null when never.';
--> statement-breakpoint
comment on column ops.tracked.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column ops.tracked.tier_id is 'ops.tier.id.';
--> statement-breakpoint
comment on column ops.tracked.tracked_at is 'Since when it is tracked.';
--> statement-breakpoint
comment on column ops.tracked.asked_at is 'When its newest candles were last asked for, answered or not; null when never.';
--> statement-breakpoint
comment on column ops.tracked.seen_until is 'Up to here upstream has told all it had; null when it was not answered yet.';
--> statement-breakpoint
comment on column ops.track_target.coin_id is 'market.coin.id.';
--> statement-breakpoint
comment on column ops.track_target.quote is 'Currency of the prices.';
--> statement-breakpoint
comment on column ops.track_target.interval is 'Width of the candles.';
--> statement-breakpoint
comment on column ops.track_target.tier is 'The first of list, top and all that holds.';
--> statement-breakpoint
comment on column ops.track_target.since is 'The earliest of its rules.';
--> statement-breakpoint
comment on column ops.track_target.priority is 'The highest of its rules.';
--> statement-breakpoint
comment on column ops.track_target.target_age is 'The shortest of its rules.';
