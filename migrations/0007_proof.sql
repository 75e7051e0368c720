-- Proof: which answer told what about which slots, chained per series, and the digest of everything that is stored.

-- The hash of a candle depends on all of its 56 bytes: open time in seconds, then its six numbers; null is the NaN 7ff8000000000000.
-- Stable, not immutable, because extract() is: so the planner can put it into the statement that calls it.
create function market.candle_hash(open_time timestamptz, open double precision, high double precision, low double precision,
    close double precision, volume double precision, market_cap double precision) returns bigint
  language sql stable parallel safe
  return ('x' || encode(substr(sha256(int8send(extract(epoch from open_time)::bigint)
    || coalesce(float8send(open), '\x7ff8000000000000'::bytea) || coalesce(float8send(high), '\x7ff8000000000000'::bytea)
    || coalesce(float8send(low), '\x7ff8000000000000'::bytea) || coalesce(float8send(close), '\x7ff8000000000000'::bytea)
    || coalesce(float8send(volume), '\x7ff8000000000000'::bytea) || coalesce(float8send(market_cap), '\x7ff8000000000000'::bytea)),
    1, 8), 'hex'))::bit(64)::bigint;
comment on function market.candle_hash(timestamptz, double precision, double precision, double precision, double precision, double precision, double precision) is 'The first eight bytes of the SHA-256 of a candle: its open time in seconds (a signed integer) and its six numbers (doubles; null as the NaN 7ff8000000000000), each eight bytes, big end first.';

-- Digests are sums modulo 2^64, so they do not depend on the order of the candles.
create function ops.modulo_2_64(total numeric) returns bigint
  language sql immutable strict parallel safe
  return (mod(mod(total + 9223372036854775808, 18446744073709551616) + 18446744073709551616, 18446744073709551616)
    - 9223372036854775808)::bigint;
comment on function ops.modulo_2_64(numeric) is 'A sum of hashes modulo 2^64, as a signed number.';

alter table market.series
  add column candles bigint not null default 0,
  add column digest bigint not null default 0,
  add column empty_once tstzmultirange not null default '{}',
  add column steps integer not null default 0,
  add column link bytea;
comment on column market.series.candles is 'Stored candles of the series, final or not.';
comment on column market.series.digest is 'Sum of market.candle_hash of all its stored candles, modulo 2^64. Written in the transaction that changes a candle; chandler verify computes it again.';
comment on column market.series.empty_once is 'Covered slots without a candle for which only one answer is the evidence; another answer confirms or contradicts it.';
comment on column market.series.steps is 'How many steps its evidence has: the number of the newest.';
comment on column market.series.link is 'Hash that chains all its evidence: that of the newest step. Null while there is none.';

-- One row per step; but small steps that continue each other share a row, or a year of daily refreshes would need more bytes than its candles.
create table market.evidence (
  series_id integer not null constraint evidence_series_id_series_id_fk references market.series on delete cascade,
  number integer not null,
  kind text not null,
  slots tstzmultirange not null,
  known_at timestamptz not null,
  as_of timestamptz not null,
  candles integer not null,
  digest bigint not null,
  locator bigint not null,
  link bytea not null,
  step_seconds integer[],
  step_slots smallint[],
  fetch_id bigint,
  body_sha256 bytea,
  detail text,
  constraint evidence_series_id_number_pk primary key (series_id, number),
  constraint evidence_kind check (kind in ('answer', 'mended', 'retention', 'renamed', 'adopted'))
) with (fillfactor = 80);
comment on table market.evidence is 'Why each final slot is what it is: one step for each answer that made slots final or changed them, and for each mending, retention and change of id. Kept as long as the candles. market.evidence_steps has a row per step.';
comment on column market.evidence.series_id is 'market.series.id.';
comment on column market.evidence.number is 'Number of the step within its series, from 1; of a row with several steps, that of the first.';
comment on column market.evidence.kind is 'answer: an answer of upstream told what the slots hold; mended: they were taken out of coverage, to be requested again; retention: they were removed because of their age; renamed: the coin was given a new id; adopted: they were final before evidence was kept.';
comment on column market.evidence.slots is 'The slots it is about: with a candle, or known to be empty.';
comment on column market.evidence.known_at is 'When it was stored, by our clock, in whole seconds; of several steps, the first.';
comment on column market.evidence.as_of is 'No fact in the answer is newer than this; of several steps, the last.';
comment on column market.evidence.candles is 'How many of the slots had a candle then.';
comment on column market.evidence.digest is 'Sum of market.candle_hash of those candles, modulo 2^64.';
comment on column market.evidence.locator is 'Sum of (lower 32 bits of the hash) × (open time / width of the interval), modulo 2^64: when one candle differs, it tells which.';
comment on column market.evidence.link is 'SHA-256 of the link of the step before (of the first: of coin, quote and interval, with spaces between), followed by kind, detail, known_at, slots, candles and digest, in the binary form of Postgres; of several steps, that of the last.';
comment on column market.evidence.step_seconds is 'Of a row with several steps: how many seconds after known_at each was stored. Null: the row is one step.';
comment on column market.evidence.step_slots is 'How many slots each of these steps told, in the order of time; null: one each.';
comment on column market.evidence.fetch_id is 'The request, ops.fetch.id, which may have been removed since because of its age; of several steps, that of the last.';
comment on column market.evidence.body_sha256 is 'SHA-256 of the answer; of several steps, that of the last.';
comment on column market.evidence.detail is 'renamed: the old id and the new one. mended: why, or how what was found there differed from what had been told; null when it did not.';

alter table market.revision
  add column step integer,
  add column reason text not null default 'late answer',
  add column known_at timestamptz,
  add constraint revision_reason check (reason in ('late answer', 'removed by upstream', 'mended', 'contradicted'));
comment on column market.revision.step is 'The step of market.evidence that replaced these values; null for a revision from before evidence was kept.';
comment on column market.revision.reason is 'late answer: a later answer has other values, or a candle where none was; removed by upstream: a later answer has no candle there; mended: taken out of coverage, to be requested again; contradicted: a later answer shows that the slot was not known to be empty.';
comment on column market.revision.known_at is 'When the values were replaced, by our clock; null for a revision from before evidence was kept.';

create view market.evidence_steps as
select
  e.series_id,
  e.number + coalesce(i.n, 1) - 1 as number,
  e.kind,
  case when i.n is null then e.slots else tstzmultirange(tstzrange(
    lower(e.slots) + (i.upto - i.slots) * market.width_of(s.interval), lower(e.slots) + i.upto * market.width_of(s.interval)
  )) end as slots,
  e.known_at + coalesce(i.seconds, 0) * interval '1 second' as known_at,
  e.detail
from market.evidence e
join market.series s on s.id = e.series_id
left join lateral (
  select u.n, u.seconds, u.slots, sum(u.slots) over (order by u.n) as upto
  from (
    select t.n::int as n, t.seconds, coalesce(e.step_slots[t.n], 1)::int as slots
    from unnest(e.step_seconds) with ordinality as t(seconds, n)
  ) u
) i on true;
comment on view market.evidence_steps is 'market.evidence with a row per step.';
comment on column market.evidence_steps.series_id is 'market.series.id.';
comment on column market.evidence_steps.number is 'Number of the step within its series, from 1.';
comment on column market.evidence_steps.kind is 'As in market.evidence.';
comment on column market.evidence_steps.slots is 'The slots it is about.';
comment on column market.evidence_steps.known_at is 'When it was stored, by our clock.';
comment on column market.evidence_steps.detail is 'As in market.evidence.';

create function ops.evidence_link(before bytea, kind text, detail text, known_at timestamptz, slots tstzmultirange, candles integer, digest bigint)
  returns bytea language sql stable parallel safe
  return sha256(before || convert_to(kind || coalesce(' ' || detail, ''), 'UTF8') || timestamptz_send(known_at) || multirange_send(slots)
    || int4send(candles) || int8send(digest));
comment on function ops.evidence_link(bytea, text, text, timestamptz, tstzmultirange, integer, bigint) is 'The link of a step, given that of the step before.';

create function ops.first_link(coin_id text, quote text, i market.candle_interval) returns bytea
  language sql stable parallel safe
  return sha256(convert_to(coin_id || ' ' || quote || ' ' || i, 'UTF8'));
comment on function ops.first_link(text, text, market.candle_interval) is 'What the first step of a series is chained to: the name of the series.';

-- Everything that makes slots final, changes or removes final candles calls this, with the series locked, after it has changed the candles.
-- `told`: the slots whose final value it set (or, but for answers, took away). The sums are those of the candles of `told`.
-- The caller then sets `link` of the series to the result, and counts one step more.
create function ops.add_evidence(of_series integer, of_kind text, told tstzmultirange, at timestamptz, answer_as_of timestamptz,
    told_candles integer, told_digest bigint, told_locator bigint, of_fetch bigint default null, body bytea default null, why text default null)
  returns bytea language plpgsql as $$
declare
  most_slots constant integer := 32;
  most_steps constant integer := 256;
  s record;
  last market.evidence;
  known timestamptz;
  new_link bytea;
  slots_told integer;
begin
  select coin_id, quote, interval, steps, link, ops.seconds_of(interval) as width into s from market.series where id = of_series;
  if s.steps > 0 then
    select * into last from market.evidence where series_id = of_series order by number desc limit 1;
  end if;
  -- Never before the step before, whatever our clock says.
  known := greatest(date_trunc('second', at),
    last.known_at + coalesce(last.step_seconds[cardinality(last.step_seconds)], 0) * interval '1 second');
  new_link := ops.evidence_link(coalesce(s.link, ops.first_link(s.coin_id, s.quote, s.interval)), of_kind, why, known, told, told_candles, told_digest);
  slots_told := ((date_part('epoch', upper(told)) - date_part('epoch', lower(told))) / s.width)::integer;
  if of_kind = 'answer' and last.step_seconds is not null and cardinality(last.step_seconds) < most_steps
      and slots_told <= most_slots and told = range_merge(told)::tstzmultirange and upper(last.slots) = lower(told) then
    update market.evidence set
      slots = last.slots + told,
      as_of = answer_as_of,
      candles = last.candles + told_candles,
      digest = ops.modulo_2_64(last.digest::numeric + told_digest),
      locator = ops.modulo_2_64(last.locator::numeric + told_locator),
      link = new_link,
      step_seconds = last.step_seconds || extract(epoch from known - last.known_at)::integer,
      step_slots = case when last.step_slots is not null or slots_told > 1
        then coalesce(last.step_slots, array_fill(1::smallint, array[cardinality(last.step_seconds)])) || slots_told::smallint end,
      fetch_id = of_fetch,
      body_sha256 = body
    where series_id = of_series and number = last.number;
  else
    insert into market.evidence (series_id, number, kind, slots, known_at, as_of, candles, digest, locator, link, step_seconds, step_slots,
      fetch_id, body_sha256, detail)
    values (of_series, s.steps + 1, of_kind, told, known, answer_as_of, told_candles, told_digest, told_locator, new_link,
      case when of_kind = 'answer' and slots_told <= most_slots and told = range_merge(told)::tstzmultirange then array[0] end,
      case when of_kind = 'answer' and slots_told between 2 and most_slots and told = range_merge(told)::tstzmultirange then array[slots_told::smallint] end,
      of_fetch, body, why);
  end if;
  return new_link;
end
$$;
comment on function ops.add_evidence(integer, text, tstzmultirange, timestamptz, timestamptz, integer, bigint, bigint, bigint, bytea, text) is 'Writes one step of evidence, and chains it to the step before. Returns the new link of the series.';

-- Sums of the stored candles of a stretch: of all, of the final ones, and of those in `told`.
create function ops.sums(of_series integer, of_interval market.candle_interval, stretch tstzrange, final tstzmultirange, told tstzmultirange,
    out candles integer, out digest bigint, out final_candles integer, out told_candles integer, out told_digest bigint, out told_locator bigint)
  language plpgsql stable as $$
declare
  -- Once, not for each candle: the function is strict, so the planner cannot put it into the statement.
  width constant double precision := ops.seconds_of(of_interval);
begin
  select count(*),
    ops.modulo_2_64(coalesce(sum(h), 0)),
    count(*) filter (where final @> open_time),
    count(*) filter (where told @> open_time),
    ops.modulo_2_64(coalesce(sum(h) filter (where told @> open_time), 0)),
    ops.modulo_2_64(coalesce(sum((h & 4294967295) * k) filter (where told @> open_time), 0))
  into candles, digest, final_candles, told_candles, told_digest, told_locator
  from (
    select c.open_time, market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap) as h,
      (date_part('epoch', c.open_time) / width)::bigint as k
    from market.candle c
    where c.series_id = of_series and c.interval = of_interval
      and c.open_time >= coalesce(lower(stretch), '-infinity') and c.open_time < coalesce(upper(stretch), 'infinity')
    offset 0
  ) hashed;
end
$$;
comment on function ops.sums(integer, market.candle_interval, tstzrange, tstzmultirange, tstzmultirange) is 'Counts and digests of the stored candles of a stretch of a series: all of them, those inside final (counted only), and those inside told.';

-- The end of the transaction that stores an answer: everything about the series that follows from its candles. `before`: sums of `span` before.
create function ops.record_answer(of_series integer, of_interval market.candle_interval, span tstzrange, granted tstzmultirange,
    told tstzmultirange, once tstzmultirange, at timestamptz, answer_as_of timestamptz, of_fetch bigint, body bytea,
    candles_before integer, digest_before bigint, final_before integer)
  returns void language plpgsql as $$
declare
  final_now tstzmultirange;
  now_there record;
  new_link bytea;
begin
  select covered + granted into final_now from market.series where id = of_series;
  select * into now_there from ops.sums(of_series, of_interval, span, final_now, told);
  if not isempty(told) then
    new_link := ops.add_evidence(of_series, 'answer', told, at, answer_as_of, now_there.told_candles, now_there.told_digest,
      now_there.told_locator, of_fetch, body);
  end if;
  update market.series set
    covered = final_now,
    covered_candles = covered_candles + now_there.final_candles - final_before,
    candles = candles + now_there.candles - candles_before,
    digest = ops.modulo_2_64(digest::numeric + now_there.digest - digest_before),
    empty_once = empty_once - tstzmultirange(span) + once,
    answered_at = greatest(answered_at, answer_as_of),
    steps = steps + (new_link is not null)::integer,
    link = coalesce(new_link, link)
  where id = of_series;
end
$$;
comment on function ops.record_answer(integer, market.candle_interval, tstzrange, tstzmultirange, tstzmultirange, tstzmultirange, timestamptz, timestamptz, bigint, bytea, integer, bigint, integer) is 'Writes what follows for a series from the candles of an answer: coverage, counts, digest and evidence.';

-- Who changes a candle and then mends it must not hide that: the step of the mending says what differed. Sums are of whole steps, as answers
-- told them. Of what retention has removed nothing is known any more; a single slot that differs is left out if it is not mended.
create function ops.unlike_told(of_series integer, of_interval market.candle_interval, mended tstzmultirange) returns text
  language plpgsql stable as $$
declare
  width constant numeric := ops.seconds_of(of_interval);
  reach constant tstzmultirange := (select range_agg(slots) from market.evidence
    where series_id = of_series and kind in ('answer', 'adopted') and slots && mended);
begin
  return (
    with told as materialized (
      select e.*, e.number + coalesce(cardinality(e.step_seconds), 1) - 1 as last,
        e.slots - coalesce(range_agg(e.slots) over later, '{}') as latest,
        coalesce(range_agg(e.slots) filter (where e.kind = 'retention') over later, '{}') as removed
      from market.evidence e where e.series_id = of_series and e.slots && reach
      window later as (order by e.number desc rows between unbounded preceding and 1 preceding)
    ), found as (
      select t.number, t.latest * mended as mended_now, t.candles as told_candles, t.digest as told_digest,
        stored.told_candles + replaced.candles as candles,
        ops.modulo_2_64(stored.told_digest + replaced.digest) as digest,
        ops.modulo_2_64(stored.told_locator + replaced.locator - t.locator) as locator
      from told t
      cross join lateral ops.sums(of_series, of_interval, range_merge(t.latest), '{}', t.latest) stored
      -- What the next step about a slot replaced is what was there until then.
      cross join lateral (
        select count(*)::integer as candles, coalesce(sum(h), 0) as digest,
          coalesce(sum((h & 4294967295) * round(extract(epoch from open_time) / width)), 0) as locator
        from (
          select distinct on (v.open_time) v.open_time, v.was_empty,
            market.candle_hash(v.open_time, v.open, v.high, v.low, v.close, v.volume, v.market_cap) as h
          from market.revision v
          where v.series_id = of_series and v.step > t.last and t.slots @> v.open_time and not t.latest @> v.open_time
            and not exists (select from market.evidence g where g.series_id = of_series and g.kind = 'mended'
              and g.number > t.last and g.number < v.step and g.slots @> v.open_time)
          order by v.open_time, v.step
        ) v
        where not was_empty
      ) replaced
      where t.kind in ('answer', 'adopted') and t.latest && mended and not t.slots && t.removed
    )
    select 'what was found differs from what was told: ' || string_agg(
      format('step %s told %s candles (digest %s), found were %s (digest %s), %s', f.number, f.told_candles, lpad(to_hex(f.told_digest), 16, '0'),
        f.candles, lpad(to_hex(f.digest), 16, '0'), coalesce('the slot ' || ops.say_time(one.slot) || ' differs',
          'which of its slots is not known')), '; ' order by f.number)
    from found f
    -- As src/views/verify/modulo.ts finds the only slot that differs.
    left join lateral (
      select to_timestamp((f.locator / d.d * width)::float8) as slot
      from (select mod(mod(f.digest::numeric - f.told_digest, 4294967296) + 4294967296, 4294967296) as low) l
      cross join lateral (values (l.low), (l.low - 4294967296)) d(d)
      where abs(f.candles - f.told_candles) <= 1 and d.d <> 0 and mod(f.locator, d.d) = 0 and f.locator / d.d between 1 and 1099511627776
      limit 1
    ) one on true
    where (f.candles <> f.told_candles or f.digest <> f.told_digest) and coalesce(f.mended_now @> one.slot, true)
  );
end
$$;
comment on function ops.unlike_told(integer, market.candle_interval, tstzmultirange) is 'For ops.uncover: of the steps that told these slots last, which do not agree with the stored candles, in words; null when all agree.';

-- `chandler verify` offers this for what it finds wrong: a stretch that is not covered is a gap, and backfills fetch it again. Final values
-- go to market.revision first: nothing final changes without a trace.
create or replace function ops.uncover(which integer, from_time timestamptz default '-infinity', to_time timestamptz default 'infinity')
  returns void language plpgsql as $$
declare
  s market.series;
  told tstzmultirange;
  found_there record;
  left_there record;
  differed text;
  new_link bytea;
begin
  -- Waits for a transaction that stores an answer of this series, and holds up the next one.
  select * into s from market.series where id = which for update;
  if not found then
    raise exception 'no series has the number %', which;
  end if;
  told := s.covered * tstzmultirange(tstzrange(from_time, to_time));
  -- Before anything is written: a revision of this mending would count as replaced.
  differed := ops.unlike_told(which, s.interval, told);
  select * into found_there from ops.sums(which, s.interval, '(,)', '{}', told);
  insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, open, high, low, close, volume, market_cap)
    select which, open_time, clock_timestamp(), clock_timestamp(), s.steps + 1, 'mended', open, high, low, close, volume, market_cap
    from market.candle where series_id = which and interval = s.interval and told @> open_time order by open_time;
  -- Candles off the grid: no answer ever replaces them.
  delete from market.candle
    where series_id = which and interval = s.interval and open_time >= from_time and open_time < to_time
      and mod(extract(epoch from open_time), ops.seconds_of(s.interval)::numeric) <> 0;
  if not isempty(told) then
    new_link := ops.add_evidence(which, 'mended', told, clock_timestamp(), clock_timestamp(), found_there.told_candles,
      found_there.told_digest, found_there.told_locator, why => differed);
  end if;
  select * into left_there from ops.sums(which, s.interval, '(,)', s.covered - told, '{}');
  update market.series set
    covered = covered - told,
    empty_once = empty_once - told,
    covered_candles = left_there.final_candles,
    candles = left_there.candles,
    digest = left_there.digest,
    steps = steps + (new_link is not null)::integer,
    link = coalesce(new_link, link)
  where id = which;
end
$$;
comment on function ops.uncover(integer, timestamptz, timestamptz) is 'Takes a stretch of a series out of coverage, so that the next backfill requests it again: for what chandler verify found wrong. Its final values are kept in market.revision. The candles stay until an answer replaces them, except those off the grid; the whole series is counted anew.';

-- The digest of each document beside it, written in the statement that writes the document.
alter table market.document add column received_sha256 bytea;
alter table market.document_revision add column received_sha256 bytea;
comment on column market.document.received_sha256 is 'SHA-256 of the text in received (UTF-8), written with the answer. chandler verify compares it with received.';
comment on column market.document_revision.received_sha256 is 'As in market.document, of the answer that is kept here.';

-- For series that were filled before evidence was kept.
create function ops.adopt_evidence() returns void language plpgsql as $$
declare
  s market.series;
  there record;
  new_link bytea;
begin
  for s in select * from market.series where steps = 0 order by id for update loop
    select * into there from ops.sums(s.id, s.interval, '(,)', s.covered, s.covered);
    new_link := null;
    if not isempty(s.covered) then
      new_link := ops.add_evidence(s.id, 'adopted', s.covered, clock_timestamp(), coalesce(s.answered_at, clock_timestamp()),
        there.told_candles, there.told_digest, there.told_locator);
    end if;
    update market.series set candles = there.candles, digest = there.digest, steps = (new_link is not null)::integer, link = new_link
      where id = s.id and (there.candles > 0 or new_link is not null);
  end loop;
  update market.document set received_sha256 = sha256(convert_to(received::text, 'UTF8')) where received_sha256 is null;
  update market.document_revision set received_sha256 = sha256(convert_to(received::text, 'UTF8')) where received_sha256 is null;
end
$$;
comment on function ops.adopt_evidence() is 'Writes one step of evidence for each series that has none, about all that it covers, and digests of documents that have none: for data from before evidence was kept.';
select ops.adopt_evidence();

drop view market.coverage;
create view market.coverage as
select
  s.coin_id,
  s.symbol,
  s.quote,
  s.interval,
  lower(s.wanted) as wanted_from,
  upper(s.wanted) as wanted_to,
  n.wanted as slots_wanted,
  n.wanted - n.missing as slots_covered,
  n.missing as slots_missing,
  n.unsettled as slots_unsettled,
  s.covered,
  case
    when n.wanted = n.unsettled then 100.0
    else trunc(100.0 * (n.wanted - n.missing) / greatest(n.wanted - n.unsettled, n.wanted - n.missing), 2)
  end as percent_complete,
  e.once as slots_empty_once,
  e.total - r.covered_candles - e.once as slots_empty_twice
from ops.series_now s
join market.series r on r.id = s.id
cross join lateral (
  select
    (
      select coalesce(sum(ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width)), 0)::bigint
      from unnest(s.wanted) r
    ) as wanted,
    coalesce(sum(ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width)), 0)::bigint as missing,
    coalesce(sum(greatest(
      ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', greatest(lower(r), s.settled_until)) / s.width), 0
    )), 0)::bigint as unsettled
  from unnest(s.missing) r
) n
cross join lateral (
  select
    (select coalesce(sum((date_part('epoch', upper(c)) - date_part('epoch', lower(c))) / s.width), 0)::bigint from unnest(s.covered) c) as total,
    (select coalesce(sum((date_part('epoch', upper(c)) - date_part('epoch', lower(c))) / s.width), 0)::bigint from unnest(r.empty_once) c) as once
) e;
comment on view market.coverage is 'Per series, how much of what is wanted has its final answer. One slot is one candle width; a covered slot without a candle is known to be empty.';
comment on column market.coverage.coin_id is 'Upstream id of the coin, as in market.coin.id: btc-bitcoin.';
comment on column market.coverage.symbol is 'Ticker symbol of the coin (not unique): BTC.';
comment on column market.coverage.quote is 'Currency of the prices: usd or btc.';
comment on column market.coverage.interval is 'Width of the candles: 5m, 15m, 30m, 1h, 6h, 12h or 24h.';
comment on column market.coverage.wanted_from is 'Start of the first wanted span, never before the coin began.';
comment on column market.coverage.wanted_to is 'End of the last wanted span, at most now.';
comment on column market.coverage.slots_wanted is 'Slots wanted up to now.';
comment on column market.coverage.slots_covered is 'Slots upstream has given its final answer for.';
comment on column market.coverage.slots_missing is 'Slots wanted up to now and not covered, those too young for a final answer included. The slots of the series in market.gaps, which says why, add up to it.';
comment on column market.coverage.slots_unsettled is 'Of the missing slots, those too young for a final answer: their candle has not closed, or closed less than one candle width ago.';
comment on column market.coverage.covered is 'All spans with a final answer, also outside what is wanted.';
comment on column market.coverage.percent_complete is 'Covered slots in percent of the wanted slots old enough to be final; 100 only when none is missing.';
comment on column market.coverage.slots_empty_once is 'Covered slots without a candle for which one answer is the evidence: it had candles on both sides of them.';
comment on column market.coverage.slots_empty_twice is 'Covered slots without a candle for which two answers are the evidence.';

-- The warehouse as it was known.

alter table market.revision add column was_empty boolean not null default false;
comment on column market.revision.was_empty is 'True: there was no candle before, and all old values are null because of that. False: they are the values of a candle.';
update market.revision set was_empty = true
  where open is null and high is null and low is null and close is null and volume is null and market_cap is null;

-- Rows of steps that were stored before and after `at` are told apart; of a row with several steps, step by step. `unchanged` is a part of
-- `final`: no later step is about these slots, so their candles are those that are stored now.
create function ops.state_at(of_series integer, i market.candle_interval, at timestamptz)
  returns table (step integer, final tstzmultirange, unchanged tstzmultirange)
  language sql stable parallel safe
begin atomic
  select state.step, state.final, state.final - state.changed
  from (
    select
      coalesce(max(r.number + r.known_steps - 1) filter (where r.known_steps > 0), 0) as step,
      coalesce(range_agg(r.known - r.removed_later) filter (where r.kind in ('answer', 'adopted')), '{}') as final,
      coalesce(range_agg(r.slots - r.known), '{}') as changed
    from (
      select k.*, coalesce(range_agg(k.known) filter (where k.kind in ('mended', 'retention'))
        over (order by k.number desc rows between unbounded preceding and 1 preceding), '{}') as removed_later
      from (
        select e.number, e.kind, e.slots, p.known_steps,
          case
            when p.known_steps = 0 then '{}'
            when p.known_steps = coalesce(cardinality(e.step_seconds), 1) then e.slots
            else tstzmultirange(tstzrange(lower(e.slots), lower(e.slots) + market.width_of(i) * case
              when e.step_slots is null then p.known_steps
              else (select sum(n) from unnest(e.step_slots[1:p.known_steps]) n)
            end))
          end as known
        from market.evidence e
        cross join lateral (
          select case
            when e.known_at > state_at.at then 0
            when e.step_seconds is null then 1
            else (select count(*)::integer from unnest(e.step_seconds) s where e.known_at + s * interval '1 second' <= state_at.at)
          end as known_steps
        ) p
        where e.series_id = state_at.of_series
      ) k
    ) r
  ) state;
end;
comment on function ops.state_at(integer, market.candle_interval, timestamptz) is 'Of a series at an instant: its newest step of evidence, the slots that were final, and those of them that no later step is about.';

create function ops.step_about(of_series integer, i market.candle_interval, slot timestamptz, newest integer)
  returns table (number integer, known_at timestamptz, kind text, is_last_of_row boolean)
  language sql stable parallel safe
begin atomic
  select e.number + n.n - 1, e.known_at + coalesce(e.step_seconds[n.n], 0) * interval '1 second', e.kind,
    n.n = coalesce(cardinality(e.step_seconds), 1)
  from market.evidence e
  cross join lateral (
    select (date_part('epoch', slot - lower(e.slots)) / ops.seconds_of(i))::integer + 1 as place
  ) p
  cross join lateral (
    select case
      when e.step_seconds is null then 1
      when e.step_slots is null then p.place
      else (select min(upto.n) from (
        select t.n, sum(t.slots) over (order by t.n) as slots from unnest(e.step_slots) with ordinality t(slots, n)
      ) upto where upto.slots >= p.place)::integer
    end as n
  ) n
  where e.series_id = step_about.of_series and e.number <= step_about.newest and e.slots @> slot and e.number + n.n - 1 <= step_about.newest
  order by e.number desc
  limit 1;
end;
comment on function ops.step_about(integer, market.candle_interval, timestamptz, integer) is 'The newest step of evidence about a slot that is not newer than the step `newest`.';

-- One statement without arguments that are evaluated twice, so the planner puts it into the statement that calls it: filters reach the tables.
-- Candles that are the same still, then the old values of those that changed or went since.
create function market.candles_as_known(at timestamptz)
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
  union all
  select s.coin_id, co.symbol, s.quote, s.interval, r.open_time,
    r.open_time + market.width_of(s.interval) - interval '1 second',
    r.open, r.high, r.low, r.close, r.volume, r.market_cap, true,
    (select n.known_at from ops.step_about(s.id, s.interval, r.open_time, k.step) n)
  from market.series s
  join market.coin co on co.id = s.coin_id
  cross join lateral ops.state_at(s.id, s.interval, candles_as_known.at) k
  cross join lateral (
    select v.* from market.revision v
    where v.series_id = s.id and v.step > k.step and k.final @> v.open_time and not v.was_empty
      -- The first step after `at` that is about the slot. Steps that remove leave no revision where there was no candle.
      and not exists (select from market.revision w
        where w.series_id = v.series_id and w.open_time = v.open_time and w.step > k.step and w.step < v.step)
      and not exists (select from market.evidence e
        where e.series_id = s.id and e.kind in ('mended', 'retention') and e.number > k.step and e.number < v.step and e.slots @> v.open_time)
    offset 0
  ) r;
end;
comment on function market.candles_as_known(timestamptz) is 'The candles that were final at an instant, with the values that they had then, and since when each was known (known_at). To the second: what was stored within the second of the instant was known. Columns as in market.candles. A coin has its id and symbol of today. Not kept, and so not here: values that were not final then, and candles that were removed because of their age. Example: select * from market.candles_as_known(''2026-03-01Z'') where coin_id = ''btc-bitcoin'' and interval = ''24h'';';

-- The story of one slot. It reads only market: analysts may call it. Who sent which request is in ops, and not told here.

create function ops.say_time(t timestamptz) returns text language sql stable parallel safe
  return to_char(t at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"');
comment on function ops.say_time(timestamptz) is 'An instant in UTC, as the story of a slot writes it.';

create function ops.say_candle(open double precision, high double precision, low double precision, close double precision,
    volume double precision, market_cap double precision) returns text language sql stable parallel safe
  return format('open %s, high %s, low %s, close %s, volume %s, market cap %s', coalesce(open::text, 'null'), coalesce(high::text, 'null'),
    coalesce(low::text, 'null'), coalesce(close::text, 'null'), coalesce(volume::text, 'null'), coalesce(market_cap::text, 'null'));
comment on function ops.say_candle(double precision, double precision, double precision, double precision, double precision, double precision) is 'The values of a candle in words.';

create function market.story(coin text, "interval" market.candle_interval, slot_time timestamptz, quote text default 'usd')
  returns table (at timestamptz, event text, detail text)
  language sql stable parallel safe
begin atomic
  with s as (
    select r.*, to_timestamp(floor(date_part('epoch', slot_time) / ops.seconds_of(r.interval)) * ops.seconds_of(r.interval)) as slot
    from market.series r
    where r.coin_id = story.coin and r.interval = story."interval" and r.quote = story.quote
  ),
  steps as (
    select e.number, e.kind, e.known_at, lead(e.number) over (order by e.number) as next
    from s join market.evidence_steps e on e.series_id = s.id and e.slots @> s.slot
  ),
  -- What each step told is what was there until the next step about the slot.
  told as (
    select st.*, s.slot, a.as_of, a.fetch_id, a.body_sha256, a.detail, old.reason,
      case
        when st.next is null and now_there.series_id is not null then ops.say_candle(now_there.open, now_there.high, now_there.low,
          now_there.close, now_there.volume, now_there.market_cap)
        when replaced.id is not null and not replaced.was_empty then ops.say_candle(replaced.open, replaced.high, replaced.low,
          replaced.close, replaced.volume, replaced.market_cap)
      end as value,
      case when not old.was_empty then ops.say_candle(old.open, old.high, old.low, old.close, old.volume, old.market_cap) end as old_value
    from s
    cross join steps st
    -- Of a row with several steps, request and digest are those of the last.
    left join market.evidence a on a.series_id = s.id and a.number + coalesce(cardinality(a.step_seconds), 1) - 1 = st.number
    left join market.revision old on old.series_id = s.id and old.open_time = s.slot and old.step = st.number
    left join market.revision replaced on replaced.series_id = s.id and replaced.open_time = s.slot and replaced.step = st.next
    left join market.candle now_there on now_there.series_id = s.id and now_there.interval = s.interval and now_there.open_time = s.slot
  ),
  gap as (
    select g.reason, g.detail, g.next_ask_at
    from s join market.gaps g on g.coin_id = s.coin_id and g.interval = s.interval and g.quote = s.quote
      and g.gap_from <= s.slot and g.gap_to > s.slot
  ),
  rows as (
    select s.created_at as at, 0 as place, 'wanted' as event,
      'The series was wanted for the first time. ' || case when s.wanted @> s.slot then 'The slot is wanted.' else 'The slot is not wanted.' end as detail
    from s
    union all
    select t.known_at, 1,
      case when t.kind in ('answer', 'adopted') then case when t.reason is null then 'final' else 'revised' end else t.kind end,
      case t.kind
        when 'answer' then case
          when t.reason is null then 'An answer made the slot final: '
          else format('An answer replaced the final value (%s). Before: %s. Now: ', t.reason, coalesce(t.old_value, 'no candle'))
        end || coalesce(t.value, 'no candle')
          || coalesce(format('. Request %s, as of %s', t.fetch_id, ops.say_time(t.as_of)), '')
          || coalesce(format(', SHA-256 of the answer %s', encode(t.body_sha256, 'hex')), '') || '.'
        when 'adopted' then format('The slot was final before Chandler kept evidence: %s.', coalesce(t.value, 'no candle'))
        when 'mended' then format('The slot was taken out of coverage, to be requested again%s. Before: %s.',
          coalesce(' (' || t.detail || ')', ''), coalesce(t.old_value, 'no candle'))
        when 'retention' then 'The slot was removed because of its age.'
      end
    from told t
    union all
    select e.known_at, 1, 'renamed', 'The upstream gave the coin a new id: ' || replace(e.detail, ' ', ' is now ') || '.'
    from s join market.evidence_steps e on e.series_id = s.id and e.kind = 'renamed'
    union all
    select r.seen_at, 1, 'revised', format('An answer replaced the final value, before Chandler kept evidence. Before: %s.',
      case when r.was_empty then 'no candle' else ops.say_candle(r.open, r.high, r.low, r.close, r.volume, r.market_cap) end)
    from s join market.revision r on r.series_id = s.id and r.open_time = s.slot and r.step is null
    union all
    select q.seen_at, 1, 'quarantined', format('A row was quarantined: %s. As it came: %s', q.reason, left(q.row::text, 500))
    from s join market.quarantine q on q.series_id = s.id and q.open_time = s.slot
    union all
    select f.refused_at, 1, 'refused', format('The upstream refused it under the plan %s (%s): %s', f.account_plan, f.reason, f.message)
    from s join market.refusal f on f.series_id = s.id and f.span @> s.slot
      or f.series_id is null and f.interval = s.interval and (f.depth is null or s.slot < f.refused_at - f.depth)
    union all
    select now(), 2, 'now', case
      when not s.covered @> s.slot then case when c.series_id is null then 'The slot has no final answer, and no candle.'
        else format('The slot has a candle that is not final: %s.', ops.say_candle(c.open, c.high, c.low, c.close, c.volume, c.market_cap)) end
      when c.series_id is not null then format('The slot is final: %s.', ops.say_candle(c.open, c.high, c.low, c.close, c.volume, c.market_cap))
      when s.empty_once @> s.slot then 'The slot is known to be empty: one answer said so.'
      else 'The slot is known to be empty: two answers said so.'
    end
    from s left join market.candle c on c.series_id = s.id and c.interval = s.interval and c.open_time = s.slot
    union all
    select now(), 3, 'next', format('It is missing: %s%s. %s', gap.reason, coalesce(' (' || gap.detail || ')', ''), case
      when gap.next_ask_at = 'infinity' then 'Chandler does not ask again by itself.'
      when gap.next_ask_at is not null then 'Chandler may ask again from ' || ops.say_time(gap.next_ask_at) || '.'
      when gap.reason = 'not asked yet' then 'The next backfill or refresh asks.'
      else 'Chandler asks again under another plan.' end)
    from gap
  )
  select rows.at, rows.event, rows.detail from rows order by rows.at, rows.place, rows.event, rows.detail;
end;
comment on function market.story(text, market.candle_interval, timestamptz, text) is 'The story of one slot, in the order of time: since when its series is wanted, what made it final and which request, revisions, quarantined rows, refusals, what is there now, and when Chandler asks again. slot_time: any instant in the slot. No row: there is no such series. Example: select * from market.story(''btc-bitcoin'', ''24h'', ''2026-03-01Z'');';

-- Implausible answers wait for a second opinion.
alter table ops.second_opinion
  drop constraint second_opinion_claim,
  add constraint second_opinion_claim check (series_id is null or claim in ('provisional', 'unconfirmed', 'malformed', 'implausible'));
comment on column ops.second_opinion.claim is 'What the answers say. Of slots: provisional (too young to be final), unconfirmed (no candle), malformed (an impossible row) or implausible (evidence says why). Other claims: src/core/second-opinion.ts.';
create or replace view market.gaps as
select
  s.coin_id,
  s.symbol,
  s.quote,
  s.interval,
  lower(r) as gap_from,
  upper(r) as gap_to,
  n.slots,
  piece.reason,
  piece.detail,
  piece.next_ask_at
from ops.series_now s
-- Refusals of this series, then history limits of its interval; where they overlap, the first one speaks.
cross join lateral (
  with ranked as (
    select 0 as tier, id, reason, message, tstzmultirange(span) as spans,
      -- A refusal of one series may have been a passing fault of the upstream, or of a gateway before it: it is requested again after a day.
      refused_at + interval '1 day' as again_at
    from market.refusal
    where series_id = s.id and account_plan = (select plan from ops.account where is_current)
    union all
    -- The first slot that opens behind the history limit is the first one to be had.
    select 1, id, reason, message, tstzmultirange(case
      when depth is null then '(,)'
      else tstzrange(null, to_timestamp(ceil(date_part('epoch', now() - depth) / s.width) * s.width))
    end), null
    from market.refusal
    where series_id is null and interval = s.interval and account_plan = (select plan from ops.account where is_current)
  ),
  refused as (
    select tier, id, reason, message, spans, again_at,
      coalesce(range_agg(spans) over (order by tier, id desc rows between unbounded preceding and 1 preceding), '{}') as earlier
    from ranked
  ),
  waiting as (
    select claim as reason, evidence ->> 'detail' as detail, retry_at, tstzmultirange(span) as spans,
      coalesce(range_agg(span) over (order by requested_at desc, span rows between unbounded preceding and 1 preceding), '{}') as earlier
    from ops.second_opinion
    where series_id = s.id
  ),
  totals as (
    select
      coalesce((select range_agg(spans) from refused), '{}') as refused,
      coalesce((select range_agg(spans) from waiting), '{}') as waiting
  )
  select s.missing * (refused.spans - refused.earlier) as spans, refused.reason, refused.message as detail, refused.again_at as next_ask_at
  from refused
  union all
  select s.missing * (waiting.spans - waiting.earlier - totals.refused), waiting.reason,
    case when waiting.reason = 'unconfirmed' and (select last_seen_at from market.coin where id = s.coin_id)
        < (select max(last_seen_at) from market.coin)
      then 'the latest list of coins does not have this one: an empty answer proves nothing'
      else waiting.detail
    end, waiting.retry_at
  from waiting cross join totals
  union all
  select s.missing - totals.refused - totals.waiting, 'not asked yet', null, null
  from totals
) piece
cross join lateral unnest(piece.spans) r
cross join lateral (
  select (ceil(date_part('epoch', upper(r)) / s.width) - ceil(date_part('epoch', lower(r)) / s.width))::bigint as slots
) n
where not isempty(s.missing) and n.slots > 0;
comment on column market.gaps.reason is 'not asked yet; provisional: answered, but too young to be final; unconfirmed: answered empty, to be confirmed by a second answer; malformed: the row given cannot be true, and is in market.quarantine; implausible: nothing was stored of the answer, detail says why, and a second answer must say the same; or why upstream refuses it: history limit, interval, unknown coin, forbidden, bad request.';
comment on column market.gaps.detail is 'What upstream said when it refused, what is implausible, or why two empty answers are not enough; null when nothing more is known.';

-- Series as they were at a step of their evidence: for `chandler verify --against` an attestation.

create function ops.covered_at(of_series integer, step integer) returns tstzmultirange
  language plpgsql stable parallel safe as $$
declare
  width interval;
  e market.evidence;
  told tstzmultirange;
  covered tstzmultirange := '{}';
begin
  select market.width_of(interval) into width from market.series where id = of_series;
  for e in select * from market.evidence where series_id = of_series and number <= step order by number loop
    told := e.slots;
    if e.step_seconds is not null and e.number + cardinality(e.step_seconds) - 1 > step then
      told := tstzmultirange(tstzrange(lower(e.slots), lower(e.slots) + width * coalesce(
        (select sum(n)::integer from unnest(e.step_slots[1:step - e.number + 1]) n), step - e.number + 1)));
    end if;
    covered := case when e.kind in ('mended', 'retention') then covered - told else covered + told end;
  end loop;
  return covered;
end
$$;
comment on function ops.covered_at(integer, integer) is 'The coverage of a series after a step of its evidence.';

-- A value that was replaced later is in market.revision, under the step that replaced it first. Where a stretch was taken out of coverage
-- and nothing was kept, there was no candle (or retention has removed it). A revision without the step that it names counts for nothing.
create function ops.final_at(of_series integer, of_interval market.candle_interval, step integer, stretch tstzrange)
  returns table (open_time timestamptz, open double precision, high double precision, low double precision, close double precision,
    volume double precision, market_cap double precision)
  language plpgsql stable parallel safe as $$
#variable_conflict use_column
declare
  newest constant integer := (select s.steps from market.series s where s.id = of_series);
  of_step constant integer := step;
  covered constant tstzmultirange := ops.covered_at(of_series, step) * tstzmultirange(stretch);
begin
  if newest <= of_step then
    return query
      select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap
      from market.candle c
      where c.series_id = of_series and c.interval = of_interval and c.open_time >= lower(stretch) and c.open_time < upper(stretch)
        and covered @> c.open_time;
    return;
  end if;
  return query
    with replaced as materialized (
      select distinct on (r.open_time) r.open_time, r.step, r.open, r.high, r.low, r.close, r.volume, r.market_cap,
        not r.was_empty as is_candle
      from market.revision r
      where r.series_id = of_series and r.step > of_step and r.open_time >= lower(stretch) and r.open_time < upper(stretch)
        and exists (select from market.evidence_steps e where e.series_id = of_series and e.number = r.step and e.slots @> r.open_time)
      order by r.open_time, r.step
    ), removal as materialized (
      select e.number, e.slots from market.evidence e
      where e.series_id = of_series and e.number > of_step and e.kind in ('mended', 'retention') and e.slots && stretch
    )
    select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap
    from market.candle c
    where c.series_id = of_series and c.interval = of_interval and c.open_time >= lower(stretch) and c.open_time < upper(stretch)
      and covered @> c.open_time
      and not exists (select from replaced r where r.open_time = c.open_time)
      and not exists (select from removal g where g.slots @> c.open_time)
    union all
    select r.open_time, r.open, r.high, r.low, r.close, r.volume, r.market_cap
    from replaced r
    where r.is_candle and covered @> r.open_time
      and not exists (select from removal g where g.slots @> r.open_time and g.number < r.step);
end
$$;
comment on function ops.final_at(integer, market.candle_interval, integer, tstzrange) is 'The final candles of a stretch of a series, as they were after a step of its evidence.';

-- Several steps in one row told slots that no step between them changed: what they told is what was there after the last of them.
create function ops.link_at(of_series integer, step integer) returns bytea
  language plpgsql stable parallel safe as $$
declare
  s market.series;
  e market.evidence;
  told record;
  upto integer;
  of_link bytea;
begin
  select * into s from market.series where id = of_series;
  select ops.first_link(coalesce((select split_part(r.detail, ' ', 1) from market.evidence r
    where r.series_id = of_series and r.kind = 'renamed' order by r.number limit 1), s.coin_id), s.quote, s.interval) into of_link;
  upto := 0;
  for e in select * from market.evidence where series_id = of_series and number <= step order by number loop
    if e.number <> upto + 1 then
      return null;
    end if;
    if coalesce(cardinality(e.step_seconds), 1) = 1 then
      upto := e.number;
      of_link := ops.evidence_link(of_link, e.kind, e.detail, e.known_at, e.slots, e.candles, e.digest);
      continue;
    end if;
    upto := least(step, e.number + cardinality(e.step_seconds) - 1);
    for told in
      select t.seconds, t.span, count(c.open_time)::integer as candles, ops.modulo_2_64(coalesce(sum(
        market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap)), 0)) as digest
      from (
        select u.n, u.seconds, tstzrange(lower(e.slots) + (sum(u.slots) over (order by u.n) - u.slots) * market.width_of(s.interval),
          lower(e.slots) + sum(u.slots) over (order by u.n) * market.width_of(s.interval)) as span
        from (select i.n, i.seconds, coalesce(e.step_slots[i.n], 1)::integer as slots
          from unnest(e.step_seconds[1:upto - e.number + 1]) with ordinality as i(seconds, n)) u
      ) t
      left join ops.final_at(of_series, s.interval, upto, range_merge(e.slots)) c on t.span @> c.open_time
      group by t.n, t.seconds, t.span order by t.n
    loop
      of_link := ops.evidence_link(of_link, e.kind, e.detail, e.known_at + told.seconds * interval '1 second',
        tstzmultirange(told.span), told.candles, told.digest);
    end loop;
  end loop;
  return case when upto = step then of_link end;
end
$$;
comment on function ops.link_at(integer, integer) is 'The link of a step of a series, computed again from its name, its evidence and its candles; null when a step is missing.';

-- Requests about holes: slots that one answer told to be empty.
comment on column ops.fetch.subject is 'About which coin, exchange, tag, person or platform, for requests about one that is no series. Of a series: holes, when the request asks once more about slots that one answer told to be empty; else null.';
