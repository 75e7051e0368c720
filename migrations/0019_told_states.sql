-- A notice may tell of a state that lasts (a refused key, an outage): it is told once when it begins, and once when it is over.

alter table ops.notice add column began_at timestamptz;
alter table ops.notice add column ended_at timestamptz;
create unique index notice_of_state on ops.notice (topic) where began_at is not null and ended_at is null;
comment on column ops.notice.event is 'As in CHANDLER_NOTIFY: key-refused, upstream-down, stuck, quota …';
comment on column ops.notice.began_at is 'When the state began that it tells of. Null: it tells of an event, which has no end.';
comment on column ops.notice.ended_at is 'When that state was over. Null: it lasts.';

alter table ops.account add column refused_since timestamptz;
update ops.account set refused_since = refused_at;
comment on column ops.account.refused_since is 'When upstream refused the key first, without having accepted it since. Null: it does not refuse it.';
