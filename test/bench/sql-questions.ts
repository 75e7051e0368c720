/** The questions of analysts, each in two forms: with the views and functions, and as the best statement on the tables that one can write by hand. */
import { coinOf } from './sql-warehouse.ts';

export type Question = {
  readonly name: string;
  readonly ours: string;
  readonly byHand: string;
  /** Milliseconds that it may take with 50 million candles. */
  readonly goalMs?: number;
  /** How many times as long as the statement by hand it may take; null: reported, not checked. */
  readonly most?: number | null;
};

const [DAILY, HOURLY, FINE] = [coinOf('24h'), coinOf('1h'), coinOf('5m')];
const OTHER = coinOf('24h', 2);

const seriesOf = (coin: string, interval: string) =>
  `(select id from market.series where coin_id = '${coin}' and quote = 'usd' and interval = '${interval}')`;
const utc = (text: string) => `'${text}T00:00:00Z'::timestamptz`;

/** Candles of wider slots, by hand. */
const grouped = (slot: string, coin: string, interval: string, from: string, to: string) => `
  select ${slot} as open_time, (array_agg(open order by open_time))[1] as open, max(high) as high, min(low) as low,
    (array_agg(close order by open_time desc))[1] as close, sum(volume order by open_time) as volume
  from market.candle where series_id = ${seriesOf(coin, interval)} and interval = '${interval}'
    and open_time >= ${utc(from)} and open_time < ${utc(to)} group by 1 order by 1`;

const OHLCV = 'open_time, open, high, low, close, volume';
const MONTH = `date_trunc('month', open_time, 'UTC')`;

const DAYS = (coin: string, columns: string, from = '2024-01-01', to = '2025-01-01') => `
  select ${columns} from market.candle where series_id = ${seriesOf(coin, '24h')} and interval = '24h'
    and open_time >= ${utc(from)} and open_time < ${utc(to)}`;

const HOURS = (columns: string) => `
  select ${columns} from market.candle where series_id = ${seriesOf(HOURLY, '1h')} and interval = '1h'
    and open_time >= ${utc('2024-01-01')} and open_time < ${utc('2025-01-01')}`;

/** Logarithmic returns of days within 2024, with the last day of 2023 before them. */
const LOGS = (coin: string) => `
  select open_time, r from (select open_time, ln(close / lag(close) over (order by open_time)) as r
    from (${DAYS(coin, 'open_time, close', '2023-12-31')}) d) l where open_time >= ${utc('2024-01-01')}`;

const TICKERS = `(select coin_id, at from market.ticker_history where at >= ${utc('2024-12-10')} order by at, coin_id limit 4000) t`;
const LAST_CLOSE = (from: string, by: string, more = '') => `
  select c.close from ${from} c where ${by} and c.interval = '24h' and c.open_time <= t.at - interval '24 hours' ${more}
  order by c.open_time desc limit 1`;
const WITH_SERIES = `${TICKERS} join market.series s on s.coin_id = t.coin_id and s.quote = 'usd' and s.interval = '24h'`;
const AS_OF_BY_HAND = `select count(*)::int as n, sum(c.close) as closes from ${WITH_SERIES}
  cross join lateral (${LAST_CLOSE('market.candle', 'c.series_id = s.id')}) c`;

export const VIEWS: readonly Question[] = [
  {
    name: 'the latest candle of every daily series',
    ours: `select coin_id, open_time, close from market.latest where interval = '24h' order by 1`,
    byHand: `select s.coin_id, c.open_time, c.close from market.series s cross join lateral (
      select open_time, close from market.candle where series_id = s.id and interval = '24h' order by open_time desc limit 1) c
      where s.interval = '24h' order by 1`,
  },
  {
    name: 'the latest candle of one series of 5m',
    ours: `select open_time, close from market.latest where coin_id = '${FINE}' and interval = '5m'`,
    byHand: `select open_time, close from market.candle where series_id = ${seriesOf(FINE, '5m')} and interval = '5m' order by open_time desc limit 1`,
  },
  {
    name: 'order by open_time desc limit 1, by series_id',
    ours: `select open_time, close from market.candles where series_id = market.series_of('${FINE}', '5m') and interval = '5m' order by open_time desc limit 1`,
    byHand: `select open_time, close from market.candle where series_id = ${seriesOf(FINE, '5m')} and interval = '5m' order by open_time desc limit 1`,
  },
  {
    name: 'order by open_time desc limit 1, by coin_id',
    ours: `select open_time, close from market.candles where coin_id = '${FINE}' and quote = 'usd' and interval = '5m' order by open_time desc limit 1`,
    byHand: `select open_time, close from market.candle where series_id = ${seriesOf(FINE, '5m')} and interval = '5m' order by open_time desc limit 1`,
    most: null,
  },
  {
    name: 'all coins on a date',
    ours: `select coin_id, close from market.candles where interval = '24h' and quote = 'usd' and open_time = ${utc('2024-06-30')} order by 1`,
    byHand: `select s.coin_id, c.close from market.series s join market.candle c on c.series_id = s.id and c.interval = '24h'
      where s.quote = 'usd' and s.interval = '24h' and c.open_time = ${utc('2024-06-30')}
      union all select s.coin_id, r.close from market.series s join market.rollup r on r.series_id = s.id and r.interval = '24h'
      where s.quote = 'usd' and s.interval < '24h' and r.open_time = ${utc('2024-06-30')} order by 1`,
  },
  {
    name: 'a year of days of one coin',
    ours: `select open_time, close from market.candles where coin_id = '${DAILY}' and quote = 'usd' and interval = '24h'
      and open_time >= ${utc('2024-01-01')} and open_time < ${utc('2025-01-01')} order by 1`,
    byHand: `${DAYS(DAILY, 'open_time, close')} order by 1`,
  },
  {
    name: 'as-of join of 4,000 tickers, by series_id',
    ours: `select count(*)::int as n, sum(c.close) as closes from ${WITH_SERIES}
      cross join lateral (${LAST_CLOSE('market.candles', 'c.series_id = s.id')}) c`,
    byHand: AS_OF_BY_HAND,
  },
  {
    name: 'as-of join of 4,000 tickers, by coin_id, within ten days',
    ours: `select count(*)::int as n, sum(c.close) as closes from ${TICKERS} cross join lateral (${LAST_CLOSE(
      'market.candles',
      `c.coin_id = t.coin_id and c.quote = 'usd'`,
      `and c.open_time > t.at - interval '10 days'`,
    )}) c`,
    byHand: AS_OF_BY_HAND,
    most: null,
  },
];

export const FUNCTIONS: readonly Question[] = [
  {
    name: 'ohlcv: five years of weeks',
    ours: `select ${OHLCV} from market.ohlcv('${DAILY}', '1 week', '2020-01-06', '2024-12-30')`,
    byHand: grouped(`date_trunc('week', open_time, 'UTC')`, DAILY, '24h', '2020-01-06', '2024-12-30'),
    goalMs: 5,
  },
  {
    name: 'ohlcv: a week of hours',
    ours: `select ${OHLCV} from market.ohlcv('${HOURLY}', '1 hour', '2024-06-03', '2024-06-10')`,
    byHand: `select ${OHLCV} from market.candle where series_id = ${seriesOf(HOURLY, '1h')} and interval = '1h'
      and open_time >= ${utc('2024-06-03')} and open_time < ${utc('2024-06-10')} order by 1`,
    goalMs: 5,
  },
  {
    name: 'ohlcv: a month of 15m from 5m',
    ours: `select ${OHLCV} from market.ohlcv('${FINE}', '15 minutes', '2024-06-01', '2024-07-01')`,
    byHand: grouped(`date_bin('15 minutes', open_time, timestamptz 'epoch')`, FINE, '5m', '2024-06-01', '2024-07-01'),
    goalMs: 25,
  },
  {
    name: 'universe: of a snapshot',
    ours: `select coin_id, market_cap from market.universe('2024-12-20', 100)`,
    byHand: `select coin_id, market_cap from market.ticker_history where at = ${utc('2024-12-20')} order by market_cap desc, coin_id limit 100`,
    goalMs: 5,
  },
  {
    name: 'universe: of daily candles',
    ours: `select coin_id, market_cap from market.universe('2024-07-01', 100)`,
    byHand: `select coin_id, market_cap from (
      select s.coin_id, c.market_cap from market.series s join market.candle c on c.series_id = s.id and c.interval = '24h'
      where s.quote = 'usd' and s.interval = '24h' and c.open_time = ${utc('2024-06-30')}
      union all select s.coin_id, r.market_cap from market.series s join market.rollup r on r.series_id = s.id and r.interval = '24h'
      where s.quote = 'usd' and s.interval < '24h' and r.open_time = ${utc('2024-06-30')}) x order by market_cap desc, coin_id limit 100`,
    goalMs: 5,
  },
  {
    name: 'price_at: one',
    ours: `select price from market.price_at('${DAILY}', '2024-06-30T12:00:00Z')`,
    byHand: `select close as price from market.candle where series_id = ${seriesOf(DAILY, '24h')} and interval = '24h'
      and open_time <= '2024-06-29T12:00:00Z' order by open_time desc limit 1`,
    goalMs: 1,
    most: null,
  },
  {
    name: 'price_at: 4,000 of them, of candles alone',
    ours: `select count(p.price)::int as n from ${TICKERS} cross join lateral market.price_at(t.coin_id, t.at - interval '180 days') p`,
    byHand: `select count(c.close)::int as n from ${WITH_SERIES}
      cross join lateral (${LAST_CLOSE('market.candle', 'c.series_id = s.id').replace('t.at', "t.at - interval '180 days'")}) c`,
    most: null,
  },
  {
    name: "returns: of months, of a hundred coins' five years",
    ours: `select c.id, r.open_time, r.simple_return as r from (select id from market.coin where id like '24h-%' order by id limit 100) c
      cross join lateral market.returns(c.id, '1 month', '2020-02-01', '2025-01-01') r order by 1, 2`,
    byHand: `select id, open_time, r from (select c.id, m.open_time, m.close / lag(m.close) over (partition by c.id order by m.open_time) - 1 as r
      from (select id from market.coin where id like '24h-%' order by id limit 100) c
      join market.series s on s.coin_id = c.id and s.quote = 'usd' and s.interval = '24h'
      cross join lateral (select ${MONTH} as open_time, (array_agg(close order by open_time desc))[1] as close from market.candle
        where series_id = s.id and interval = '24h' and open_time >= ${utc('2020-01-02')} group by 1) m) x
      where open_time >= ${utc('2020-02-01')} order by 1, 2`,
    goalMs: 150,
  },
  {
    name: 'vwap: a year of hours',
    ours: `select vwap from market.vwap('${HOURLY}', '2024-01-01', '2025-01-01', '1 hour')`,
    byHand: `select sum(volume * (high + low + close) / 3 order by open_time) / sum(volume order by open_time) as vwap
      from (${HOURS('open_time, high, low, close, volume')}) d`,
  },
  {
    name: 'twap: a year of hours',
    ours: `select twap from market.twap('${HOURLY}', '2024-01-01', '2025-01-01', '1 hour')`,
    byHand: `select avg((open + high + low + close) / 4 order by open_time) as twap from (${HOURS('open_time, open, high, low, close')}) d`,
  },
  {
    name: 'realized_volatility: a year of days',
    ours: `select volatility from market.realized_volatility('${DAILY}', '2024-01-01', '2025-01-01')`,
    byHand: `select stddev_samp(r) * sqrt(365) as volatility from (${LOGS(DAILY)}) d`,
  },
  {
    name: 'max_drawdown: a year of days',
    ours: `select drawdown from market.max_drawdown('${DAILY}', '2024-01-01', '2025-01-01')`,
    byHand: `select min(close / peak) - 1 as drawdown from (select close, max(close) over (order by open_time) as peak
      from (${DAYS(DAILY, 'open_time, close')}) d) p`,
  },
  {
    name: 'correlation: a year of days',
    ours: `select correlation, pairs from market.correlation('${DAILY}', '${OTHER}', '2024-01-01', '2025-01-01')`,
    byHand: `select corr(a.r, b.r) as correlation, count(*)::int as pairs from (${LOGS(DAILY)}) a join (${LOGS(OTHER)}) b using (open_time)`,
  },
  {
    name: 'on_grid: a year of days',
    ours: `select open_time, close from market.on_grid('${DAILY}', '1 day', '2024-01-01', '2025-01-01')`,
    byHand: `select g as open_time, d.close from generate_series(${utc('2024-01-01')}, ${utc('2024-12-31')}, interval '1 day') g
      left join (${DAYS(DAILY, 'open_time, close')}) d on d.open_time = g order by 1`,
  },
  {
    name: 'in_quote: a year of days in euros',
    ours: `select open_time, close from market.in_quote('${DAILY}', 'EUR', '1 day', '2024-01-01', '2025-01-01')`,
    byHand: `select d.open_time, d.close / r.price as close from (${DAYS(DAILY, 'open_time, close')}) d
      left join lateral (select price from market.rate where currency = 'EUR' and at <= d.open_time + interval '1 day' order by at desc limit 1) r on true
      order by 1`,
  },
  {
    name: 'event_study: 16 days around an event',
    ours: `select step, change, benchmark_change from market.event_study('${DAILY}', '2024-06-15', benchmark => '${OTHER}')`,
    byHand: `select (row_number() over w)::int - 6 as step, a.close / (nth_value(a.close, 5) over all_of_it) - 1 as change,
        b.close / (nth_value(b.close, 5) over all_of_it) - 1 as benchmark_change
      from (${DAYS(DAILY, 'open_time, close', '2024-06-10', '2024-06-26')}) a
      join (${DAYS(OTHER, 'open_time, close', '2024-06-10', '2024-06-26')}) b using (open_time)
      window w as (order by open_time), all_of_it as (w rows between unbounded preceding and unbounded following) order by 1`,
  },
];
