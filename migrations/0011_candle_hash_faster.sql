-- The same hash, faster: extract() computes in numeric, date_part() in double precision, which holds each whole second exactly.
create or replace function market.candle_hash(open_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision) returns bigint
  language sql stable parallel safe
  return ('x' || encode(substr(sha256(int8send(date_part('epoch', open_time)::bigint)
    || coalesce(float8send(open), '\x7ff8000000000000'::bytea) || coalesce(float8send(high), '\x7ff8000000000000'::bytea)
    || coalesce(float8send(low), '\x7ff8000000000000'::bytea) || coalesce(float8send(close), '\x7ff8000000000000'::bytea)
    || coalesce(float8send(volume), '\x7ff8000000000000'::bytea) || coalesce(float8send(market_cap), '\x7ff8000000000000'::bytea)),
    1, 8), 'hex'))::bit(64)::bigint;
