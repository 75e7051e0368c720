/** Silent mistakes that an analyst made with version 0.1. Each now gives the right answer, or an error that says why. In a session in New York. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { analystIn } from '../../support/analyst.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

const FROM = Date.UTC(2024, 5, 1);
const JUNE = { from: FROM, to: FROM + 30 * DAY };

let database: TestDatabase;
let analyst: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  // June in days, of which the 20th is a hole and the 25th has no volume; and in hours of another coin.
  const days = await givenSeries(sql, { coinId: 'btc-bitcoin', interval: '24h', span: JUNE });
  await storeAnswer(sql, days, {
    span: JUNE,
    slots: Array.from({ length: 30 }, (_, i): CandleValues | null =>
      i === 19 ? null : [i + 1, i + 2, i + 0.5, i === 24 ? null : 1],
    ),
  });
  const hours = await givenSeries(sql, { coinId: 'eth-ethereum', interval: '1h', span: JUNE });
  await storeAnswer(sql, hours, {
    span: JUNE,
    slots: Array.from({ length: 30 * 24 }, (_, i): CandleValues => [i + 1, i + 2, i + 0.5, 1]),
  });
  const quarters = await givenSeries(sql, { coinId: 'xrp-xrp', interval: '15m', span: JUNE });
  await storeAnswer(sql, quarters, {
    span: JUNE,
    slots: Array.from({ length: 30 * 96 }, (_, i): CandleValues => [i + 1, i + 2, i + 0.5, 1]),
  });
  await rollUp(sql);
  analyst = await analystIn(database);
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

test('market.utc names a whole day, which a date without a zone misses outside of UTC', async () => {
  // Postgres reads a literal in the zone of the session before a view can change it. Logins and databases of ours use UTC.
  expect(
    await analyst`select from market.candles where coin_id = 'btc-bitcoin' and open_time = '2024-06-30'`,
  ).toHaveLength(0);
  expect(
    await analyst`select from market.candles where coin_id = 'btc-bitcoin' and open_time = market.utc('2024-06-30')`,
  ).toHaveLength(1);
  expect(await analyst`select from market.ohlcv('BTC', '1 day', '2024-06-30', '2024-07-01')`).toHaveLength(1);
  const login = await analystIn(database, 'UTC');
  try {
    expect(
      await login`select from market.candles where coin_id = 'btc-bitcoin' and open_time = '2024-06-30'`,
    ).toHaveLength(1);
  } finally {
    await login.end();
  }
});

test('market.slot_of gives the right month, which date_trunc does not in the zone of the session', async () => {
  const [shifted] = await analyst`
    select count(distinct date_trunc('month', open_time))::int as months from market.candles where coin_id = 'btc-bitcoin'`;
  expect(shifted).toEqual({ months: 2 });
  const [right] = await analyst`
    select count(distinct market.slot_of('1 month', open_time))::int as months from market.candles where coin_id = 'btc-bitcoin'`;
  expect(right).toEqual({ months: 1 });
  const months = await analyst`
    select to_char(open_time at time zone 'UTC', 'YYYY-MM') as month, slots, complete from market.ohlcv('BTC', '1 month', '2024-05-01', '2024-08-01')`;
  expect(months.map((row) => ({ ...row }))).toEqual([{ month: '2024-06', slots: 29, complete: true }]);
});

test('market.coin_of finds the id of a symbol, and chandler sql explains why coin_id = a symbol finds nothing', async () => {
  expect(await analyst`select from market.candles where coin_id = 'BTC'`).toHaveLength(0);
  expect((await analyst`select from market.candles where coin_id = market.coin_of('BTC')`).length).toBeGreaterThan(0);
  await expect(analyst`select from market.candles where coin_id = market.coin_of('bitcoin')`).rejects.toThrow(
    'no coin is called bitcoin',
  );
  const { out, err } = await runCommand(['sql', "select * from market.candles where coin_id = 'BTC'"], {
    env: { DATABASE_URL: database.url },
  });
  expect(out).toContain('(0 rows)');
  expect(err).toContain('no coin has the id BTC; it is a name of btc-bitcoin');
});

test('a week has no volume if that of a day is unknown, instead of too small a sum', async () => {
  const [understated] = await analyst`
    select sum(volume) as volume from market.candles
    where coin_id = 'btc-bitcoin' and open_time >= market.utc('2024-06-24') and open_time < market.utc('2024-07-01')`;
  expect(understated).toEqual({ volume: 6 });
  const [week] = await analyst`select volume, slots from market.ohlcv('BTC', '1 week', '2024-06-24', '2024-07-01')`;
  expect(week).toEqual({ volume: null, slots: 7 });
});

test('market.returns spans no holes, unlike lag()', async () => {
  const [spanned] = await analyst`
    select count(*)::int as returns from (select close / lag(close) over (order by open_time) as change from market.candles where coin_id = 'btc-bitcoin') c
    where change is not null`;
  expect(spanned).toEqual({ returns: 28 });
  const [right] =
    await analyst`select count(simple_return)::int as returns from market.returns('BTC', '1 day', '2024-06-01', '2024-07-01')`;
  expect(right).toEqual({ returns: 27 });
});

test('SQL has the 6h candles that REST has', async () => {
  const [made] = await analyst`
    select count(*)::int as candles, min(made_of::text) as made_of, bool_and(is_final) as final
    from market.candles where coin_id = 'eth-ethereum' and interval = '6h'`;
  expect(made).toEqual({ candles: 120, made_of: '1h', final: true });
  // Those of 15m, 30m and 1h are made on request.
  const [asked] = await analyst`
    select count(*)::int as candles, bool_and(complete) as final from market.ohlcv('XRP', '1 hour', '2024-06-01', '2024-07-01')`;
  expect(asked).toEqual({ candles: 720, final: true });
  const [condition] = await analyst`
    select condition, detail, slots, final_slots, rows from market.condition('XRP', '1h', '2024-06-30')`;
  expect(condition).toEqual({
    condition: 'available',
    detail: 'made of candles of a narrower interval',
    slots: 24,
    final_slots: 24,
    rows: 24,
  });
});

test('the newest candle of a series is found by one look-up with its number, instead of reading the series', async () => {
  const newest = `select extract(epoch from open_time)::int as at, close from market.candles
    where series_id = market.series_of('XRP', '15m') and interval = '15m' order by open_time desc limit 1`;
  const plan = (await analyst.unsafe(`explain (costs off) ${newest}`)).map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).not.toMatch(/^ *(->)? *Sort$/m);
  expect(plan).toMatch(/Index Scan Backward/);
  const latest = await analyst`
    select extract(epoch from open_time)::int as at, close from market.latest where coin_id = 'xrp-xrp' and interval = '15m'`;
  expect([...(await analyst.unsafe(newest))]).toEqual([...latest]);
  expect(latest[0]).toMatchObject({ at: JUNE.to / 1000 - 900 });
  await expect(analyst`select market.series_of('XRP', '5m')`).rejects.toMatchObject({
    message: 'there are no candles or prices of 5m of xrp-xrp in usd',
    hint: 'Stored are: 15m in usd. market.ohlcv makes wider candles of narrower ones.',
  });
  await expect(analyst`select market.series_of('nobody', '5m')`).rejects.toThrow('no coin is called nobody');
});

test('an as-of join by the number of the series reads one row for each, also through the view', async () => {
  const plan =
    await analyst.unsafe(`explain (costs off) select t.n, c.close from (values (1, market.utc('2024-06-10 12:00'))) t(n, at)
    join market.series s on s.coin_id = 'xrp-xrp' and s.quote = 'usd' and s.interval = '15m'
    cross join lateral (select close from market.candles where series_id = s.id and interval = '15m' and open_time <= t.at - interval '15 minutes'
      order by open_time desc limit 1) c`);
  const text = plan.map((row) => row['QUERY PLAN']).join('\n');
  expect(text).not.toMatch(/^ *(->)? *Sort$/m);
  expect(text).toMatch(/Index Scan Backward/);
});

test('market.volume_meaning says whether volumes may be added up, or are those of a rolling day', async () => {
  expect([...(await analyst`select meaning, days from market.volume_meaning()`)]).toEqual([
    { meaning: 'cannot tell yet', days: 0 },
  ]);
});

test('a backtest finds coins that did not survive', async () => {
  const { sql } = database;
  await sql`update market.coin set is_active = false where id = 'btc-bitcoin'`;
  try {
    const then = await analyst`select coin_id from market.universe('2024-06-15', 10) order by place`;
    expect(then.map((row) => row.coin_id)).toContain('btc-bitcoin');
  } finally {
    await sql`update market.coin set is_active = true where id = 'btc-bitcoin'`;
  }
});

test('the width and the close time of a candle are inlined instead of called for each row', async () => {
  const plan = await analyst.unsafe(
    `explain (verbose, costs off) select close_time from market.candles where coin_id = 'btc-bitcoin'`,
  );
  expect(plan.map((row) => row['QUERY PLAN']).join('\n')).not.toContain('width_of');
  const [nothing] = await analyst`select market.width_of(null) as width`;
  expect(nothing).toEqual({ width: null });
});

test('an as-of join with market.price_at gives each row its price, or null if it is too old', async () => {
  const rows = await analyst`
    select t.n, p.price, p.age::text from (
      values (1, market.utc('2024-06-10 12:00')), (2, market.utc('2024-06-21 06:00')), (3, market.utc('2024-08-01'))) t(n, at)
    cross join lateral market.price_at('BTC', t.at) p order by 1`;
  // The candle of the ninth; in the hole, that of the nineteenth, which is too old; and a month later none.
  expect(rows.map(({ n, price, age }) => [n, price, age])).toEqual([
    [1, 9 * 1.01, '12:00:00'],
    [2, null, null],
    [3, null, null],
  ]);
  const [older] = await analyst`select price, age::text from market.price_at('BTC', '2024-06-21 06:00', '2 days')`;
  expect(older).toEqual({ price: 19 * 1.01, age: '1 day 06:00:00' });
});
