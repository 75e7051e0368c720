-- DuckDB, in the folder where files/ is: duckdb < examples/questions.sql
set timezone = 'UTC';

create or replace view candle as
select coin_id, open_time, close, market_cap, is_final
from read_parquet('files/candles/**/*.parquet', hive_partitioning = true) where interval = '24h' and quote = 'usd';

create or replace view day as select * from candle where close is not null;

-- universe: the largest three of each month, as known when it begins, and what they brought until the next one begins; beside them the largest three
-- of today. Of a coin that dies meanwhile the last price counts. Where the last day is missing, the one before it counts; a coin without a market cap
-- has no place.
with month as (
    select unnest(generate_series(
        (select date_trunc('month', min(open_time) + interval 32 day) from day),
        (select date_trunc('month', max(open_time) + interval 1 day) from day),
        interval 1 month)) as begins
),
known as (
    select begins, coin_id, close, row_number() over (partition by begins order by market_cap desc, coin_id) as place
    from (
        select distinct on (begins, coin_id) begins, coin_id, close, market_cap
        from month join day on open_time >= begins - interval 2 day and open_time < begins
        where market_cap > 0 order by begins, coin_id, open_time desc
    )
),
held as (
    select begins, coin_id, close, place,
        (select last(d.close order by d.open_time) from day d
         where d.coin_id = known.coin_id and d.open_time < begins + interval 1 month) as later
    from known
),
today as (select coin_id from known where begins = (select max(begins) from month) and place <= 3)
select strftime(begins, '%Y-%m-%d') as month,
    avg(later / close - 1) filter (where place <= 3) as largest_then,
    avg(later / close - 1) filter (where coin_id in (select coin_id from today)) as largest_today
from held where begins < (select max(begins) from month)
group by begins order by begins;

-- volatility: of the daily returns of each coin in its last thirty days, for a year. Only of final candles: that of today still moves. A hole of a day
-- costs two returns, because no return spans a hole.
with change as (
    select coin_id, open_time, max(open_time) over (partition by coin_id) as newest,
        case when open_time - lag(open_time) over (partition by coin_id order by open_time) = interval 1 day
            then ln(close / lag(close) over (partition by coin_id order by open_time)) end as log_return
    from day where is_final
)
select coin_id, stddev_samp(log_return) * sqrt(365) as volatility, cast(count(log_return) as integer) as returns
from change where open_time > newest - interval 30 day group by coin_id having count(log_return) > 1 order by coin_id;

-- as_of: the last price that was known at noon of the second day of each month.
with event as (
    select coin_id, begins + interval 36 hour as at
    from (select distinct coin_id from day)
    cross join (select unnest(generate_series(
        (select date_trunc('month', min(open_time) + interval 32 day) from day),
        (select max(open_time) - interval 36 hour from day), interval 1 month)) as begins)
),
known as (select coin_id, open_time + interval 1 day as known_at, close from day)
select event.coin_id, strftime(event.at, '%Y-%m-%d') as day, known.close, epoch(event.at - known.known_at) / 3600 as age_hours
from event asof join known on event.coin_id = known.coin_id and event.at >= known.known_at
order by 1, 2;

-- missing: days without a candle. What the table of gaps has is not known; of the others it is known that there was no candle.
with asked as (
    select coin_id, slots_covered
    from read_parquet('files/coverage/part.parquet') where interval = '24h' and quote = 'usd'
),
unknown as (
    select coin_id, reason, sum(slots) as days
    from read_parquet('files/gaps/part.parquet') where interval = '24h' and quote = 'usd' group by coin_id, reason
),
empty as (
    select coin_id, 'no candle' as reason,
        slots_covered - (select count(*) from candle c where c.coin_id = asked.coin_id and c.is_final) as days
    from asked
)
select coin_id, reason, cast(days as integer) as days
from (select * from unknown union all select * from empty) where days > 0 order by 1, 2;
