-- The audit log: who changed something, when, and how.
create table ops.audit (
  id bigint primary key generated always as identity,
  at timestamptz not null,
  actor text not null,
  command text not null,
  ended_at timestamptz,
  message text,
  settings jsonb
);
create index audit_at on ops.audit (at);
comment on table ops.audit is 'Commands that changed something, and starts of the service: who gave them, when, and how they ended. chandler log shows it. Kept for ever.';
comment on column ops.audit.id is 'In the order in which they began.';
comment on column ops.audit.at is 'When it began.';
comment on column ops.audit.actor is 'user@host; of a mending by SQL: the user of the database, and the program.';
comment on column ops.audit.command is 'The command line without the word chandler, or what was done by SQL.';
comment on column ops.audit.ended_at is 'When it ended; null: it still runs, or was killed.';
comment on column ops.audit.message is 'Why it did not end as it should; null: it did, or has not ended.';
comment on column ops.audit.settings is 'Of a start of the service: the settings, with fingerprints in the place of secrets.';

-- Mendings are made by SQL, by whatever client.
create function ops.audit_mending() returns trigger language plpgsql as $$
begin
  insert into ops.audit (at, actor, command, ended_at)
  select new.known_at, session_user || ' (' || coalesce(nullif(current_setting('application_name', true), ''), 'unknown program') || ')',
    format('ops.uncover: %s %s %s, %s', s.coin_id, s.quote, s.interval, new.slots), new.known_at
  from market.series s where s.id = new.series_id;
  return null;
end
$$;
comment on function ops.audit_mending() is 'Writes a mending (ops.uncover) into the audit log.';
create trigger audit_mending after insert on market.evidence
  for each row when (new.kind = 'mended') execute function ops.audit_mending();
