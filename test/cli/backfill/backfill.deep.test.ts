/** The rarer cases of `chandler plan` and `chandler backfill`: answers that lack candles or are refused, and quotas that are too small. */
import { expect, test } from 'vitest';
import { SIMULATOR_HEADER } from '../../../src/contract/interface/paths.ts';
import { listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { chandler, clock, onError, scheduled, useUpstream } from './backfill.ts';

useUpstream();

test('a backfill requests again what the upstream left out, and its report says when', async () => {
  const simulator = createSimulator({ market: 'made-up', coins: 20, clock, unlimited: true, onError });
  let lists = 0;
  const fetch: typeof simulator.fetch = async (request, ...rest) => {
    if (request.url.includes('/ohlcv')) {
      const { headers } = await simulator.fetch(request, ...rest);
      return Response.json([], { headers: { [SIMULATOR_HEADER]: headers.get(SIMULATOR_HEADER)! } });
    }
    if (request.url.includes('/tickers') && ++lists === 1) return new Response('away', { status: 500 });
    return simulator.fetch(request, ...rest);
  };
  const empty = await listen(fetch, { host: '127.0.0.1', port: 0 });
  try {
    const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_BASE_URL: `${empty.url}/v1` };
    const argv = ['backfill', 'btc-bitcoin', '--start', '-30d', '--end', '-10d'];
    const { code, out, err } = await chandler(argv, settings);
    expect(code).toBe(75);
    expect(err).toMatch(/the list of coins could not be read \(\/tickers\): .*500: away; retrying \(attempt 2\)/);
    expect(out).toMatch(
      /gaps left +20 slots: 20 unconfirmed\n +the same command can request 20 unconfirmed again from 2026-11-03 13:\S+ \(in (1h|59m)/,
    );
    const again = await chandler([...argv, '--quote', 'btc', '--json'], settings);
    const from = expect.stringMatching(/^2026-11-03T13:/);
    expect(again.code).toBe(75);
    expect(JSON.parse(again.out)).toMatchObject({
      exitCode: 75,
      backfill: {
        retryable: { slots: 20, from },
        gaps: [{ reason: 'unconfirmed', fate: 'later', slots: 20, nextAskAt: from }],
      },
    });
    // Nothing can be requested before then. The report says so, and the run is no success.
    const third = await chandler(argv, settings);
    expect(third.code).toBe(75);
    const asJson = await chandler([...argv, '--json'], settings);
    expect(JSON.parse(asJson.out)).toMatchObject({ backfill: null, exitCode: 75 });
    expect(third.out).toMatch(/Nothing to fetch: 20 slots have no final answer yet/);
  } finally {
    await empty.close();
  }
});

test('a backfill that finds no history limit counts its progress against the cost of the whole span', async () => {
  const { code, err, out } = await chandler(['backfill', 'btc-bitcoin', '--start', '-1500d'], {
    CHANDLER_PLAN: 'free',
  });
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('everything costs 5 requests') });
  const lines = err.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^0 of \d requests?, /);
  expect(lines.at(-1)).toMatch(/^5 of 5 requests, /);
});

test('a plan with a quota too small for every day shows the same candles that track add promises', async () => {
  const settings = { CHANDLER_PLAN: 'free', CHANDLER_MONTHLY_REQUESTS: '2000' };
  const argv = ['plan', '--all', '--start', '-30d'];
  const { coins, heldAfter } = JSON.parse((await chandler([...argv, '--json'], settings)).out);
  const { everyDays } = heldAfter;
  expect(everyDays).toBeGreaterThan(1);
  const held = (days: number) => Math.round((coins * days) / everyDays);
  expect(heldAfter).toEqual({
    week: held(7),
    month: held(30),
    year: held(365),
    everyDays,
    everyDaysThisMonth: everyDays,
  });
  expect((await chandler(argv, settings)).out).toMatch(
    new RegExp(`\\n {2}The quota lasts for one day in ${everyDays} of each coin; days that are skipped are lost\\.\\n`),
  );
  const tracked = await chandler(['track', 'add', '--all', '--target-age', '1d', '--json'], settings);
  const { tiers } = JSON.parse(tracked.out);
  const MINUTE = 60_000;
  expect(tiers).toMatchObject([{ series: coins, achievableAgeMs: everyDays * 24 * 60 * MINUTE + 5 * MINUTE }]);
  // Coins that are tracked already are not counted twice.
  const again = JSON.parse((await chandler([...argv, '--json'], settings)).out);
  expect(again.heldAfter).toEqual(heldAfter);
});

test('a backfill of several intervals names those that it did not start', async () => {
  const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_DAILY_REQUESTS: '5', CHANDLER_SCHEDULE_COINS: '0 18 * * *' };
  // Two requests are for the list of coins and two reserved for it. One is left for the first interval.
  await scheduled();
  const argv = ['backfill', 'btc-bitcoin', 'eth-ethereum', '--start', '-30d', '--interval', '24h,12h,6h'];
  const { code, out } = await chandler([...argv, '--max-wait', '0s'], settings);
  expect(code).toBe(75);
  expect(out).toMatch(/^Stopped early: the rest of the quota is reserved for scheduled work/m);
  expect(out).toMatch(/^Not started: 12h candles and 6h candles; run the same command again for them\.$/m);
  const detached = await chandler([...argv, '--detach', '--json'], settings);
  expect(detached.code).toBe(0);
  const { backfill } = JSON.parse(detached.out);
  expect(backfill).toMatchObject({
    state: 'queued',
    id: backfill.intervals[0].id,
    intervals: [{ interval: '24h' }, { interval: '12h' }, { interval: '6h' }],
  });
});

test('a backfill that the upstream refused is no success, even if nothing is requested again', async () => {
  const simulator = createSimulator({ market: 'made-up', coins: 20, clock, unlimited: true, onError });
  const refusing = await listen(
    async (request, ...rest) =>
      request.url.includes('/ohlcv')
        ? Response.json({ error: 'id not found' }, { status: 404 })
        : simulator.fetch(request, ...rest),
    { host: '127.0.0.1', port: 0 },
  );
  try {
    const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_BASE_URL: `${refusing.url}/v1` };
    const argv = ['backfill', 'btc-bitcoin', '--start', '-30d', '--end', '-10d'];
    const first = await chandler(argv, settings);
    expect(first.code).toBe(1);
    expect(first.out).toMatch(/\nDone with what the upstream allows; it refuses 20 slots/);
    const again = await chandler(argv, settings);
    expect(again.code).toBe(1);
    expect(again.out).toMatch(/Nothing to fetch: the upstream refused 20 slots before \(chandler gaps shows why\)\.\n/);
  } finally {
    await refusing.close();
  }
});

test('the report covers only the requested span, whatever else is wanted of the same series', async () => {
  const settings = { CHANDLER_PLAN: 'enterprise' };
  await scheduled();
  // It stops before its first request, so all of its span stays wanted and was never requested.
  const stopped = await chandler(['backfill', 'btc-bitcoin', '--start', '-1000d', '--max-wait', '0s'], {
    ...settings,
    CHANDLER_DAILY_REQUESTS: '4',
    CHANDLER_SCHEDULE_COINS: '0 18 * * *',
  });
  expect(stopped.code).toBe(75);
  const argv = ['backfill', 'btc-bitcoin', '--start', '-30d', '--end', '-5d'];
  const { code, out } = await chandler(argv, settings);
  expect(code).toBe(0);
  expect(out).toContain('\nDone: nothing left to fetch.\n');
  expect(out).toMatch(/gaps left +none: every slot has a candle or is known to be empty\n/);
});
