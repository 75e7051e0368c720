-- Millions of series: a service counts them from time to time, and what a backfill stored is summed from an index alone.

create table ops.counted (
  name text primary key,
  counted_at timestamptz not null,
  took_ms integer not null,
  answer jsonb not null
);
comment on table ops.counted is 'What takes too long to count while somebody waits, as a service counted it last.';
comment on column ops.counted.name is 'What was counted: series (for chandler status).';
comment on column ops.counted.counted_at is 'When.';
comment on column ops.counted.took_ms is 'How long that took; the longer, the less often it is done.';
comment on column ops.counted.answer is 'What was counted, as chandler status --json shows it.';

drop index ops.fetch_of_backfill;
create index fetch_of_backfill on ops.fetch (backfill_id, stored) where backfill_id is not null;

-- As before, but no longer `strict`: the planner puts a function into the statement that calls it only if it is not, and these are called
-- for each series that is counted. Of null they still make null.
create or replace function ops.seconds_of(i market.candle_interval) returns double precision
  language sql immutable parallel safe
  return case i
    when '5m'::market.candle_interval then 300.0::float8
    when '15m'::market.candle_interval then 900.0::float8
    when '30m'::market.candle_interval then 1800.0::float8
    when '1h'::market.candle_interval then 3600.0::float8
    when '6h'::market.candle_interval then 21600.0::float8
    when '12h'::market.candle_interval then 43200.0::float8
    when '24h'::market.candle_interval then 86400.0::float8
    else ops.price_seconds(i)
  end;

create or replace function ops.settled_until(i market.candle_interval) returns timestamptz
  language sql stable parallel safe
  return to_timestamp(floor((date_part('epoch', now()) - least(ops.seconds_of(i), 86400)) / ops.seconds_of(i)) * ops.seconds_of(i));
