/** Answers that belong to another request, or have a false time: nothing of them is stored. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DAY, floorToGrid, HOUR, type Interval } from '../../src/core/interval.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import { checkStored } from './oracle.ts';

const COIN = 'btc-bitcoin';
const PAGE = () => new Response('<html><body>Maintenance', { headers: { 'content-type': 'text/html' } });

let made: ScriptedWorld;
afterEach(() => made.world.close());

const HOURS = { coins: [COIN], interval: '1h', from: TODAY - 23 * DAY, to: TODAY - 3 * DAY } as const;

async function open() {
  made = await createScriptedWorld({ speed: 50 });
  return made.world.open();
}

/** The contents of each slot, for comparison with an upstream without lies. */
const stored = () => made.world.database.sql`
  select (select count(*)::int from market.candle) as candles, (select count(*)::int from market.revision) as revisions,
    (select count(*)::int from market.quarantine) as quarantined,
    (select coalesce(sum(slots_covered), 0)::int from market.coverage) as covered, (select count(*)::int from market.gaps) as gaps`;

/** The first answer of each address comes from `lie`, the next one is true. */
function lyingOnce(
  lie: (request: Request, simulated: (request: Request) => Promise<Response>) => Promise<Response>,
): Script {
  const lied = new Set<string>();
  return async (request, simulated) => {
    if (!request.url.includes('/ohlcv') || lied.has(request.url)) return simulated(request);
    lied.add(request.url);
    return lie(request, simulated);
  };
}

type Row = { time_open: string; time_close?: string };

describe('rows of another interval make an answer unusable, and no slot empty', () => {
  // Without `time_close` the spacing reveals it, or the grid.
  const cases = (['24h', '12h', '6h', '30m', '5m'] as const).flatMap((interval) =>
    [true, false].map((withClose) => [interval, withClose] as const),
  );
  let truth: Awaited<ReturnType<typeof stored>>;
  beforeAll(async () => {
    const chandler = await open();
    await chandler.backfill(HOURS);
    truth = await stored();
    await made.world.close();
  });

  test.each(cases)('for %s rows in a 1h answer; with time_close: %s', async (interval: Interval, withClose) => {
    const other = await open();
    made.upstream.script = lyingOnce(async (request, simulated) => {
      const url = new URL(request.url);
      url.searchParams.set('interval', interval);
      const answer = await simulated(new Request(url));
      const rows = (await answer.json()) as Row[];
      return Response.json(rows.map(({ time_close, ...row }) => (withClose ? { ...row, time_close } : row)));
    });
    const run = await other.backfill(HOURS);
    expect(run).toMatchObject({ end: { kind: 'done' }, failed: [] });
    expect(await stored()).toEqual(truth);
    const [refused] = await made.world.database.sql`
      select message from ops.fetch where endpoint = 'ohlcv' and outcome = 'malformed' limit 1`;
    expect(refused!.message).toMatch(/not 1h candles/);
  });

  test('but a single one is quarantined, and the other rows are stored', async () => {
    const chandler = await open();
    const wide = TODAY - 10 * DAY;
    made.upstream.script = lyingOnce(async (request, simulated) => {
      const answer = await simulated(request);
      const rows = (await answer.json()) as Row[];
      for (const row of rows) {
        if (Date.parse(row.time_open) === wide) row.time_close = new Date(wide + DAY - 1_000).toISOString();
      }
      const headers = new Headers(answer.headers);
      headers.delete('content-length');
      return Response.json(rows, { headers });
    });
    await chandler.backfill(HOURS);
    const [row] = await made.world.database.sql`select open_time as at, reason from market.quarantine`;
    expect(row).toEqual({ at: wide, reason: 'time_close lies beyond the end of a 1h candle' });
  });
});

describe('an impossible Date or Age', () => {
  const RECENT = { coins: [COIN], interval: '1h', from: NOW - 20 * HOUR, to: NOW } as const;
  const answering =
    (headers: Record<string, string | null>): Script =>
    async (request, simulated) => {
      const answer = await simulated(request);
      const all = new Headers(answer.headers);
      all.delete('content-length');
      for (const [name, value] of Object.entries(headers)) {
        if (value === null) all.delete(name);
        else all.set(name, value);
      }
      return new Response(await answer.text(), { status: answer.status, headers: all });
    };
  const latestAsk = async () => {
    const [row] = await made.world.database.sql<{ at: number }[]>`select max(retry_at) as at from ops.second_opinion`;
    return row!.at;
  };

  test.each([
    ['an age of ten years', { age: '315360000' }],
    ['the year 1970', { date: 'Thu, 01 Jan 1970 00:00:00 GMT' }],
    ['a date years ahead', { date: new Date(NOW + 900 * DAY).toUTCString() }],
  ])('of %s delays the next request by at most two days', async (_, headers) => {
    const chandler = await open();
    made.upstream.script = answering(headers);
    await chandler.backfill(RECENT);
    expect(await latestAsk()).toBeLessThan(NOW + 2 * DAY);
    made.upstream.script = null;
    made.world.clock.advanceTo(NOW + 2 * DAY);
    await chandler.backfill(RECENT);
    expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
  });

  test('that is missing, with our clock two days ahead, makes no open candle final', async () => {
    made = await createScriptedWorld({ upstreamAheadMs: -2 * DAY });
    const chandler = await made.world.open();
    made.upstream.script = answering({ date: null });
    // What the upstream calls today, which has settled by our clock.
    const open = TODAY - 2 * DAY;
    await chandler.backfill({ coins: [COIN], from: TODAY - 10 * DAY, to: TODAY });
    const { sql } = made.world.database;
    expect(await sql`select from market.series where covered @> ${open}::timestamptz`).toHaveLength(0);
    expect(await sql`select from market.series where covered @> ${open - 3 * DAY}::timestamptz`).toHaveLength(1);
    expect(await latestAsk()).toBeLessThan(NOW + 2 * DAY);
  });

  test.each([
    ['no Date in any answer', null, '/'],
    ['the year 1970 in each answer', 'Thu, 01 Jan 1970 00:00:00 GMT', '/'],
    ['a Date three days ahead in the answer', new Date(NOW + 3 * DAY).toUTCString(), '/historical'],
  ])('with %s and with our clock two hours ahead makes no open price final', async (_, date, path) => {
    made = await createScriptedWorld({ upstreamAheadMs: -2 * HOUR });
    const lie = answering({ date });
    made.upstream.script = (request, simulated, clock) =>
      request.url.includes(path) ? lie(request, simulated, clock) : null;
    const chandler = await made.world.open();
    const hours = { coins: [COIN], interval: 'prices-1h', from: NOW - 20 * HOUR, to: NOW } as const;
    await chandler.backfill(hours);
    const { sql } = made.world.database;
    const open = floorToGrid(made.world.clock.now() - 2 * HOUR, '1h');
    expect(await sql`select from market.series where covered @> ${open}::timestamptz`).toHaveLength(0);
    expect(await sql`select from market.series where covered @> ${open}::timestamptz`).toHaveLength(0);
    made.upstream.script = null;
    made.world.clock.advanceTo(NOW + 2 * DAY);
    await chandler.backfill(hours);
    await checkStored(made.world, date ?? 'no Date');
    expect(await sql`select from market.gaps`).toHaveLength(0);
  });

  test('from before the answer’s own rows makes the chunk be requested again', async () => {
    const chandler = await open();
    const lie = answering({ date: new Date(NOW - 3 * DAY).toUTCString() });
    made.upstream.script = lyingOnce(async (request, simulated) => (await lie(request, simulated, made.world.clock))!);
    await chandler.backfill(RECENT);
    expect(made.upstream.ohlcv()).toHaveLength(2);
    const [row] = await made.world.database.sql`select count(*)::int as n from market.candle`;
    expect(row!.n).toBeGreaterThan(15);
    expect(await made.world.database.sql`select from market.quarantine`).toHaveLength(0);
  });
});

test('a web page is an outage for an account that was answered before, even in an earlier process', async () => {
  const chandler = await open();
  await chandler.backfill({ coins: [COIN], from: TODAY - 30 * DAY, to: TODAY - 20 * DAY });
  const next = await made.world.open();
  made.upstream.script = lyingOnce(async () => PAGE());
  const run = await next.backfill({ coins: [COIN], from: TODAY - 60 * DAY, to: TODAY - 3 * DAY });
  expect(run).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
});

test('each failed chunk has its own message', async () => {
  made = await createScriptedWorld({ speed: 100 });
  const chandler = await made.world.open({ candlesPerRequest: 20 });
  made.upstream.script = (request) => (request.url.includes(`${COIN}/ohlcv`) ? PAGE() : null);
  const coins = (await made.world.simulator.data.coins()).map(({ id }) => id);
  const run = await chandler.backfill({ coins, from: TODAY - 400 * DAY, to: TODAY - 3 * DAY, concurrency: 2 });
  expect(run.failed.length).toBeGreaterThan(5);
  for (const { span, message } of run.failed) {
    const [from, to] = [span.from, span.to].map((at) => new Date(at).toISOString().slice(0, 10));
    expect(message).toContain(`${from}…${to}`);
  }
  expect(new Set(run.failed.map(({ message }) => message)).size).toBe(run.failed.length);
});
