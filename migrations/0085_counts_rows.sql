-- What changed no row has changed nothing: a snapshot of tickers that told the ranks of before threw away the index of names and the
-- list of coins all the same. The rows themselves are asked, but for market.ticker: there each snapshot changes all of them, and keeping
-- copies of sixty thousand rows to learn that would cost more than the question is worth.
create function ops.count_rows() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  if exists (select from changed) then
    insert into ops.version as v (topic, version) values (tg_table_name, 1)
      on conflict (topic) do update set version = v.version + 1;
  end if;
  return null;
end
$$;
--> statement-breakpoint
do $$
declare
  name text;
begin
  foreach name in array array['coin', 'global_history', 'exchange', 'coin_rename', 'contract', 'tag'] loop
    execute format('drop trigger counts_change on market.%I', name);
    execute format('create trigger counts_new after insert on market.%I referencing new table as changed
      for each statement execute function ops.count_rows()', name);
    execute format('create trigger counts_changed after update on market.%I referencing new table as changed
      for each statement execute function ops.count_rows()', name);
    execute format('create trigger counts_gone after delete on market.%I referencing old table as changed
      for each statement execute function ops.count_rows()', name);
    -- Nobody knows how many those were.
    execute format('create trigger counts_emptied after truncate on market.%I
      for each statement execute function ops.count_change()', name);
  end loop;
end
$$;
--> statement-breakpoint
-- Of coins, what they are found by and told with, but for the rank: that changes with any ticker, and only moves them.
create function ops.count_names() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  if tg_op = 'UPDATE' then
    -- Row by row, of those that are called otherwise now; once in a transaction is enough, and more would grow its row without end.
    if current_setting('chandler.names_counted', true) = 'yes' then
      return null;
    end if;
    perform set_config('chandler.names_counted', 'yes', true);
  elsif tg_op = 'INSERT' then
    if not exists (select from changed) then
      return null;
    end if;
  end if;
  insert into ops.version as v (topic, version) values ('coin names', 1)
    on conflict (topic) do update set version = v.version + 1;
  return null;
end
$$;
--> statement-breakpoint
create trigger names_new after insert on market.coin referencing new table as changed
  for each statement execute function ops.count_names();
--> statement-breakpoint
-- Row by row, because a snapshot of tickers changes the ranks of tens of thousands: to look at each costs a quarter of keeping them all twice.
create trigger names_changed after update on market.coin for each row
  when ((old.id, old.name, old.symbol, old.type, old.is_new, old.is_active)
    is distinct from (new.id, new.name, new.symbol, new.type, new.is_new, new.is_active))
  execute function ops.count_names();
--> statement-breakpoint
create trigger names_gone after delete or truncate on market.coin for each statement execute function ops.count_names();
--> statement-breakpoint
insert into ops.version (topic, version) values ('coin names', 1);
--> statement-breakpoint
comment on column ops.version.topic is 'Name of the table in market; "document …": of that kind of the catalogue; "coin names": all of market.coin that is not its rank, nor when it was seen.';
