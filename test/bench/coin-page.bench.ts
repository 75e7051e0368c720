/** The page of a coin with ten years of hours, and search, among 50,000 series and 61,000 coins. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stopwatch } from '../../src/clock.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { type CoinWorld, createCoinWorld } from '../dashboard/coin-world.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../support/many-series.ts';
import { median, table, verdict } from './rounds.ts';

const SERIES = 50_000;
const MOST_MS = 300;
const RUNS = 20;
const COIN = 'c77-coin-77';
let world: CoinWorld;

/** One of the coins has ten years of hours, and half a year of five minutes. */
beforeAll(async () => {
  world = await createCoinWorld();
  const { sql } = world;
  await makeManySeries(sql, { coins: Math.ceil(SERIES / SERIES_OF_A_COIN), requests: 1_000 });
  const today = Math.floor(Date.now() / DAY) * DAY;
  for (const [interval, width, days] of [
    ['1h', HOUR, 3650],
    ['5m', HOUR / 12, 183],
  ] as const) {
    const span = { from: today - days * DAY, to: today };
    await ensurePartitions(sql, interval, span);
    await sql`
      insert into market.candle (series_id, interval, open_time, open, high, low, close, volume, market_cap)
      select s.id, s.interval, t, 1, 2, 0.5, 1.5, 10, 100
      from market.series s, generate_series(${span.from}::timestamptz, ${span.to - width}::timestamptz, make_interval(secs => ${width / 1000})) t
      where s.coin_id = ${COIN} and s.quote = 'usd' and s.interval = ${interval}::market.candle_interval`;
    await sql`
      update market.series set covered = tstzmultirange(tstzrange(${span.from}::timestamptz, ${span.to}::timestamptz))
      where coin_id = ${COIN} and quote = 'usd' and interval = ${interval}::market.candle_interval`;
  }
  // The usual number of coins: the made-up warehouse has one coin for each 46 series.
  await sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
    select 'x' || i || '-more-' || i, 'More ' || i, 'X' || i, 0, 'coin', false, true, now(), now(), now() from generate_series(1, 60000) i`;
  await sql`vacuum analyze`;
});
afterAll(() => world.close());

const PATHS: readonly (readonly [string, number])[] = [
  ['/ui/search?q=more', 200],
  ['/ui/search?q=coin-7', 200],
  ['/ui/search?q=C77', 303],
  [`/ui/coins/${COIN}`, 200],
  [`/ui/coins/${COIN}?interval=1h&span=all&drawdown=true`, 200],
  [`/ui/coins/${COIN}?interval=5m&at=${new Date(Date.now() - 3 * DAY).toISOString().slice(0, 10)}`, 200],
  [`/ui/coins/${COIN}/candles?interval=1h`, 200],
  [`/ui/coins/${COIN}/candles?interval=5m`, 200],
  [`/ui/coins/${COIN}/candles?interval=2h`, 200],
  [`/ui/coins/${COIN}/candles?interval=90m`, 200],
];

it('the page of a coin and search are answered soon', { timeout: 600_000 }, async () => {
  const lines: [string, string][] = [];
  for (const [path, status] of PATHS) {
    const took: number[] = [];
    for (let i = 0; i < RUNS; i++) {
      const begun = stopwatch();
      expect((await world.get(path)).status).toBe(status);
      took.push(stopwatch() - begun);
    }
    const p95 = took.toSorted((a, b) => a - b)[RUNS - 2]!;
    lines.push([path, `p50 ${Math.round(median(took))} ms, p95 ${Math.round(p95)} ms ${verdict(p95 <= MOST_MS)}`]);
  }
  console.info(table(`a coin's page and search among ${SERIES} series (p95 ≤ ${MOST_MS} ms)`, lines));
});
