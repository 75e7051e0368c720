-- What it takes to answer like the upstream does, and to know at once that something has changed.
-- Of each kind of data a number that changes with every transaction that changes any of it: whoever has read both may keep what was read
-- for as long as the number stays. Of candles each series has its own.
create table ops.version (
  topic text primary key,
  version bigint not null
) with (fillfactor = 10);
--> statement-breakpoint
comment on table ops.version is 'Of each kind of data that is served: a number that every transaction changes that changes any of it. What was read under one number is still true while the number stays.';
--> statement-breakpoint
comment on column ops.version.topic is 'Name of the table in market.';
--> statement-breakpoint
comment on column ops.version.version is 'Goes up.';
--> statement-breakpoint
create function ops.count_change() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into ops.version as v (topic, version) values (tg_table_name, 1)
    on conflict (topic) do update set version = v.version + 1;
  return null;
end
$$;
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.coin
  for each statement execute function ops.count_change();
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.ticker
  for each statement execute function ops.count_change();
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.global_history
  for each statement execute function ops.count_change();
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.exchange
  for each statement execute function ops.count_change();
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.coin_rename
  for each statement execute function ops.count_change();
--> statement-breakpoint
insert into ops.version (topic, version)
  select topic, 1 from unnest(array['coin', 'ticker', 'global_history', 'exchange', 'coin_rename']) as t(topic);
--> statement-breakpoint
alter table market.series add column version bigint not null default 0, add column answered_at timestamptz;
--> statement-breakpoint
comment on column market.series.version is 'Changes with every change of the series, and of its candles.';
--> statement-breakpoint
comment on column market.series.answered_at is 'As-of instant of the youngest answer that was stored about it; null while there is none, or it is from before this column.';
--> statement-breakpoint
update market.series s set answered_at = f.as_of
  from (select series_id, max(as_of) as as_of from ops.fetch where outcome = 'stored' and series_id is not null group by 1) f
  where f.series_id = s.id;
--> statement-breakpoint
create function ops.count_series_change() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;
--> statement-breakpoint
create trigger counts_change before update on market.series for each row execute function ops.count_series_change();
--> statement-breakpoint
-- The candle that was still open when it was answered says until when its data reach: a handful for each series.
create table market.open_candle (
  series_id integer not null references market.series (id) on delete cascade,
  open_time timestamptz not null,
  close_time timestamptz not null,
  primary key (series_id, open_time)
);
--> statement-breakpoint
comment on table market.open_candle is 'Candles that had not closed when upstream answered them last: until when their data reach. All others end a second before the next one opens.';
--> statement-breakpoint
comment on column market.open_candle.series_id is 'market.series.id.';
--> statement-breakpoint
comment on column market.open_candle.open_time is 'Open time of the candle in market.candle.';
--> statement-breakpoint
comment on column market.open_candle.close_time is 'time_close as upstream wrote it: the minute of its data.';
--> statement-breakpoint
-- Records as they came, where the columns do not say it all: text, which keeps the order of keys and the digits of numbers as they were.
alter table market.ticker add column position integer, add column answer text;
--> statement-breakpoint
alter table market.coin add column position integer, add column answer text;
--> statement-breakpoint
alter table market.exchange add column position integer, add column answer text;
--> statement-breakpoint
alter table market.global_history add column answer text;
--> statement-breakpoint
comment on column market.ticker.position is 'Its place in the newest list that has it, from 0.';
--> statement-breakpoint
comment on column market.ticker.answer is 'The JSON of upstream, where it is written otherwise than the other columns would be (a field nobody has documented, one that is missing); null where it is not.';
--> statement-breakpoint
comment on column market.coin.position is 'Its place in the newest list that has it, from 0.';
--> statement-breakpoint
comment on column market.coin.answer is 'The JSON of upstream in the list of coins, where it is written otherwise than the other columns would be; null where it is not.';
--> statement-breakpoint
comment on column market.exchange.position is 'Its place in the newest list that has it, from 0.';
--> statement-breakpoint
comment on column market.exchange.answer is 'The JSON of upstream, where it is written otherwise than the other columns would be; null where it is not.';
--> statement-breakpoint
comment on column market.global_history.answer is 'The JSON of upstream, where it is written otherwise than the other columns would be; null where it is not.';
--> statement-breakpoint
-- The role that serves: reads what is answered, and nothing else (no keys, no accounts, no requests). Like analyst it is made by a function
-- that every migration calls again, because making roles needs a right that the migrating user may lack.
create function ops.admit_server() returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = 'chandler_server') then
    begin
      create role chandler_server nologin;
    exception
      when insufficient_privilege then
        raise notice 'role chandler_server was not created (this user may not create roles): create it as an administrator and run chandler migrate again';
        return;
      -- Another database of this server was migrated at the same moment.
      when duplicate_object or unique_violation then null;
    end;
  end if;
  grant usage on schema market, ops to chandler_server;
  grant select on all tables in schema market to chandler_server;
  alter default privileges in schema market grant select on tables to chandler_server;
  grant select on ops.version to chandler_server;
  -- So that who migrated may also step down to it.
  begin
    execute format('grant chandler_server to %I', current_user);
  exception
    when others then
      raise notice 'role chandler_server was not granted to %: %', current_user, sqlerrm;
  end;
end
$$;
--> statement-breakpoint
-- The catalogue's answers, by kind: 'document coin', 'document person' …
create function ops.count_documents() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into ops.version as v (topic, version) select distinct 'document ' || kind, 1 from changed order by 1
    on conflict (topic) do update set version = v.version + 1;
  return null;
end
$$;
--> statement-breakpoint
create trigger counts_new after insert on market.document referencing new table as changed
  for each statement execute function ops.count_documents();
--> statement-breakpoint
create trigger counts_changed after update on market.document referencing new table as changed
  for each statement execute function ops.count_documents();
--> statement-breakpoint
create trigger counts_gone after delete on market.document referencing old table as changed
  for each statement execute function ops.count_documents();
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.contract
  for each statement execute function ops.count_change();
--> statement-breakpoint
create trigger counts_change after insert or update or delete or truncate on market.tag
  for each statement execute function ops.count_change();
