-- Where nothing was stored of the slots before, Chandler computes counts and digest from the answer itself. So Postgres need not read the candles
-- again, and a candle that Postgres stored otherwise than the answer told it would differ from the digest.
drop function ops.record_answer(integer, market.candle_interval, tstzrange, tstzmultirange, tstzmultirange, tstzmultirange, timestamptz,
  timestamptz, bigint, bytea, integer, bigint, integer, text);
create function ops.record_answer(of_series integer, of_interval market.candle_interval, span tstzrange, granted tstzmultirange,
    told tstzmultirange, once tstzmultirange, at timestamptz, answer_as_of timestamptz, of_fetch bigint, body bytea,
    candles_before integer, digest_before bigint, final_before integer, why text,
    -- As ops.sums would give them; null: it does.
    candles_now integer default null, digest_now bigint default null, final_now integer default null,
    told_candles integer default null, told_digest bigint default null, told_locator bigint default null)
  returns void language plpgsql as $$
declare
  covered_now tstzmultirange;
  new_link bytea;
begin
  select covered + granted into covered_now from market.series where id = of_series;
  if candles_now is null then
    select s.candles, s.digest, s.final_candles, s.told_candles, s.told_digest, s.told_locator
      into candles_now, digest_now, final_now, told_candles, told_digest, told_locator
      from ops.sums(of_series, of_interval, span, covered_now, told) s;
  end if;
  if not isempty(told) then
    new_link := ops.add_evidence(of_series, 'answer', told, at, answer_as_of, told_candles, told_digest, told_locator, of_fetch, body, why);
  end if;
  update market.series set
    covered = covered_now,
    covered_candles = covered_candles + final_now - final_before,
    candles = candles + candles_now - candles_before,
    digest = ops.modulo_2_64(digest::numeric + digest_now - digest_before),
    empty_once = empty_once - tstzmultirange(span) + once,
    answered_at = greatest(answered_at, answer_as_of),
    steps = steps + (new_link is not null)::integer,
    link = coalesce(new_link, link)
  where id = of_series;
end
$$;
comment on function ops.record_answer(integer, market.candle_interval, tstzrange, tstzmultirange, tstzmultirange, tstzmultirange, timestamptz, timestamptz, bigint, bytea, integer, bigint, integer, text, integer, bigint, integer, integer, bigint, bigint) is 'Writes what follows for a series from the candles of an answer: coverage, counts, digest and evidence.';
