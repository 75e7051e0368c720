-- Also while a service runs no schedules, because its key is refused: so that every service knows which keys are in use.
comment on column ops.instance.account_id is 'ops.account.id of the account that it sends requests as; null: it only serves.';
