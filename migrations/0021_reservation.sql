-- Which schedules will really run, and for which account: what no service will ask is not reserved. And when a tracked series is due again.

alter table ops.account add column scheduled_at timestamp with time zone;
comment on column ops.account.scheduled_at is 'When a service last ran the schedules of this account, to within some minutes; null: none ever did. A day after that nothing is reserved for them.';

alter table ops.instance add column account_id text;
comment on column ops.instance.account_id is 'ops.account.id of the account whose schedules it runs; null: it runs none.';
alter table ops.instance add column schedules jsonb;
comment on column ops.instance.schedules is 'The schedules that it runs, each with its cron expression; those that are off are left out. Null: it runs none.';

alter table ops.tier add column refresh_after interval;
comment on column ops.tier.refresh_after is 'So long after a refresh a series is due again: less than achievable_age, which includes the wait for the next run of the schedule. Null as achievable_age.';
