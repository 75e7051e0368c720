-- Millions of series: a service counts them from time to time, and what a backfill stored is summed from an index alone.

create table ops.counted (
  name text primary key,
  counted_at timestamptz not null,
  took_ms integer not null,
  answer jsonb not null
);
comment on table ops.counted is 'What takes too long to count while somebody waits, as a service counted it last.';
comment on column ops.counted.name is 'What was counted: series (for chandler status).';
comment on column ops.counted.counted_at is 'When.';
comment on column ops.counted.took_ms is 'How long that took; the longer, the less often it is done.';
comment on column ops.counted.answer is 'What was counted, as chandler status --json shows it.';

drop index ops.fetch_of_backfill;
create index fetch_of_backfill on ops.fetch (backfill_id, stored) where backfill_id is not null;
