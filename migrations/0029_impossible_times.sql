-- What nobody has answered is neither served as known nor in the way of a mending.

create or replace function ops.whole_slots(spans tstzmultirange, width double precision) returns tstzmultirange
  language sql immutable parallel safe
  return coalesce((
    -- A slot that ends later than any instant of Postgres has no end.
    select range_agg(tstzrange(
      case when b.first >= -210866803200 then to_timestamp(b.first) end, case when b.last <= 9224318015999 then to_timestamp(b.last) end))
    from unnest(spans) r
    cross join lateral (
      select floor(date_part('epoch', lower(r)) / width) * width as first,
        case when upper_inc(r) then floor(date_part('epoch', upper(r)) / width) + 1 else ceil(date_part('epoch', upper(r)) / width) end * width as last
    ) b), '{}');

-- For the functions below; a row for each difference that a mending wrote down, of which there are few.
create function ops.slots_unlike_told(of_series integer)
  returns table (step integer, slots tstzmultirange)
  language sql stable parallel safe
begin atomic
  select m.number, case
      -- The day is added, so that no text of whoever wrote it is an error.
      when p.parts[2] is not null then tstzmultirange(tstzrange(one.slot, one.slot + market.width_of(s.interval)))
      else r.slots * m.slots - coalesce((
        select range_agg(b.slots) from market.evidence b where b.series_id = m.series_id and b.number > r.number and b.number < m.number), '{}')
    end
  from market.series s
  join market.evidence m on m.series_id = s.id
  cross join lateral regexp_matches(m.detail, 'step (\d+) told [^;]*, '
    '(?:the slot ([1-9]\d{3}-(?:0[1-9]|1[0-2])-)([0-3]\d)( (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ) differs|which of its slots is not known)', 'g') p(parts)
  cross join lateral (
    select (p.parts[2] || '01' || p.parts[4])::timestamptz + make_interval(hours => 24 * (p.parts[3]::integer - 1)) as slot
  ) one
  join market.evidence r on r.series_id = m.series_id and r.number::text = p.parts[1]
  where s.id = slots_unlike_told.of_series and m.kind = 'mended' and m.detail is not null;
end;
comment on function ops.slots_unlike_told(integer) is 'Of a series, the slots of which a mending (step) found another value than an answer had told, as the step says: these slots, or one of them.';

create or replace function market.candles_as_known(at timestamptz)
  returns table (coin_id text, symbol text, quote text, "interval" market.candle_interval, open_time timestamptz, close_time timestamptz,
    open double precision, high double precision, low double precision, close double precision, volume double precision,
    market_cap double precision, is_final boolean, known_at timestamptz)
  language sql stable parallel safe
begin atomic
  select s.coin_id, co.symbol, s.quote, s.interval, c.open_time,
    c.open_time + market.width_of(s.interval) - interval '1 second' as close_time,
    c.open, c.high, c.low, c.close, c.volume, c.market_cap, true as is_final,
    (select n.known_at from ops.step_about(s.id, s.interval, c.open_time, k.step) n) as known_at
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, candles_as_known.at) k
  join market.candle c on c.series_id = s.id and c.interval = s.interval
    and c.open_time >= lower(k.unchanged) and c.open_time < upper(k.unchanged) and k.unchanged @> c.open_time
  where s.interval <= '24h' and candles_as_known.at is not null
  union all
  select s.coin_id, co.symbol, s.quote, s.interval, r.open_time,
    r.open_time + market.width_of(s.interval) - interval '1 second',
    r.open, r.high, r.low, r.close, r.volume, r.market_cap, true,
    (select n.known_at from ops.step_about(s.id, s.interval, r.open_time, k.step) n)
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, candles_as_known.at) k
  cross join lateral (
    select coalesce(range_agg(d.slots), '{}') as slots, array_agg(d.step) as of_steps, array_agg(d.slots) as of_slots from ops.slots_unlike_told(s.id) d
  ) unlike
  cross join lateral (
    select v.* from market.revision v
    where v.series_id = s.id and v.step > k.step and k.final @> v.open_time and not v.was_empty
      -- What a mending found is no value that was known, where the digest of the answer is another. What the answer told is lost.
      and not (v.reason = 'mended' and unlike.slots @> v.open_time and exists (
        select from unnest(unlike.of_steps, unlike.of_slots) d(step, slots) where d.step = v.step and d.slots @> v.open_time))
      -- The first step after `at` that is about the slot. Steps that remove leave no revision where there was no candle.
      and not exists (select from market.revision w
        where w.series_id = v.series_id and w.open_time = v.open_time and w.step > k.step and w.step < v.step)
      and not exists (select from market.evidence e
        where e.series_id = s.id and e.kind in ('mended', 'retention') and e.number > k.step and e.number < v.step and e.slots @> v.open_time)
    offset 0
  ) r
  where s.interval <= '24h' and candles_as_known.at is not null;
end;
comment on function market.candles_as_known(timestamptz) is 'The candles that were final at an instant, with the values that they had then, and since when each was known (known_at). To the second: what was stored within the second of the instant was known. Columns as in market.candles, without made_of and series_id: only stored candles, none that were made of finer ones. A coin has its id and symbol of today. Not kept, and so not here: values that were not final then, candles that were removed because of their age, and values that a mending found where the digest of the answer is another: what the answer told is lost. No rows where the instant is null. Example: select * from market.candles_as_known(''2026-03-01'') where coin_id = ''btc-bitcoin'' and interval = ''24h'';';

create or replace function market.prices_as_known(at timestamptz)
  returns table (coin_id text, symbol text, quote text, "interval" text, "time" timestamptz, price double precision,
    volume_24h double precision, market_cap double precision, is_final boolean, known_at timestamptz)
  language sql stable parallel safe
begin atomic
  select s.coin_id, co.symbol, s.quote, substr(s.interval::text, 8) as "interval", c.time, c.price, c.volume_24h, c.market_cap, true as is_final,
    (select n.known_at from ops.step_about(s.id, s.interval, c.time, k.step) n) as known_at
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, prices_as_known.at) k
  join market.price c on c.series_id = s.id
    and c.time >= lower(k.unchanged) and c.time < upper(k.unchanged) and k.unchanged @> c.time
  where s.interval > '24h' and prices_as_known.at is not null
  union all
  select s.coin_id, co.symbol, s.quote, substr(s.interval::text, 8), r.open_time, r.close, r.volume, r.market_cap, true,
    (select n.known_at from ops.step_about(s.id, s.interval, r.open_time, k.step) n)
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, prices_as_known.at) k
  cross join lateral (
    select coalesce(range_agg(d.slots), '{}') as slots, array_agg(d.step) as of_steps, array_agg(d.slots) as of_slots from ops.slots_unlike_told(s.id) d
  ) unlike
  cross join lateral (
    select v.* from market.revision v
    where v.series_id = s.id and v.step > k.step and k.final @> v.open_time and not v.was_empty
      -- What a mending found is no value that was known, where the digest of the answer is another. What the answer told is lost.
      and not (v.reason = 'mended' and unlike.slots @> v.open_time and exists (
        select from unnest(unlike.of_steps, unlike.of_slots) d(step, slots) where d.step = v.step and d.slots @> v.open_time))
      -- The first step after `at` that is about the slot. Steps that remove leave no revision where there was no candle.
      and not exists (select from market.revision w
        where w.series_id = v.series_id and w.open_time = v.open_time and w.step > k.step and w.step < v.step)
      and not exists (select from market.evidence e
        where e.series_id = s.id and e.kind in ('mended', 'retention') and e.number > k.step and e.number < v.step and e.slots @> v.open_time)
    offset 0
  ) r
  where s.interval > '24h' and prices_as_known.at is not null;
end;

-- No time is in no slot: null gave the story of a slot that is known to be empty.
create or replace function market.story(coin text, "interval" market.candle_interval, slot_time timestamptz, quote text default 'usd')
  returns table (at timestamptz, event text, detail text)
  language sql stable
begin atomic
  select s.at, s.event, s.detail from ops.story((select market.coin_of(coin)), story."interval", slot_time, quote) s
  where story.slot_time is not null;
end;
