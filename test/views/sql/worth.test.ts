/** What a coin was worth: `market.price_at`, `latest`, `universe`, `in_quote`, `event_study`, in a session in New York. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CandleInterval, DAY, HOUR, INTERVAL_MS } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { analystIn } from '../../support/analyst.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';
import { coinNamed } from '../../support/stored-answers.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;

/** Candles from `from` on that close at these prices. By default with volume 2 and a market capitalisation of 6. */
async function closing(
  coinId: string,
  interval: CandleInterval,
  from: number,
  prices: readonly (number | null)[],
  volume = 2,
): Promise<void> {
  const span = { from, to: from + prices.length * INTERVAL_MS[interval] };
  const series = await givenSeries(sql, { coinId, interval, span });
  const slots = prices.map((price): CandleValues | null =>
    price === null ? null : [price / 1.01, price * 2, price / 2, volume],
  );
  await storeAnswer(sql, series, { span, slots });
}

async function seen(coinId: string, at: number, price: number, marketCap: number | null = null): Promise<void> {
  await sql`
    insert into market.ticker_history (coin_id, at, updated_at, price, market_cap, rank) values (${coinId}, ${at}, ${at}, ${price}, ${marketCap}, 1)`;
}

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: day(1), to: day(400) });
  await closing('aaa-coin', '24h', day(1), [10, 20, null, 40, 50]);
  await closing('aaa-coin', '1h', day(4), [41, 42, 43]);
  await seen('aaa-coin', day(4) + 90 * 60_000, 41.5);
  await seen('aaa-coin', day(4) + 3 * HOUR, 99);
  await recordCoins(sql, [coinNamed('ppp-coin'), coinNamed('none-coin')], FIRST);
  const [prices] = await sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, covered) values ('ppp-coin', 'usd', 'prices-1d', ${[{ from: day(1), to: day(3) }]}) returning id`;
  await sql`
    insert into market.price (time, price, market_cap, series_id) values (${day(1)}, 7, 700, ${prices!.id}), (${day(2)}, 8, null, ${prices!.id}),
      -- Not final: perhaps the mean of a part of the day.
      (${day(3)}, 9, 900, ${prices!.id})`;
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

describe('a price at an instant', () => {
  const at = async (coin: string, when: string, maxAge?: string) => {
    const rows = await (maxAge === undefined
      ? analyst`select price, source, age::text from market.price_at(${coin}, ${when})`
      : analyst`select price, source, age::text from market.price_at(${coin}, ${when}, ${maxAge}::interval)`);
    expect(rows).toHaveLength(1);
    const { price, source, age } = rows[0] as Record<string, unknown>;
    return [typeof price === 'number' ? Math.round(price * 100) / 100 : price, source, age];
  };

  test('comes from the youngest closed candle, whatever its width, and never from an open one', async () => {
    expect(await at('AAA', '2024-01-02 00:00')).toEqual([10, '24h candle', '00:00:00']);
    expect(await at('AAA', '2024-01-02 23:59:59')).toEqual([10, '24h candle', '23:59:59']);
    expect(await at('AAA', '2024-01-03')).toEqual([20, '24h candle', '00:00:00']);
    expect(await at('AAA', '2024-01-04 01:10')).toEqual([41, '1h candle', '00:10:00']);
    // Both close at this instant: the narrower one counts.
    expect(await at('AAA', '2024-01-04 01:00')).toEqual([41, '1h candle', '00:00:00']);
    expect(await at('AAA', '2024-01-01 12:00')).toEqual([null, null, null]);
  });

  test('comes from a ticker that is younger, and not from one of the same instant', async () => {
    expect(await at('AAA', '2024-01-04 01:45')).toEqual([41.5, 'ticker', '00:15:00']);
    expect(await at('AAA', '2024-01-04 03:00')).toEqual([43, '1h candle', '00:00:00']);
    const [btc] = await analyst`select price from market.price_at('AAA', '2024-01-04 01:45', '1 day', 'btc')`;
    expect(btc).toEqual({ price: null });
  });

  test('is null when nothing is young enough: in a hole, and after a coin died', async () => {
    // The third day has no candle.
    expect(await at('AAA', '2024-01-04 00:00')).toEqual([20, '24h candle', '1 day']);
    expect(await at('AAA', '2024-01-04 00:00', '23 hours')).toEqual([null, null, null]);
    expect(await at('AAA', '2024-02-01')).toEqual([null, null, null]);
    expect(await at('AAA', '2024-02-01', '1 year')).toEqual([50, '24h candle', '26 days']);
  });

  test('is the mean of a span only where there is nothing else, and says so', async () => {
    expect(await at('ppp-coin', '2024-01-02 06:00')).toEqual([7, 'mean of 1d', '06:00:00']);
    await seen('ppp-coin', day(2) + HOUR, 7.5);
    expect(await at('ppp-coin', '2024-01-02 06:00')).toEqual([7.5, 'ticker', '05:00:00']);
    expect(await at('none-coin', '2024-01-02')).toEqual([null, null, null]);
    expect(await at('ppp-coin', '2024-01-04 06:00', '2 days')).toEqual([8, 'mean of 1d', '1 day 06:00:00']);
    // Read when its day was over, though not final yet.
    const answered = (instant: number | null) =>
      sql`update market.series set answered_at = ${instant} where coin_id = 'ppp-coin' and interval = 'prices-1d'`;
    await answered(day(4));
    expect(await at('ppp-coin', '2024-01-04 06:00')).toEqual([9, 'mean of 1d', '06:00:00']);
    await answered(day(4) - 1_000);
    expect(await at('ppp-coin', '2024-01-04 06:00')).toEqual([null, null, null]);
  });

  test('can be joined to the rows of another table, and keeps rows without a price', async () => {
    const rows = await analyst`
      select t.n, p.price is null as is_unknown
      from (values (1, 'aaa-coin', market.utc('2024-01-02')), (2, null, market.utc('2024-01-02')), (3, 'aaa-coin', null)) t(n, coin, at)
      cross join lateral market.price_at(t.coin, t.at) p order by 1`;
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { n: 1, is_unknown: false },
      { n: 2, is_unknown: true },
      { n: 3, is_unknown: true },
    ]);
  });
});

test('market.latest has the newest stored candle of each series', async () => {
  const rows = await analyst`
    select interval, to_char(open_time at time zone 'UTC', 'MM-DD HH24') as at, to_char(close_time at time zone 'UTC', 'MM-DD HH24:MI:SS') as ends, round(close) as close, is_final
    from market.latest where coin_id = 'aaa-coin' order by interval`;
  expect(rows.map((row) => ({ ...row }))).toEqual([
    { interval: '1h', at: '01-04 02', ends: '01-04 02:59:59', close: 43, is_final: true },
    { interval: '24h', at: '01-05 00', ends: '01-05 23:59:59', close: 50, is_final: true },
  ]);
});

test('bars of samples are whole, also where the span reaches beyond now', async () => {
  const today = Math.floor(Date.now() / DAY) * DAY;
  const [series] = await sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, covered) values ('none-coin', 'usd', 'prices-1h', '{}') returning id`;
  await sql`
    insert into market.price (time, price, series_id) select t, 5, ${series!.id}
    from generate_series(${today - DAY}::timestamptz, ${today}::timestamptz, interval '1 hour') t`;
  const bars = await analyst`
    select samples from market.prices_sampled('none-coin', '1 day', now() - interval '3 days', now() + interval '3 days')`;
  expect(bars.map(({ samples }) => samples)).toEqual([24]);
  await sql`delete from market.price where series_id = ${series!.id}`;
  await sql`delete from market.series where id = ${series!.id}`;
});

describe('the universe', () => {
  const largest = async (at: string, n = 10) =>
    analyst<
      { place: number; coin_id: string; source: string }[]
    >`select place, coin_id, source from market.universe(${at}, ${n})`.then((rows) =>
      rows.map(({ place, coin_id, source }) => `${place} ${coin_id} ${source}`),
    );

  test('is as of then: by candles that had closed, also of coins that are dead now', async () => {
    await closing('big-coin', '24h', day(20), [1, 1, 1], 1_000);
    await closing('small-coin', '24h', day(20), [1, null, null, null], 10);
    await closing(
      'mid-coin',
      '1h',
      day(20),
      Array.from({ length: 72 }, () => 1),
      4,
    );
    await rollUp(sql);
    await sql`update market.coin set is_active = false, rank = 0 where id = 'big-coin'`;
    expect(await largest('2024-01-20 12:00')).toEqual([]);
    // A made day has the market capitalisation of its last hour.
    expect(await largest('2024-01-21')).toEqual([
      '1 big-coin 24h candle',
      '2 small-coin 24h candle',
      '3 mid-coin 24h candle',
    ]);
    // On a day without a candle, the day before counts, but no older one.
    expect(await largest('2024-01-22 12:00')).toEqual([
      '1 big-coin 24h candle',
      '2 small-coin 24h candle',
      '3 mid-coin 24h candle',
    ]);
    expect(await largest('2024-01-23')).toEqual(['1 big-coin 24h candle', '2 mid-coin 24h candle']);
    expect(await largest('2024-01-23', 1)).toEqual(['1 big-coin 24h candle']);
    expect(await largest('2024-01-02 12:00')).toEqual(['1 ppp-coin mean of 1d', '2 aaa-coin 24h candle']);
    expect((await largest('2024-01-04 12:00')).filter((row) => row.includes('ppp-coin'))).toEqual([]);
  });

  test('is a snapshot of tickers if there is one of the day before', async () => {
    await sql`update market.coin set rank = 1 where id = 'mid-coin'`;
    for (const [coin, cap] of [
      ['mid-coin', 5],
      ['big-coin', 9],
      ['small-coin', null],
    ] as const)
      await seen(coin, day(100), 1, cap);
    await seen('mid-coin', day(100) + HOUR, 1, 4);
    expect(await largest('2024-04-09 00:30')).toEqual(['1 big-coin ticker', '2 mid-coin ticker']);
    expect(await largest('2024-04-09 01:30')).toEqual(['1 mid-coin ticker']);
    expect(await largest('2024-04-11')).toEqual([]);
  });
});

describe('another currency', () => {
  const inQuote = async (coin: string, currency: string, from: string, to: string, maxAge = '1 day') =>
    analyst<{ close: number | null; volume: number | null; rate: number | null; source: string | null }[]>`
      select round(close::numeric, 4)::float8 as close, volume, rate, source
      from market.in_quote(${coin}, ${currency}, '1 day', ${from}, ${to}, ${maxAge}::interval)`.then((rows) =>
      rows.map((row) => ({ ...row })),
    );

  test('uses the rate at the close, which may be a little older, or is null', async () => {
    await sql`
      insert into market.rate (currency, at, updated_at, price) values
        ('EUR', ${day(2)}, now(), 2), ('EUR', ${day(2) + HOUR}, now(), 100), ('EUR', ${day(4) + 20 * HOUR}, now(), 4)`;
    expect(await inQuote('AAA', 'eur', '2024-01-01', '2024-01-06')).toEqual([
      { close: 5, volume: 1, rate: 2, source: 'market.rate' },
      { close: 0.2, volume: 0.02, rate: 100, source: 'market.rate' },
      { close: 10, volume: 0.5, rate: 4, source: 'market.rate' },
      { close: null, volume: null, rate: null, source: 'market.rate' },
    ]);
    expect((await inQuote('AAA', 'EUR', '2024-01-05', '2024-01-06', '2 days'))[0]).toMatchObject({ close: 12.5 });
  });

  test('that is a coin uses its candle of the same slot, unless candles in it are stored', async () => {
    await closing('xyz-coin', '24h', day(1), [5, 4]);
    expect(await inQuote('AAA', 'XYZ', '2024-01-01', '2024-01-05')).toEqual([
      { close: 2, volume: 0.4, rate: 5, source: 'xyz-coin' },
      { close: 5, volume: 0.5, rate: 4, source: 'xyz-coin' },
      { close: null, volume: null, rate: null, source: 'xyz-coin' },
    ]);
    expect((await inQuote('AAA', 'usd', '2024-01-01', '2024-01-02'))[0]).toMatchObject({
      close: 10,
      rate: 1,
      source: 'candles in usd',
    });
    const [stored] = await sql<{ id: number }[]>`
      insert into market.series (coin_id, quote, interval) values ('aaa-coin', 'btc', '24h') returning id`;
    await sql`insert into market.candle (open_time, close, series_id, interval) values (${day(1)}, 0.5, ${stored!.id}, '24h')`;
    expect(await inQuote('AAA', 'BTC', '2024-01-01', '2024-01-03')).toEqual([
      { close: 0.5, volume: null, rate: 1, source: 'candles in btc' },
      // Not stored, and bitcoin is not known here.
      { close: null, volume: null, rate: null, source: null },
    ]);
    await expect(inQuote('AAA', 'no such', '2024-01-01', '2024-01-03')).rejects.toThrow('no coin is called no such');
  });
});

describe('an event', () => {
  test('is measured from the last close before its slot, and against the benchmark; a hole stays a hole', async () => {
    await closing('eee-coin', '24h', day(1), [10, 10, 20, null, 5]);
    await closing('bench-coin', '24h', day(1), [100, 100, 110, 120, 100]);
    const rows = await analyst`
      select step, to_char(open_time at time zone 'UTC', 'MM-DD') as at, round(change::numeric, 6)::float8 as change, round(abnormal::numeric, 6)::float8 as abnormal
      from market.event_study('EEE', '2024-01-03 15:00', 1, 2, benchmark => 'bench-coin')`;
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { step: -1, at: '01-02', change: 0, abnormal: 0 },
      { step: 0, at: '01-03', change: 1, abnormal: 0.9 },
      { step: 1, at: '01-04', change: null, abnormal: null },
      { step: 2, at: '01-05', change: -0.5, abnormal: -0.5 },
    ]);
    const [no] =
      await analyst`select change from market.event_study('EEE', '2024-01-05', 0, 0, benchmark => 'bench-coin')`;
    expect(no).toEqual({ change: null });
    await expect(
      analyst`select from market.event_study('EEE', '2024-01-05', -1, benchmark => 'bench-coin')`,
    ).rejects.toThrow('not negative');
    await expect(analyst`select from market.event_study('EEE', '2024-01-05')`).rejects.toThrow(
      'no coin is called btc-bitcoin',
    );
  });
});

describe('the meaning of a volume', () => {
  const meaning = async () => {
    const [row] =
      await analyst`select meaning, days, round(hours_to_day::numeric, 2)::float8 as ratio from market.volume_meaning()`;
    return { ...row };
  };

  test('follows from stored days and hours, when there are enough', async () => {
    await sql`delete from market.series where interval < '24h'`;
    expect(await meaning()).toEqual({ meaning: 'cannot tell yet', days: 0, ratio: null });
    const count = 12;
    const hours = (volume: number) =>
      closing(
        'vol-coin',
        '1h',
        day(1),
        Array.from({ length: 24 * count }, () => 1),
        volume,
      );
    await closing(
      'vol-coin',
      '24h',
      day(1),
      Array.from({ length: count }, () => 1),
      48,
    );
    await hours(2);
    expect(await meaning()).toEqual({ meaning: 'sum of the slot', days: 12, ratio: 1 });
    await hours(47);
    expect(await meaning()).toEqual({ meaning: 'rolling day', days: 12, ratio: 23.5 });
    const { out } = await runCommand(['doctor', '--json'], { env: { DATABASE_URL: database.url } });
    expect(JSON.parse(out)).toContainEqual({
      name: 'volume',
      state: 'warn',
      found: 'the volume of an hour is that of a whole day, by 12 stored days',
      fix: 'do not add up volumes of less than a day, and do not weight prices with them',
    });
    await hours(10);
    expect(await meaning()).toEqual({ meaning: 'neither', days: 12, ratio: 5 });
  });
});
