-- Written by every backfill, one row a series, and read by nobody.
drop table ops.backfill_series;
