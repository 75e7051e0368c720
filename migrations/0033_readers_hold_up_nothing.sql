-- Whoever may only read can hold up nobody, by three more ways: by statements that lock a table before Postgres looks who may run them, from the
-- other databases of the server, and by filling the disk.

-- `create rule`, `create trigger`, `comment` and others wait for a strong lock of a table first, and are refused afterwards. While they wait
-- behind a reading transaction, everybody else waits behind them. So who may make nothing here is refused before.
create function ops.refuse_readers() returns event_trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  -- These look first who may run them, and who only makes logins may make nothing else.
  if tg_tag in ('DROP OWNED', 'REASSIGN OWNED', 'GRANT', 'REVOKE', 'ALTER DEFAULT PRIVILEGES')
    or has_database_privilege(current_database(), 'create') or has_database_privilege(current_database(), 'temporary')
    or exists (select from pg_namespace n where n.nspname !~ '^pg_(toast_)?temp_' and has_schema_privilege(n.oid, 'create')) then
    return;
  end if;
  raise exception using errcode = 'insufficient_privilege',
    message = format('permission denied for %s: %s may only read this database', tg_tag, current_user);
end
$$;
comment on function ops.refuse_readers() is 'Refuses statements that change the schema to who may make nothing in this database, before they lock anything.';

-- What anybody who may log in can do to a server, and readers do not need. Never fails: a right that this user may not take away stays.
create or replace function ops.admit_no_harm() returns void language plpgsql as $$
declare
  harmful regprocedure;
  other text;
  -- Who owns the tables works with them: it may be another user than the one that migrates.
  owners constant text := (select string_agg(distinct format('%I', pg_get_userbyid(nspowner)), ', ') from pg_namespace
    where nspname in ('ops', 'market', 'bullmq'));
begin
  begin
    execute format('grant temporary on database %I to %I, %s', current_database(), current_user, owners);
    execute format('revoke temporary on database %I from public', current_database());
  exception
    when others then raise notice 'everybody may still make temporary tables: %', sqlerrm;
  end;
  if not exists (select from pg_event_trigger where evtname = 'chandler_refuse_readers') then
    begin
      create event trigger chandler_refuse_readers on ddl_command_start execute function ops.refuse_readers();
      comment on event trigger chandler_refuse_readers is 'Of Chandler: who may make nothing in this database cannot lock its tables.';
    exception
      when others then raise notice 'readers may still wait for locks that hold up others: %', sqlerrm;
    end;
  end if;
  -- Functions of the server belong to a superuser. Locks without end fill the memory that all sessions share, and BullMQ takes some while it works;
  -- large objects fill the disk.
  if not (select rolsuper from pg_roles where rolname = current_user) then
    return;
  end if;
  for harmful in
    select p.oid from pg_proc p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '^(pg_(try_)?advisory_|lo_|loread$|lowrite$)'
      and has_function_privilege('public', p.oid, 'execute')
  loop
    execute format('grant execute on function %s to %s', harmful, owners);
    execute format('revoke execute on function %s from public', harmful);
  end loop;
  -- All of that can be done from any other database of the server, too. Where nobody but Chandler uses the server, nobody needs those that
  -- every server has.
  if not ops.is_server_ours() then
    return;
  end if;
  for other in
    select d.datname from pg_database d where d.datname in ('postgres', 'template1') and d.datname <> current_database()
      and has_database_privilege('public', d.oid, 'connect')
  loop
    execute format('revoke connect on database %I from public', other);
  end loop;
end
$$;
comment on function ops.admit_no_harm() is 'Takes away what readers do not need: temporary tables, advisory locks, large objects, statements that lock tables, other databases. Called by every migrate.';

create function ops.is_server_ours() returns boolean language sql stable as $$
  select not exists (
    select from pg_database where datname not in ('postgres', 'template0', 'template1') and datname <> current_database()
  ) and not exists (
    select from pg_roles r where r.rolcanlogin and not r.rolsuper and not exists (
      select from pg_roles ours where ours.rolname in ('analyst', 'chandler_server', 'chandler_sql') and pg_has_role(r.oid, ours.oid, 'member')
    )
  )
$$;
comment on function ops.is_server_ours() is 'Whether this server has no other database, and no login but those of superusers and of Chandler.';
