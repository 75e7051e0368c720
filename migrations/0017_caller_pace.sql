-- The pace of a caller of the service, which all processes on this database share.
-- Unlogged: a process tells it after every few requests, and a crash of the server may fill the buckets.
create unlogged table ops.api_pace (
  subject text not null,
  full_at timestamptz not null,
  constraint api_pace_pkey primary key (subject)
) with (fillfactor = 50);
comment on table ops.api_pace is 'The token bucket of each caller of the service that was busy lately. A process tells it after every few requests of a caller. Not logged: after a crash of the server all buckets are full.';
comment on column ops.api_pace.subject is 'As in ops.api_usage: key:<id>, or address:<IPv4, or the first 64 bits of IPv6>.';
comment on column ops.api_pace.full_at is 'When the bucket is full again, if the caller sends nothing. A token is one request; the bucket holds those of one second.';

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
  grant select on ops.api_key to chandler_server;
  grant select, insert, update, delete on ops.api_usage, ops.api_pace to chandler_server;
  -- The migrating user may switch to this role.
  begin
    execute format('grant chandler_server to %I', current_user);
  exception
    when others then
      raise notice 'role chandler_server was not granted to %: %', current_user, sqlerrm;
  end;
end
$$;
