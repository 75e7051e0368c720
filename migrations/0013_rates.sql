-- Exchange rates of currencies that have no coin: for prices in all currencies that the upstream knows.
create table market.rate (
  currency text not null,
  at timestamptz not null,
  updated_at timestamptz not null,
  price double precision not null,
  percent_change_15m double precision,
  percent_change_30m double precision,
  percent_change_1h double precision,
  percent_change_6h double precision,
  percent_change_12h double precision,
  percent_change_24h double precision,
  percent_change_7d double precision,
  percent_change_30d double precision,
  percent_change_1y double precision,
  constraint rate_currency_at_pk primary key (currency, at),
  constraint rate_price check (price > 0)
);
comment on table market.rate is 'What one unit of a currency was worth in US dollars: from the price of bitcoin in both, in answers of one update of the upstream. Kept for ever.';
comment on column market.rate.currency is 'Symbol of the currency, in capitals: EUR.';
comment on column market.rate.at is 'Instant of the answer: no fact in it is newer.';
comment on column market.rate.updated_at is 'When the upstream last updated the prices it is made of, as it says itself.';
comment on column market.rate.price is 'One unit of the currency in US dollars.';
comment on column market.rate.percent_change_15m is 'Change of price in 15 minutes, in percent. It comes from two changes with two decimals.';
comment on column market.rate.percent_change_30m is 'In 30 minutes.';
comment on column market.rate.percent_change_1h is 'In an hour.';
comment on column market.rate.percent_change_6h is 'In 6 hours.';
comment on column market.rate.percent_change_12h is 'In 12 hours.';
comment on column market.rate.percent_change_24h is 'In 24 hours.';
comment on column market.rate.percent_change_7d is 'In 7 days.';
comment on column market.rate.percent_change_30d is 'In 30 days.';
comment on column market.rate.percent_change_1y is 'In a year.';
insert into ops.version (topic, version) values ('rate', 1);
create trigger counts_new after insert on market.rate referencing new table as changed
  for each statement execute function ops.count_rows();
create trigger counts_changed after update on market.rate referencing new table as changed
  for each statement execute function ops.count_rows();
create trigger counts_gone after delete on market.rate referencing old table as changed
  for each statement execute function ops.count_rows();
create trigger counts_emptied after truncate on market.rate
  for each statement execute function ops.count_change();
