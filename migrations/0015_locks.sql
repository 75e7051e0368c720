-- Whoever may only read can neither slow down nor stop who writes: locks that only the owner can take, and less for everybody else to do.
-- src/store/migration/migrate.ts makes it before the first migration.
create table if not exists ops.lock (
  name text primary key
);
comment on table ops.lock is 'Rows that transactions lock, so that one process at a time does something. Unlike advisory locks, nobody else can take them.';
comment on column ops.lock.name is 'What the lock is for.';

-- What anybody who may log in can do to a server, and readers do not need. Never fails: a right that this user may not take away stays.
create function ops.admit_no_harm() returns void language plpgsql as $$
declare
  harmful regprocedure;
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
end
$$;
comment on function ops.admit_no_harm() is 'Takes away what readers do not need: temporary tables, advisory locks, large objects. Called by every migrate.';

-- The role of the tool runSql: an analyst who may make a temporary view, which is how a statement is checked before it runs.
create function ops.admit_sql() returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = 'analyst') then
    return;
  end if;
  if not exists (select from pg_roles where rolname = 'chandler_sql') then
    begin
      create role chandler_sql nologin;
    exception
      when insufficient_privilege then
        raise notice 'role chandler_sql was not created (this user may not create roles): create it as an administrator and run chandler migrate again';
        return;
      -- Another database of this server was migrated at the same moment.
      when duplicate_object or unique_violation then null;
    end;
  end if;
  begin
    grant analyst to chandler_sql;
    execute format('grant temporary on database %I to chandler_sql', current_database());
    -- The migrating user may switch to this role.
    execute format('grant chandler_sql to %I', current_user);
  exception
    when others then
      raise notice 'role chandler_sql was not granted: %', sqlerrm;
  end;
end
$$;
comment on function ops.admit_sql() is 'Makes the role of the tool runSql. Called by every migrate.';
