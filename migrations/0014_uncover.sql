-- What chandler verify found wrong can be asked again: a stretch that is no longer covered is a gap like any other.
create function ops.uncover(which integer, from_time timestamptz default '-infinity', to_time timestamptz default 'infinity')
  returns void language plpgsql as $$
declare
  stretch constant tstzmultirange := tstzmultirange(tstzrange(from_time, to_time));
begin
  -- Whoever stores an answer of the series meanwhile is waited for, and then waits.
  perform from market.series where id = which for update;
  if not found then
    raise exception 'no series has the number %', which;
  end if;
  -- No answer could ever replace these.
  delete from market.candle c using market.series s
    where s.id = which and c.series_id = s.id and c.interval = s.interval and stretch @> c.open_time
      and mod(extract(epoch from c.open_time), ops.seconds_of(s.interval)::numeric) <> 0;
  update market.series s
    set covered = s.covered - stretch,
      covered_candles = (
        select count(*) from market.candle c
        where c.series_id = s.id and c.interval = s.interval and (s.covered - stretch) @> c.open_time
      )
    where s.id = which;
end
$$;
--> statement-breakpoint
comment on function ops.uncover(integer, timestamptz, timestamptz) is 'Takes a stretch of a series out of coverage, so that the next backfill asks for it again: for what chandler verify found wrong. The candles stay until an answer replaces them, except those off the grid; the rest of the series is counted anew.';
