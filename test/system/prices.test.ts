/** Price series are filled, limited by the plan, revised and proved like candles, and never mixed with them. */
import { afterEach, describe, expect, test } from 'vitest';
import type { PlanName } from '../../src/contract/plan/plans.ts';
import { DAY, HOUR, type PriceInterval } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { createScriptedWorld, type ScriptedWorld } from '../support/scripted-world.ts';
import type { Chandler } from '../support/world.ts';

const TODAY = Math.floor(Date.now() / DAY) * DAY - 30 * DAY;
const NOW = TODAY + 12 * HOUR;

let made: ScriptedWorld;
let chandler: Chandler;
let coins: readonly string[];
afterEach(() => made.world.close());

async function open(plan: PlanName = 'free', speed = 1) {
  made = await createScriptedWorld({
    startAt: NOW,
    speed,
    plan,
    simulator: { seed: 3, coins: 8, unlimited: false, limits: { plan } },
  });
  chandler = await made.world.open();
  made.upstream.forget();
  coins = (await made.world.simulator.data.coins())
    .filter((coin) => coin.is_active)
    .slice(0, 3)
    .map((coin) => coin.id);
}

const asked = () => made.upstream.log.filter(({ path }) => path.endsWith('/historical')).map(({ path }) => path);
const sql = () => made.world.database.sql;
const stored = (coinId: string, interval: PriceInterval) => sql()<
  { time: number; price: number; volume24h: number; marketCap: number }[]
>`
  select time, price, volume_24h, market_cap from market.prices
  where coin_id = ${coinId} and interval = ${interval.slice('prices-'.length)} and is_final order by time`;

/** What the market has of the settled slots of a span. */
async function truth(coinId: string, { from, to }: Span, widthMs: number, quote: 'usd' | 'btc' = 'usd') {
  const ticks = await made.world.simulator.data.tickerHistory({ coinId, quote, from, to, widthMs, limit: 1_000_000 });
  return (ticks as readonly { timestamp: string; price: number; volume_24h: number; market_cap: number }[]).map(
    (tick) => ({
      time: Date.parse(tick.timestamp),
      price: tick.price,
      volume24h: tick.volume_24h,
      marketCap: tick.market_cap,
    }),
  );
}

async function differences(): Promise<string[]> {
  const found: string[] = [];
  for await (const proof of verifySeries(sql(), {}, made.world.clock.now())) found.push(...proof.differences);
  return found;
}

describe('without a key', () => {
  test('a year of daily prices is one request a coin, and exact to the last bit', async () => {
    await open();
    const span = { from: TODAY - 360 * DAY, to: TODAY - DAY };
    const run = await chandler.backfill({ coins, interval: 'prices-1d', ...span });
    expect(run).toMatchObject({ planned: coins.length, failed: [] });
    expect(asked().sort()).toEqual(coins.map((id) => `/v1/tickers/${id}/historical`).sort());
    for (const id of coins) expect(await stored(id, 'prices-1d')).toEqual(await truth(id, span, DAY));
    expect(await differences()).toEqual([]);
    made.upstream.forget();
    const again = await chandler.backfill({ coins, interval: 'prices-1d', ...span });
    expect(again.planned + asked().length).toBeLessThanOrEqual(coins.length);
  });

  test('prices appear in no view, answer or count of candles', async () => {
    await open();
    const [coinId] = coins;
    const span = { from: TODAY - 100 * DAY, to: TODAY - DAY };
    await chandler.backfill({ coins: [coinId!], interval: 'prices-1d', ...span });
    const [counted] =
      await sql()`select (select count(*)::int from market.candles) as candles, (select count(*)::int from market.candle) as rows,
      (select count(*)::int from market.prices) as prices, (select count(*)::int from market.candles_as_known(now() + interval '1 day')) as known`;
    expect(counted).toEqual({ candles: 0, rows: 0, prices: 99, known: 0 });
    const { clock } = made.world;
    const warehouse = createWarehouse({ sql: sql(), clock });
    const candles = await warehouse.ohlcv({ coinId: coinId!, quote: 'usd', interval: '24h', ...span, limit: 366 });
    expect(candles).toEqual([]);
  });

  test('what lies beyond the year is refused once, and not requested again', async () => {
    await open();
    const span = { from: TODAY - 400 * DAY, to: TODAY - 300 * DAY };
    const run = await chandler.backfill({ coins, interval: 'prices-1d', ...span });
    expect(run.end).toEqual({ kind: 'done' });
    // One request probes the documented limit.
    expect(run.planned).toBe(coins.length + 1);
    const [refusal] = await sql()`select interval, reason, message from market.refusal where series_id is null`;
    expect(refusal).toMatchObject({ interval: 'prices-1d', reason: 'history limit' });
    expect(refusal!.message).toContain('Getting daily historical data before');
    const first = await sql()`select min(time) as first from market.prices group by coin_id`;
    expect(first.map((row) => row.first)).toEqual(coins.map(() => TODAY - 364 * DAY));
    made.upstream.forget();
    expect(
      await chandler.backfill({ coins, interval: 'prices-1d', from: TODAY - 400 * DAY, to: TODAY - 365 * DAY }),
    ).toMatchObject({ planned: 0 });
    expect(asked()).toEqual([]);
  });

  test('the plan has no prices by the minute, and hourly prices of one day', async () => {
    await open();
    const minutes = await chandler.backfill({ coins, interval: 'prices-5m', from: NOW - 6 * HOUR, to: NOW });
    expect(minutes.end).toEqual({ kind: 'done' });
    expect(asked()).toHaveLength(1);
    const [refusal] = await sql()`select interval, reason, message from market.refusal`;
    expect(refusal).toMatchObject({ interval: 'prices-5m', reason: 'interval' });
    made.upstream.forget();
    const hours = await chandler.backfill({ coins, interval: 'prices-1h', from: NOW - 20 * HOUR, to: NOW });
    expect(hours.planned).toBe(coins.length);
    const span = { from: NOW - 20 * HOUR, to: NOW - 2 * HOUR };
    for (const id of coins)
      expect(await stored(id, 'prices-1h')).toEqual(await truth(id, { ...span, to: NOW - HOUR }, HOUR));
  });
});

test('starter has five years of prices, and more than 5,000 rows take more than one request', async () => {
  await open('starter');
  const [coinId] = coins;
  const years = { from: TODAY - 5 * 364 * DAY, to: TODAY - DAY };
  expect(await chandler.backfill({ coins: [coinId!], interval: 'prices-1d', ...years })).toMatchObject({ planned: 1 });
  expect(await stored(coinId!, 'prices-1d')).toEqual(await truth(coinId!, years, DAY));
  await made.world.close();
  await open('business');
  const month = { from: TODAY - 30 * DAY, to: TODAY - DAY };
  const run = await chandler.backfill({ coins: [coins[1]!], interval: 'prices-5m', ...month, quote: 'btc' });
  expect(run.planned).toBe(2);
  const rows = await stored(coins[1]!, 'prices-5m');
  expect(rows).toHaveLength((29 * DAY) / 300_000);
  expect(rows).toEqual(await truth(coins[1]!, month, 300_000, 'btc'));
  expect(await differences()).toEqual([]);
});

/** Changes the rows of every answer about prices. */
function answerWith(change: (rows: Record<string, unknown>[], url: URL) => unknown): void {
  made.upstream.script = (request, simulated) => {
    const url = new URL(request.url);
    if (!/\/tickers\/.*\/historical/.test(url.pathname)) return null;
    return simulated(request).then(async (response) => {
      const { headers } = response;
      headers.delete('content-length');
      headers.delete('content-encoding');
      const rows = change((await response.json()) as Record<string, unknown>[], url);
      return new Response(JSON.stringify(rows), { headers });
    });
  };
}

describe('an answer about prices', () => {
  const span = { from: TODAY - 20 * DAY, to: TODAY - DAY };
  const fill = () => chandler.backfill({ coins: coins.slice(0, 1), interval: 'prices-1d', ...span });
  const aside = () => sql()<{ reason: string }[]>`select reason from market.quarantine order by id`;

  test('may include the end of the span or not', async () => {
    await open();
    answerWith((rows, url) => [...rows, { ...rows.at(-1), timestamp: url.searchParams.get('end') }]);
    expect((await fill()).end).toEqual({ kind: 'done' });
    expect(await aside()).toEqual([]);
    expect(await stored(coins[0]!, 'prices-1d')).toEqual(await truth(coins[0]!, span, DAY));
  });

  test('with impossible rows keeps the others', async () => {
    await open('free', 300);
    const bad: Record<string, unknown>[] = [{ price: -1 }, { price: undefined }, { price: 'x' }];
    answerWith((rows) =>
      rows.map((row) => ({ ...row, ...bad[(Date.parse(String(row.timestamp)) - span.from) / DAY - 3] })),
    );
    await fill();
    const first = (await aside()).slice(0, 3).map(({ reason }) => reason);
    expect(first.sort()).toEqual([
      expect.stringMatching(/^\[\d+\]\.price: expected number, got string "x"$/),
      'a price is negative or not finite',
      'has no price',
    ]);
    expect(await stored(coins[0]!, 'prices-1d')).toHaveLength(16);
  });

  test('of another width, or off the grid, is never stored', async () => {
    await open('free', 600);
    answerWith((rows) =>
      rows
        .filter((_, i) => i % 7 === 0)
        .map((row, i) => ({
          ...row,
          timestamp: new Date(Math.floor(span.from / (7 * DAY)) * 7 * DAY + i * 7 * DAY).toISOString(),
        })),
    );
    const { from } = span;
    await chandler.backfill({ coins: coins.slice(0, 1), interval: 'prices-1d', from: from - 60 * DAY, to: span.to });
    expect(await sql()`select from market.price`).toHaveLength(0);
    answerWith((rows) =>
      rows.map((row) => ({ ...row, timestamp: new Date(Date.parse(String(row.timestamp)) + HOUR).toISOString() })),
    );
    await fill();
    expect(await sql()`select from market.price`).toHaveLength(0);
  });

  test('that changes a final price keeps the old one as a revision', async () => {
    await open();
    await fill();
    const before = await stored(coins[0]!, 'prices-1d');
    await sql()`select ops.uncover(id, ${TODAY - 10 * DAY}::timestamptz, ${TODAY - 9 * DAY}::timestamptz) from market.series`;
    answerWith((rows) => rows.map((row) => ({ ...row, price: Number(row.price) * 1.01 })));
    made.world.clock.advanceTo(NOW + 2 * HOUR);
    expect((await fill()).end).toEqual({ kind: 'done' });
    const revisions = await sql()`select open_time, open, close, volume, reason from market.revision`;
    const old = before.find(({ time }) => time === TODAY - 10 * DAY)!;
    expect(revisions).toEqual([
      { openTime: old.time, open: old.price, close: old.price, volume: old.volume24h, reason: 'mended' },
    ]);
    const now = (await stored(coins[0]!, 'prices-1d')).find(({ time }) => time === old.time)!;
    expect(now.price).toBe(old.price * 1.01);
    const known =
      await sql()`select price from market.prices_as_known(${NOW + HOUR}::timestamptz) where time = ${old.time}`;
    expect(known.map(({ price }) => price)).toEqual([old.price]);
    expect(await differences()).toEqual([]);
  });
});
