-- One definition of missing, and of too young, for status, gaps and whoever reads the views.
create function ops.settled_until(i market.candle_interval) returns timestamptz
  language sql stable strict parallel safe
  return to_timestamp(floor(date_part('epoch', now()) / ops.seconds_of(i) - 1) * ops.seconds_of(i));
--> statement-breakpoint
create or replace view ops.series_now as
select s.id, s.coin_id, co.symbol, s.quote, s.interval, s.covered, t.width, t.settled_until, w.wanted, m.missing
from market.series s
join market.coin co on co.id = s.coin_id
cross join lateral (
  select
    width,
    to_timestamp(floor(date_part('epoch', co.first_data_at) / width) * width) as began,
    ops.settled_until(s.interval) as settled_until
  from (select ops.seconds_of(s.interval) as width offset 0) of_series
  offset 0
) t
cross join lateral (
  select s.wanted * tstzmultirange(tstzrange(t.began, greatest(now(), t.began))) as wanted offset 0
) w
cross join lateral (select w.wanted - s.covered as missing offset 0) m;
--> statement-breakpoint
comment on function ops.settled_until(market.candle_interval) is 'Candles that open before this have closed at least one width ago: an answer about them is final.';
--> statement-breakpoint
comment on column market.coverage.slots_missing is 'Slots wanted up to now and not covered, those too young for a final answer included. The slots of the series in market.gaps, which says why, add up to it.';
--> statement-breakpoint
comment on column market.coverage.slots_unsettled is 'Of the missing slots, those too young for a final answer: their candle has not closed, or closed less than one candle width ago.';
--> statement-breakpoint
comment on column market.gaps.slots is 'How many candle slots the gap holds, those too young for a final answer included. Those of a series add up to market.coverage.slots_missing.';
