-- The dashboard: an operator's key opens it from anywhere, and a session lasts as long as its cookie and its key.

alter table ops.api_key add column is_operator boolean default false not null;
comment on column ops.api_key.is_operator is 'Its holder may look at the dashboard from anywhere, and act on it.';

create table ops.dashboard_session (
  token_hash bytea primary key not null,
  key_id integer not null constraint dashboard_session_key_id_api_key_id_fk references ops.api_key,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint dashboard_session_token_hash check (octet_length(token_hash) = 32)
);
comment on table ops.dashboard_session is 'Who is signed in to the dashboard. A key that is revoked or has expired ends its sessions.';
comment on column ops.dashboard_session.token_hash is 'SHA-256 of the session cookie.';
comment on column ops.dashboard_session.key_id is 'ops.api_key.id: the key that it was opened with.';
comment on column ops.dashboard_session.created_at is 'When.';
comment on column ops.dashboard_session.expires_at is 'The cookie is refused from then on.';
