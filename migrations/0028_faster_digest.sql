-- The same hash and the same sums in two thirds of the time: storing an answer computes both for each of its candles, and verify does.

-- From version 18 on, Postgres casts bytes to a number. Before, they go through the text of a bit string, which takes as long as the SHA-256.
do $$
begin
  if current_setting('server_version_num')::integer >= 180000 then
    execute $function$
      create or replace function market.candle_hash(open_time timestamptz, open double precision, high double precision,
          low double precision, close double precision, volume double precision, market_cap double precision) returns bigint
        language sql stable parallel safe
        return substr(sha256(int8send(date_part('epoch', open_time)::bigint)
          || coalesce(float8send(open), '\x7ff8000000000000'::bytea) || coalesce(float8send(high), '\x7ff8000000000000'::bytea)
          || coalesce(float8send(low), '\x7ff8000000000000'::bytea) || coalesce(float8send(close), '\x7ff8000000000000'::bytea)
          || coalesce(float8send(volume), '\x7ff8000000000000'::bytea) || coalesce(float8send(market_cap), '\x7ff8000000000000'::bytea)),
          1, 8)::bigint
    $function$;
  end if;
end
$$;

create or replace function ops.sums(of_series integer, of_interval market.candle_interval, stretch tstzrange, final tstzmultirange, told tstzmultirange,
    out candles integer, out digest bigint, out final_candles integer, out told_candles integer, out told_digest bigint, out told_locator bigint)
  language plpgsql stable as $$
declare
  -- Once, not for each candle: the function is strict, so the planner cannot put it into the statement.
  width constant double precision := ops.seconds_of(of_interval);
begin
  select count(*),
    ops.modulo_2_64(coalesce(sum(h), 0)),
    count(*) filter (where final @> open_time),
    count(*) filter (where is_told),
    ops.modulo_2_64(coalesce(sum(h) filter (where is_told), 0)),
    ops.modulo_2_64(coalesce(sum((h & 4294967295) * k) filter (where is_told), 0))
  into candles, digest, final_candles, told_candles, told_digest, told_locator
  from (
    select c.open_time, market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap) as h,
      (date_part('epoch', c.open_time) / width)::bigint as k, told @> c.open_time as is_told
    from ops.stored(of_series, of_interval) c
    where c.open_time >= coalesce(lower(stretch), '-infinity') and c.open_time < coalesce(upper(stretch), 'infinity')
    offset 0
  ) hashed;
end
$$;
