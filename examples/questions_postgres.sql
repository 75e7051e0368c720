-- The warehouse itself, with its own functions: psql "$(npx chandler db url)" -f examples/questions_postgres.sql
-- Where it has another zone, a month would begin at another hour.
set timezone = 'UTC';

-- universe: the largest three of each month, as known when it begins, and what they brought until the next one begins; beside them the largest three
-- of today. Of a coin that dies meanwhile the last price counts.
with month as (
    select begins, lead(begins) over (order by begins) as ends
    from (
        select generate_series(market.slot_of('1 month', min(open_time) + interval '32 days'), max(open_time) + interval '1 day', interval '1 month') as begins
        from market.candles where interval = '24h' and quote = 'usd'
    ) m
),
today as (select u.coin_id from (select max(begins) as at from month) m cross join lateral market.universe(m.at, 3) u),
held as (
    select m.begins, u.coin_id, u.place,
        (select price from market.price_at(u.coin_id, m.ends, '400 days')) / (select price from market.price_at(u.coin_id, m.begins)) - 1 as brought
    from month m cross join lateral market.universe(m.begins, 1000) u where m.ends is not null
)
select to_char(begins at time zone 'UTC', 'YYYY-MM-DD') as month, avg(brought) filter (where place <= 3) as largest_then,
    avg(brought) filter (where coin_id in (select coin_id from today)) as largest_today
from held group by begins order by begins;

-- volatility: of the daily returns of each coin in its last thirty days, for a year. Only of final candles: that of today still moves. A hole of a day
-- costs two returns, because no return spans a hole.
select s.coin_id, v.volatility, v.returns
from market.series s
cross join lateral (
    select open_time + interval '1 day' as ends from market.candles
    where series_id = s.id and interval = '24h' and is_final order by open_time desc limit 1
) last
cross join lateral market.realized_volatility(s.coin_id, last.ends - interval '30 days', last.ends) v
where s.interval = '24h' and s.quote = 'usd' and v.returns > 1 order by s.coin_id;

-- as_of: the last price that was known at noon of the second day of each month.
select s.coin_id, to_char(event.at at time zone 'UTC', 'YYYY-MM-DD') as day, c.close, extract(epoch from event.at - c.open_time - interval '1 day') / 3600 as age_hours
from market.series s
cross join (
    select generate_series(market.slot_of('1 month', min(open_time) + interval '32 days'), max(open_time) - interval '36 hours', interval '1 month')
        + interval '36 hours' as at
    from market.candles where interval = '24h' and quote = 'usd'
) event
cross join lateral (
    select open_time, close from market.candles
    where series_id = s.id and interval = '24h' and open_time <= event.at - interval '1 day' and close is not null order by open_time desc limit 1
) c
where s.interval = '24h' and s.quote = 'usd' order by 1, 2;

-- missing: days without a candle. Of what market.gaps has it is not known whether there was one; of the others it is known that there was none.
select coin_id, reason, sum(slots) as days from market.gaps where interval = '24h' and quote = 'usd' group by 1, 2
union all
select c.coin_id, 'no candle', c.slots_covered - count(d.open_time)
from market.coverage c
left join market.candles d on d.coin_id = c.coin_id and d.quote = c.quote and d.interval = '24h' and d.is_final and d.made_of is null
where c.interval = '24h' and c.quote = 'usd' group by 1, c.slots_covered having c.slots_covered > count(d.open_time)
order by 1, 2;
