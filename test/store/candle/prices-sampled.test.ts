/** `market.prices_sampled`: bars made of samples, with how complete each is. Every expectation is written by hand. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, type PriceInterval } from '../../../src/core/interval.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed } from '../../support/stored-answers.ts';

const COIN = 'a-coin';
const MINUTE = 60_000;
/** In Europe, clocks went forward on this Sunday at 01:00 UTC. */
const SUNDAY = Date.UTC(2026, 2, 29);
const MONDAY = SUNDAY + DAY;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await recordCoins(database.sql, [coinNamed(COIN), coinNamed('b-coin')], SUNDAY);
  await ensurePartitionsOf(database.sql, TICKER_HISTORY, { from: SUNDAY - 30 * DAY, to: SUNDAY + 60 * DAY });
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.sql`delete from market.price`;
  await database.sql`delete from market.series`;
  await database.sql`delete from market.ticker_history`;
});

type Sample = readonly [at: number, price: number | null];

async function seen(samples: readonly Sample[], coinId = COIN): Promise<void> {
  for (const [at, price] of samples)
    await database.sql`
      insert into market.ticker_history (coin_id, at, updated_at, price, rank) values (${coinId}, ${at}, ${at}, ${price}, 1)`;
}

async function priced(interval: PriceInterval, prices: readonly Sample[], quote = 'usd'): Promise<void> {
  const [row] = await database.sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, wanted, covered) values (${COIN}, ${quote}, ${interval}, '{}', '{}') returning id`;
  for (const [at, price] of prices)
    await database.sql`insert into market.price (series_id, time, price) values (${row!.id}, ${at}, ${price})`;
}

/** Postgres formats the times, so that no conversion of the client affects them. */
const sampled = (width: string, from: number, to: number, sql: Sql = database.sql) =>
  sql`
    select extract(epoch from open_time)::float8 * 1000 as at, open, high, low, close, samples,
      extract(epoch from largest_gap)::float8 / 3600 as gap_hours, is_open_at_edge as opens, is_close_at_edge as closes
    from market.prices_sampled(${COIN}, ${width}::interval, ${from}::timestamptz, ${to}::timestamptz)`.then((rows) =>
    rows.map((row) => ({ ...row })),
  );

describe('bars of samples', () => {
  test('a bar needs a sample of its coin that has a price', async () => {
    await seen([[SUNDAY + HOUR, 7]], 'b-coin');
    await seen([[SUNDAY + HOUR, null]]);
    await priced('prices-1h', [[SUNDAY + 2 * HOUR, null]]);
    await priced('prices-5m', [[SUNDAY + 3 * HOUR, 7]], 'btc');
    expect(await sampled('1 day', SUNDAY, MONDAY)).toEqual([]);
    expect(await sampled('1 day', MONDAY, SUNDAY)).toEqual([]);
    expect(await sampled('1 day', SUNDAY, SUNDAY)).toEqual([]);
  });

  test('a single sample gives all four prices; the longest gap reaches to the farther edge of the bar', async () => {
    await seen([[SUNDAY + 9 * HOUR, 7]]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toEqual([
      { at: SUNDAY, open: 7, high: 7, low: 7, close: 7, samples: 1, gapHours: 15, opens: false, closes: false },
    ]);
  });

  test('a sample at the start of a bar belongs to it; a sample at its end belongs to the next bar', async () => {
    await seen([
      [SUNDAY, 5],
      [MONDAY - 1, 3],
      [MONDAY, 9],
    ]);
    const [sunday, monday, ...more] = await sampled('1 day', SUNDAY, MONDAY + DAY);
    expect(more).toEqual([]);
    expect(sunday).toEqual({
      ...{ at: SUNDAY, open: 5, high: 5, low: 3, close: 3, samples: 2, opens: true, closes: true },
      gapHours: (DAY - 1) / HOUR,
    });
    expect(monday).toEqual({
      ...{ at: MONDAY, open: 9, high: 9, low: 9, close: 9, samples: 1, opens: true, closes: false },
      gapHours: 24,
    });
  });

  test('a bar opens and closes with a sample if one lies within a twenty-fourth of its width from the edge, inclusive', async () => {
    await seen([
      [SUNDAY + HOUR, 5],
      [MONDAY - HOUR, 4],
      [MONDAY + HOUR + 1_000, 5],
      [MONDAY + DAY - HOUR - 1_000, 4],
    ]);
    expect(await sampled('1 day', SUNDAY, MONDAY + DAY)).toMatchObject([
      { opens: true, closes: true, gapHours: 22 },
      { opens: false, closes: false },
    ]);
  });

  test('the earliest sample gives the open and the latest the close, in whatever order they were stored; gaps count between samples', async () => {
    await seen([
      [SUNDAY + 6 * HOUR, 1],
      [SUNDAY + 10 * MINUTE, 4],
      [SUNDAY + 23 * HOUR, 5],
      [SUNDAY + 3 * HOUR, 9],
    ]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toEqual([
      { at: SUNDAY, open: 4, high: 9, low: 1, close: 5, samples: 4, gapHours: 17, opens: true, closes: true },
    ]);
  });

  test('bars that the requested range cuts are left out, with their samples', async () => {
    await seen(Array.from({ length: 72 }, (_, i): Sample => [SUNDAY - DAY + i * HOUR, i]));
    const days = async (from: number, to: number) => (await sampled('1 day', from, to)).map(({ at }) => at);
    expect(await days(SUNDAY - DAY, MONDAY + DAY)).toEqual([SUNDAY - DAY, SUNDAY, MONDAY]);
    expect(await days(SUNDAY - DAY + 1, MONDAY + DAY - 1)).toEqual([SUNDAY]);
    expect(await days(SUNDAY + 1, MONDAY + 23 * HOUR)).toEqual([]);
    expect(await sampled('6 hours', SUNDAY + 5 * HOUR, SUNDAY + 13 * HOUR)).toEqual([
      {
        at: SUNDAY + 6 * HOUR,
        open: 30,
        high: 35,
        low: 30,
        close: 35,
        samples: 6,
        gapHours: 1,
        opens: true,
        closes: false,
      },
    ]);
  });

  test('the grid of bars starts in 1970, so bars of seven days begin on Thursdays', async () => {
    await seen([[SUNDAY, 2]]);
    expect(await sampled('7 days', SUNDAY - 10 * DAY, SUNDAY + 10 * DAY)).toMatchObject([
      { at: Date.UTC(2026, 2, 26) },
    ]);
    await expect(sampled('1 month', SUNDAY - 90 * DAY, SUNDAY + 90 * DAY)).rejects.toThrow(
      'no bars of samples have a width of 1 mon',
    );
  });
});

describe('bars of price series', () => {
  test('each bar uses the one series that leaves the smallest gap; of two equal ones, the narrower', async () => {
    await priced('prices-1h', [
      [SUNDAY, 10],
      [SUNDAY + HOUR, 11],
    ]);
    await priced('prices-15m', [
      [SUNDAY + 15 * MINUTE, 20],
      [SUNDAY + HOUR, 21],
    ]);
    await priced('prices-10m', [[SUNDAY - DAY, 30]]);
    // A series with rows, but without prices.
    await priced('prices-5m', [[SUNDAY, null]]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toMatchObject([{ open: 20, close: 21, samples: 2 }]);
    // A few prices of a narrow series do not replace the wider series in bars that the wider one fills.
    await priced('prices-12h', [
      [SUNDAY - DAY, 40],
      [SUNDAY - DAY / 2, 41],
      [SUNDAY, 42],
      [SUNDAY + DAY / 2, 43],
    ]);
    expect(await sampled('1 day', SUNDAY - DAY, MONDAY)).toMatchObject([
      { at: SUNDAY - DAY, open: 40, close: 41, samples: 2 },
      { at: SUNDAY, open: 42, close: 43, samples: 2 },
    ]);
  });

  test('a mean over a longer time is not used as a sample at the edge of a bar', async () => {
    await priced('prices-6h', [
      [SUNDAY, 1],
      [SUNDAY + 6 * HOUR, 2],
      [SUNDAY + 12 * HOUR, 3],
      [SUNDAY + 18 * HOUR, 4],
    ]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toMatchObject([{ opens: false, closes: false, samples: 4 }]);
    await seen([
      [SUNDAY - MINUTE, 1],
      [SUNDAY, 1],
    ]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toMatchObject([{ opens: true }]);
  });

  test('a price series as wide as the bars, or wider, gives no samples', async () => {
    await priced('prices-1d', [[SUNDAY, 10]]);
    await priced('prices-7d', [[SUNDAY - 3 * DAY, 10]]);
    expect(await sampled('1 day', SUNDAY - 7 * DAY, MONDAY)).toEqual([]);
    expect(await sampled('24 hours', SUNDAY - 7 * DAY, MONDAY)).toEqual([]);
    expect(await sampled('2 days', Date.UTC(2026, 2, 27), Date.UTC(2026, 2, 31))).toMatchObject([{ samples: 1 }]);
  });

  test('a bar combines samples of tickers and of a price series', async () => {
    await priced('prices-1h', [
      [SUNDAY, 10],
      [SUNDAY + 12 * HOUR, 30],
      [SUNDAY + 23 * HOUR, 20],
    ]);
    await seen([
      [SUNDAY + 6 * HOUR, 5],
      [MONDAY - MINUTE, 25],
    ]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toEqual([
      { at: SUNDAY, open: 10, high: 30, low: 5, close: 25, samples: 5, gapHours: 11, opens: true, closes: true },
    ]);
  });

  test('of two samples of one instant, the lower one comes first', async () => {
    await priced('prices-1h', [
      [SUNDAY, 10],
      [SUNDAY + 23 * HOUR, 20],
    ]);
    await seen([
      [SUNDAY, 9],
      [SUNDAY + 23 * HOUR, 19],
    ]);
    expect(await sampled('1 day', SUNDAY, MONDAY)).toMatchObject([{ open: 9, close: 20, samples: 4, gapHours: 23 }]);
  });
});

test.each(['Europe/Warsaw', 'America/New_York', 'Asia/Kathmandu'])(
  'a session in %s gets the same bars, also on days when clocks change',
  async (zone) => {
    const whole = Array.from({ length: 96 }, (_, i): Sample => [SUNDAY - DAY + i * HOUR, i]);
    await seen(whole.filter(([at]) => at < MONDAY - 2 * HOUR || at >= MONDAY));
    await priced('prices-30m', [[SUNDAY + 30 * MINUTE, 500]]);
    const elsewhere = createClient({ url: database.url, max: 1 });
    try {
      await elsewhere.unsafe(`set time zone '${zone}'`);
      for (const [width, from, to] of [
        ['1 day', SUNDAY - DAY, MONDAY + 2 * DAY],
        ['24 hours', SUNDAY - DAY, MONDAY + 2 * DAY],
        ['1 day', SUNDAY, MONDAY - HOUR],
        ['2 days', SUNDAY - DAY, MONDAY + 2 * DAY],
      ] as const)
        expect(await sampled(width, from, to, elsewhere)).toEqual(await sampled(width, from, to));
      expect(await sampled('1 day', SUNDAY, MONDAY, elsewhere)).toEqual([
        { at: SUNDAY, open: 24, high: 500, low: 24, close: 45, samples: 23, gapHours: 3, opens: true, closes: false },
      ]);
      expect(await sampled('1 day', SUNDAY, MONDAY - HOUR, elsewhere)).toEqual([]);
    } finally {
      await elsewhere.end({ timeout: 5 });
    }
  },
);

test('the statements that docs/sql.md shows run', async () => {
  const [, shown] = /## Prices.*?```sql\n(.*?)```/s.exec(readFileSync('docs/sql.md', 'utf8'))!;
  const statements = shown!.split(/;\s*\n/).filter((text) => text.trim() !== '');
  expect(statements).toHaveLength(4);
  await recordCoins(database.sql, [coinNamed('btc-bitcoin')], SUNDAY);
  await priced('prices-1h', [
    [SUNDAY, 10],
    [SUNDAY + HOUR, 12],
  ]);
  const [, , , coverage] = await Promise.all(statements.map((statement) => database.sql.unsafe(statement)));
  expect(coverage).toMatchObject([{ coinId: COIN, interval: 'prices-1h' }]);
});
