-- The lake that this warehouse keeps up to date. A folder that is not mounted, an emptied bucket, a wrong address and the lake of another warehouse are
-- then not taken for a place where a new lake may begin: the old one may be the only place that has candles which retention has removed.

create table ops.lake (
  is_only boolean primary key default true,
  id uuid not null,
  place text not null,
  at timestamptz,
  next_at timestamptz,
  constraint lake_is_only check (is_only)
);
comment on table ops.lake is 'The lake that this warehouse keeps up to date. Before each run, and before retention removes candles, the manifest in its place must have the same id. chandler lake accept replaces it.';
comment on column ops.lake.is_only is 'Always true: there is one row at most.';
comment on column ops.lake.id is 'The id that its manifest.json has.';
comment on column ops.lake.place is 'Where its manifest was completed last, or is to be.';
comment on column ops.lake.at is 'Instant of the manifest that was completed last; null: none was yet.';
comment on column ops.lake.next_at is 'Instant of the manifest that a run was about to complete. One that is newer than at, and not of this instant, was written by another database.';
