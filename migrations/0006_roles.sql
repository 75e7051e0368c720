-- The roles that read (analyst) and serve (chandler_server).
-- Roles belong to the whole server, and making one needs a right that the migrating user may lack:
-- so each is made by a function that never fails, and that every `chandler migrate` calls again.

-- The role analyst may read market and nothing else.
create function ops.admit_analyst() returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = 'analyst') then
    begin
      create role analyst nologin;
    exception
      when insufficient_privilege then
        raise notice 'role analyst was not created (this user may not create roles): create it as an administrator and run chandler migrate again';
        return;
      -- Another database of this server was migrated at the same moment.
      when duplicate_object or unique_violation then null;
    end;
  end if;
  grant usage on schema market to analyst;
  grant select on all tables in schema market to analyst;
  alter default privileges in schema market grant select on tables to analyst;
end
$$;

-- The role chandler_server may read what is served, see which migrations were applied, and count the requests of callers.
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
  grant select on ops.version, ops.migration to chandler_server;
  grant select on ops.api_key to chandler_server;
  grant select, insert, update, delete on ops.api_usage to chandler_server;
  -- The migrating user may switch to this role.
  begin
    execute format('grant chandler_server to %I', current_user);
  exception
    when others then
      raise notice 'role chandler_server was not granted to %: %', current_user, sqlerrm;
  end;
end
$$;
