/** History limits, rarer cases: stray refusals, clocks that differ, limits without a date, limits that appear and disappear. */
import { afterEach, describe, expect, test } from 'vitest';
import { historyLimitText } from '../../src/contract/answer/errors.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { refreshCatalogue } from '../../src/ingest/snapshot/coin-list.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { says } from '../support/scripted.ts';
import { createWorld } from '../support/world.ts';
import {
  COINS,
  make,
  NO_WALL_OF_OURS,
  NOW,
  reasons,
  refusals,
  TODAY,
  upstream,
  wallAt,
  world,
  YEARS,
} from './history-limits.ts';

afterEach(() => world?.close());

describe('a history limit that nobody expected', () => {
  test('holds for its plan only: under another plan the same span is requested again', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(100) });
    await (await world.open()).backfill(YEARS);
    const [before] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.candle`;
    upstream.script = (request, simulated) => {
      const url = new URL(request.url);
      // The account was upgraded, so nobody meets the history limit any more.
      return url.pathname.includes('ohlcv') ? simulatedWithoutWall(request) : simulated(request);
    };
    const open = await createWorld({ startAt: NOW, ...wallAt(null) });
    const simulatedWithoutWall = open.simulator.fetch;
    try {
      const upgraded = await world.open({ plan: 'ultimate' });
      expect(await reasons()).toEqual({ 'not asked yet': expect.any(Number) });
      upstream.forget();
      const run = await upgraded.backfill(YEARS);
      expect(run.refused.size).toBe(0);
      expect(upstream.ohlcv()).toHaveLength(run.planned);
      expect(await reasons()).toEqual({});
      const [after] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.candle`;
      expect(after!.n).toBeGreaterThan(before!.n);
    } finally {
      await open.close();
    }
  });

  test('without a date in its text is found in few requests, and what lies inside it is fetched', async () => {
    // The upstream answers "not in this plan" as it answers "exhausted". Only the account shows that there is budget left.
    await make({
      apiKey: 'k',
      speed: 50,
      simulator: { seed: 3, coins: 10, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    upstream.script = (request) => {
      const start = new URL(request.url).searchParams.get('start');
      return start !== null && Date.parse(start) < NOW - 100 * DAY ? says(402, 'payment required') : null;
    };
    const run = await (await world.open({ plan: null })).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    // The first refusal of each coin needs a second opinion. Each further one halves what is still unknown, and the requests in flight may
    // come with it.
    expect(refusals()).toBeLessThanOrEqual(COINS.length + 4 * Math.ceil(Math.log2(1_500)));
    const [seen] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.candle`;
    expect(seen!.n).toBeGreaterThanOrEqual(3 * 45);
    const accountAsked = upstream.log.filter((asked) => asked.path.endsWith('/users/me')).length;
    expect(accountAsked).toBeLessThanOrEqual(refusals() + 1);
    upstream.forget();
    expect((await (await world.open({ plan: null })).backfill(YEARS)).planned).toBe(0);
    expect(upstream.ohlcv()).toEqual([]);
  });

  test('costs no more refusals with many coins', async () => {
    await make({
      ...NO_WALL_OF_OURS,
      simulator: { seed: 3, coins: 60, unlimited: true, limits: { overrides: { historyDepthMs: 100 * DAY } } },
    });
    const coins = (await world.simulator.data.coins()).map((coin) => coin.id);
    const run = await (await world.open()).backfill({ ...YEARS, coins, concurrency: 8 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(refusals()).toBeLessThanOrEqual(8 + 1);
  });

  test('before the only chunk is believed when that chunk is requested again, after the caches have expired', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(100) });
    const work = { ...YEARS, coins: ['btc-bitcoin'], from: TODAY - 300 * DAY };
    const run = await (await world.open()).backfill(work);
    expect([...run.refused.keys()]).toEqual(['history limit']);
    expect(upstream.ohlcv().map((asked) => asked.status)).toEqual([402, 402, 200]);
    const [first, second] = upstream.ohlcv();
    expect(second!.at - first!.at).toBeGreaterThan(70_000);
  });

  test('that appears while a run is in progress costs a few more requests', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null) });
    let answers = 0;
    upstream.script = (request, _simulated, clock) => {
      const start = Date.parse(new URL(request.url).searchParams.get('start') ?? '');
      const notBefore = clock.now() - 50 * DAY;
      return start < notBefore && answers++ >= 2 ? says(402, historyLimitText(notBefore)) : null;
    };
    const run = await (await world.open()).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused.keys()]).toEqual(['history limit']);
    expect(refusals()).toBeLessThanOrEqual(4 + 3);
    expect(await reasons()).toEqual({ 'history limit': expect.any(Number) });
  });

  test('costs no more when a coin has empty answers on both sides of it', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(100) });
    upstream.script = async (request, simulated) => {
      const response = await simulated(request);
      if (!request.url.includes('ltc-litecoin/ohlcv')) return response;
      const { headers } = response;
      headers.delete('content-encoding');
      headers.delete('content-length');
      return new Response('[]', { headers });
    };
    const run = await (await world.open()).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused.keys()]).toEqual(['history limit']);
    expect(refusals()).toBeLessThanOrEqual(4 + 1);
  });
});

describe('a refusal that reports a history limit where none is', () => {
  const DAY_AGO = (at: number) => says(402, historyLimitText(at - DAY));
  const CHUNKS = 3 * Math.ceil(1_497 / 366);
  const limits = async () => {
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    return row!.n;
  };

  test('for every thirtieth request leaves nothing refused', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null), speed: 100 });
    let asked = 0;
    upstream.script = (request, _simulated, clock) =>
      request.url.includes('/ohlcv') && ++asked % 30 === 2 ? DAY_AGO(clock.now()) : null;
    const chandler = await world.open({ candlesPerRequest: 20 });
    const run = await chandler.backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.refused.size, await limits()]).toEqual([0, 0]);
    expect(refusals()).toBeGreaterThan(5);
    expect(await reasons()).toEqual({});
  });

  test.each([
    ['once, is asked again', 1, 2],
    ['twice, is a wrong address', 2, 2],
  ])('for the list of coins, %s', async (_, strays, requests) => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null), catalogue: false });
    let asked = 0;
    upstream.script = (_request, _simulated, clock) => (asked++ < strays ? DAY_AGO(clock.now()) : null);
    const { session } = await world.open();
    const reading = refreshCatalogue({ sendRequest: session.sendRequest, sql: world.database.sql, clock: world.clock });
    if (strays === 1) expect(await reading).toMatchObject({ kind: 'read' });
    else await expect(reading).rejects.toThrow(/CHANDLER_BASE_URL does not answer/);
    expect(upstream.log.filter((entry) => entry.path.endsWith('/tickers'))).toHaveLength(requests);
  });

  test('is a stray one also within a history limit that was believed a moment ago', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(1_000) });
    let stray = false;
    upstream.script = (request, _simulated, clock) => {
      const start = Date.parse(new URL(request.url).searchParams.get('start') ?? '');
      if (stray || !(start > clock.now() - 1_000 * DAY)) return null;
      stray = true;
      return DAY_AGO(clock.now());
    };
    const work = { ...YEARS, from: TODAY - 1_200 * DAY, to: TODAY - 900 * DAY, concurrency: 1 };
    const run = await (await world.open()).backfill(work);
    expect(run.end).toEqual({ kind: 'done' });
    expect(stray).toBe(true);
    expect(refusals()).toBe(3);
    expect(run.totals!.byOutcome).toMatchObject({ stored: 3, 'history limit': 3 });
    const rows = await world.database
      .sql`select round(extract(epoch from depth) / 86400)::int as days from market.refusal`;
    expect(rows).toEqual([{ days: 1_000 }]);
  });

  test('for one chunk, at each request, while all others are answered, is a refusal of that chunk', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null), speed: 100 });
    upstream.script = (request, _simulated, clock) => {
      const { pathname, searchParams } = new URL(request.url);
      const isPoisoned =
        pathname.includes('btc-bitcoin/ohlcv') && Date.parse(searchParams.get('start')!) < TODAY - 1_480 * DAY;
      return isPoisoned ? DAY_AGO(clock.now()) : null;
    };
    const run = await (await world.open()).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused]).toMatchObject([['history limit', { chunks: 1 }]]);
    expect(refusals()).toBeLessThanOrEqual(4);
    expect(run.totals!.byOutcome).toMatchObject({ stored: CHUNKS - 1 });
    const [gap] = await world.database.sql`select coin_id, reason, next_ask_at from market.gaps`;
    expect(gap).toMatchObject({ coinId: 'btc-bitcoin', reason: 'history limit', nextAskAt: expect.any(Number) });
  });
});

describe('a history limit that the documents of the plan state', () => {
  test('but that does not exist is found open by one probe, and everything is fetched', async () => {
    await make({ ...wallAt(null), plan: 'starter' });
    const chandler = await world.open();
    const run = await chandler.backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.refused.size).toBe(0);
    expect(refusals()).toBe(0);
    expect(await reasons()).toEqual({});
    // The probe was one of the requests that were needed anyway.
    expect(upstream.ohlcv()).toHaveLength(3 * Math.ceil(1_497 / 366));
    for await (const proof of verifySeries(world.database.sql, {}, NOW)) expect(proof.differences).toEqual([]);
    expect((await world.open()).session.historyLimits.of('24h')).toEqual({ kind: 'open' });
  });

  test('is probed once more when the probe meets a fault', async () => {
    await make({ ...wallAt(30), plan: 'starter', speed: 50 });
    let first = true;
    upstream.script = (request) => {
      if (!first || !request.url.includes('ohlcv')) return null;
      first = false;
      return says(500, 'An unexpected server error has occurred');
    };
    const run = await (await world.open()).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect(refusals()).toBe(1);
  });
});

describe('a history limit that was met', () => {
  const MONTH = { ...YEARS, from: TODAY - 200 * DAY, concurrency: 1 };

  test('and has gone a day later is found open, and everything is fetched', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null) });
    let stands = true;
    upstream.script = (request, _simulated, clock) => {
      const start = Date.parse(new URL(request.url).searchParams.get('start') ?? '');
      const notBefore = clock.now() - 50 * DAY;
      return stands && start < notBefore ? says(402, historyLimitText(notBefore)) : null;
    };
    await (await world.open()).backfill(MONTH);
    expect(await reasons()).toEqual({ 'history limit': expect.any(Number) });
    stands = false;
    world.clock.advanceTo(NOW + DAY + HOUR);
    const run = await (await world.open()).backfill(MONTH);
    expect(run.refused.size).toBe(0);
    expect(await reasons()).toEqual({});
    expect((await world.open()).session.historyLimits.of('24h')).toEqual({ kind: 'open' });
  });

  test.each([
    // A clock that is off by more than a week is not measured by the upstream's Date (decision 77).
    ['6 days behind', 6],
    ['6 days ahead', -6],
  ])('by a clock that is %s is placed where the upstream has it, and costs two refusals', async (_, behindDays) => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null) });
    let behind = behindDays * DAY;
    upstream.script = async (request, simulated, clock) => {
      const there = clock.now() + behind;
      const date = new Date(there).toUTCString();
      const start = Date.parse(new URL(request.url).searchParams.get('start') ?? '');
      if (start < there - 30 * DAY) return says(402, historyLimitText(there - 30 * DAY), { date });
      const answer = await simulated(request);
      const headers = new Headers(answer.headers);
      headers.set('date', date);
      return new Response(answer.body, { status: answer.status, headers });
    };
    const chandler = await world.open();
    const run = await chandler.backfill(MONTH);
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused.keys()]).toEqual(['history limit']);
    expect(refusals()).toBe(2);
    const [limit] = await world.database.sql<{ depth: number }[]>`
      select extract(epoch from depth)::float8 * 1000 as depth from market.refusal`;
    expect(Math.abs(limit!.depth - 30 * DAY)).toBeLessThan(10_000);
    if (behind < 0) return;
    // The clock is set right. What lies inside the history limit is requested and returned.
    world.clock.advanceTo(world.clock.now() + behind);
    behind = 0;
    upstream.forget();
    const recent = { ...MONTH, from: TODAY - 20 * DAY, to: TODAY + 3 * DAY };
    const mended = await (await world.open()).backfill(recent);
    expect(mended.end).toEqual({ kind: 'done' });
    expect([refusals(), mended.totals!.byOutcome]).toEqual([0, { stored: 3 }]);
  });

  test('with a date in the future in its text is treated as one without a date, so requests go on', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(null) });
    upstream.script = (request) => {
      const start = Date.parse(new URL(request.url).searchParams.get('start') ?? '');
      return start < NOW - 40 * DAY ? says(402, historyLimitText(NOW + DAY)) : null;
    };
    const run = await (await world.open()).backfill(MONTH);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.totals!.byOutcome).toMatchObject({ stored: 3 });
    expect(refusals()).toBeLessThanOrEqual(4);
  });
});
