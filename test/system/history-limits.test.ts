import { afterEach, describe, expect, test } from 'vitest';
import { historyLimitText } from '../../src/contract/answer/errors.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
import {
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
  test('costs two refused requests, and those in flight; it is remembered, shown, and never requested again', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(100) });
    const chandler = await world.open();
    const run = await chandler.backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused.keys()]).toEqual(['history limit']);
    expect(refusals()).toBeGreaterThanOrEqual(2);
    expect(refusals()).toBeLessThanOrEqual(4 + 1);
    // What lies inside the history limit is complete, with one request for each coin.
    expect(upstream.ohlcv().filter((asked) => asked.status === 200)).toHaveLength(3);
    expect(await reasons()).toEqual({ 'history limit': expect.any(Number) });
    const [shown] = await world.database.sql`select * from market.gaps where coin_id = 'btc-bitcoin'`;
    expect(shown!.reason).toBe('history limit');
    expect(shown!.detail).toMatch(/before 2026-07-24 .* is not allowed in this plan/);
    expect(shown!.gapTo).toBe(Date.parse('2026-07-25T00:00:00Z'));

    upstream.forget();
    const again = await chandler.backfill(YEARS);
    expect(again.planned).toBe(0);
    expect(again.end).toEqual({ kind: 'done' });
    // Another process, which knows the limit from the database, sends none either.
    const other = await world.open();
    expect(other.session.historyLimits.of('24h')).toMatchObject({ kind: 'met' });
    expect((await other.backfill(YEARS)).planned).toBe(0);
    expect(upstream.ohlcv()).toEqual([]);
  });

  test('refuses a single worker exactly twice, which does not wait before the second request', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(100) });
    await (await world.open()).backfill({ ...YEARS, concurrency: 1 });
    expect(refusals()).toBe(2);
    const [first, second] = upstream.ohlcv();
    expect(second!.coin).not.toBe(first!.coin);
    const refused = await world.database.sql`
      select f.outcome, f.status from market.refusal r left join ops.fetch f on f.id = r.fetch_id`;
    expect(refused).toMatchObject([{ outcome: 'history limit', status: 402 }]);
  });

  test('for a whole interval is believed once for all coins', async () => {
    await make({
      ...NO_WALL_OF_OURS,
      simulator: { seed: 3, coins: 10, unlimited: true, limits: { overrides: { intervals: ['24h'] } } },
    });
    const hours = { ...YEARS, interval: '1h' as const, from: TODAY - 40 * DAY };
    const run = await (await world.open()).backfill({ ...hours, concurrency: 1 });
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused.keys()]).toEqual(['interval']);
    expect(refusals()).toBe(2);
    expect(await reasons()).toEqual({ interval: 3 * 37 * 24 });
    upstream.forget();
    await (await world.open()).backfill(hours);
    expect(upstream.ohlcv()).toEqual([]);
  });
});

describe('a refusal that reports a history limit where none is', () => {
  const DAY_AGO = (at: number) => says(402, historyLimitText(at - DAY));
  const CHUNKS = 3 * Math.ceil(1_497 / 366);
  const limits = async () => {
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    return row!.n;
  };

  // The first request, one after something was answered, and the probe of a history limit that the documents state elsewhere.
  test.each([
    ['enterprise', 1],
    ['enterprise', 7],
    ['starter', 1],
  ] as const)('is a stray one: requested again, with nothing refused (%s, request %i)', async (plan, which) => {
    // Each stray refusal is requested again more than a minute later.
    await make({ ...wallAt(null), plan, speed: 200 });
    let asked = 0;
    upstream.script = (request, _simulated, clock) =>
      request.url.includes('/ohlcv') && ++asked === which ? DAY_AGO(clock.now()) : null;
    const run = await (await world.open()).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.refused.size, refusals(), await limits()]).toEqual([0, 1, 0]);
    expect(run.totals).toMatchObject({ requests: CHUNKS + 1, byOutcome: { stored: CHUNKS, 'history limit': 1 } });
    expect(await reasons()).toEqual({});
  });
});

describe('a history limit that the documents of the plan state', () => {
  test('is probed by exactly one request, and what lies inside it is fetched', async () => {
    await make({ ...wallAt(30), plan: 'starter' });
    const run = await (await world.open()).backfill(YEARS);
    expect(run.end).toEqual({ kind: 'done' });
    expect(refusals()).toBe(1);
    expect(upstream.ohlcv()[0]!.status).toBe(402);
    expect(upstream.ohlcv()).toHaveLength(run.planned);
    upstream.forget();
    expect((await (await world.open()).backfill(YEARS)).planned).toBe(0);
    expect(upstream.ohlcv()).toEqual([]);
  });
});

describe('a history limit that was met', () => {
  const MONTH = { ...YEARS, from: TODAY - 200 * DAY, concurrency: 1 };

  test('is tested again a day later by one request, and stays where it still is', async () => {
    await make({ ...NO_WALL_OF_OURS, ...wallAt(100) });
    await (await world.open()).backfill(MONTH);
    world.clock.advanceTo(NOW + DAY + HOUR);
    upstream.forget();
    const next = await world.open();
    expect(next.session.historyLimits.of('24h')).toMatchObject({ kind: 'documented', refusedBefore: true });
    const run = await next.backfill(MONTH);
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.planned, upstream.ohlcv().length, refusals()]).toEqual([1, 1, 1]);
    // No further request on that day.
    expect((await (await world.open()).backfill(MONTH)).planned).toBe(0);
    expect(upstream.ohlcv()).toHaveLength(1);
  });
});

describe('an upstream that silently leaves out what lies beyond its history limit', () => {
  test('does not open the history limit, and nothing beyond it is stored as empty', async () => {
    await make({ ...wallAt(null), plan: 'starter' });
    upstream.script = async (request, simulated, clock) => {
      const answer = await simulated(request);
      if (!request.url.includes('/ohlcv')) return answer;
      const rows = (await answer.json()) as { time_open: string }[];
      const given = rows.filter((row) => Date.parse(row.time_open) >= clock.now() - 30 * DAY);
      return Response.json(given, { headers: answer.headers });
    };
    const work = { ...YEARS, coins: ['btc-bitcoin'], from: TODAY - 600 * DAY };
    for (let run = 0; run < 4; run++) {
      const chandler = await world.open();
      expect((await chandler.backfill(work)).end).toEqual({ kind: 'done' });
      expect(chandler.session.historyLimits.of('24h').kind).toBe('documented');
      world.clock.advanceTo(world.clock.now() + 2 * HOUR);
    }
    const [series] = await world.database.sql<{ slots: number; candles: number }[]>`
      select sum(upper(r)::date - lower(r)::date)::int as slots, min(covered_candles)::int as candles
      from market.series, unnest(covered) r`;
    expect(series!.candles).toBeGreaterThan(25);
    expect(series!.slots).toBeLessThanOrEqual(series!.candles + 1);
    // One run that found it missing, one that was to confirm it, and then none before a day has passed.
    expect(upstream.ohlcv()).toHaveLength(2 + 2);
    // The plan was upgraded after all: one candle beyond the limit, and all of it is available.
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + DAY);
    const open = await world.open();
    await open.backfill(work);
    expect(open.session.historyLimits.of('24h')).toEqual({ kind: 'open' });
    expect(await reasons()).toEqual({});
  });
});
