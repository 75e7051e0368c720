-- Who serves must see whether the database is of its version.
create or replace function ops.admit_server() returns void language plpgsql as $$
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
  -- So that who migrated may also step down to it.
  begin
    execute format('grant chandler_server to %I', current_user);
  exception
    when others then
      raise notice 'role chandler_server was not granted to %: %', current_user, sqlerrm;
  end;
end
$$;
