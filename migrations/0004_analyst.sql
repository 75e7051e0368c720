-- The role that may read market and nothing else. Roles belong to the whole server, and making one needs a right the
-- migrating user may lack: so this is a function that every `chandler migrate` calls again, and that never fails.
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
