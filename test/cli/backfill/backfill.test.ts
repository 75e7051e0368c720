/** `chandler plan` and `chandler backfill`: what they print before they start and when they end. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { seedSeries } from '../../support/warehouse.ts';
import { chandler, clock, database, env, onError, scheduled, useUpstream } from './backfill.ts';

useUpstream();

test('a plan shows limits set by hand only in the row of the present plan, and says where they come from', async () => {
  const settings = { CHANDLER_PLAN: 'pro', CHANDLER_MONTHLY_REQUESTS: '5000' };
  const { code, out } = await chandler(['plan', '--top', '3', '--start', '-30d'], settings, 80);
  expect(code).toBe(0);
  expect(out).toMatch(/^→ pro +5,000 .*limits set by you$/m);
  expect(out).toMatch(/^ {2}starter +400,000 /m);
  expect(out).toMatch(/^ {2}ultimate +10,000,000 /m);
  expect(out).toContain('\nThe limits of pro are set by CHANDLER_MONTHLY_REQUESTS.\n');
  expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
});

test('a backfill that stops early says why, until when, how to go on, and what the rest costs', async () => {
  // Two requests are for the list of coins, and two stay reserved for it in the evening. Nothing is left for a backfill.
  const settings = {
    CHANDLER_PLAN: 'enterprise',
    CHANDLER_DAILY_REQUESTS: '4',
    CHANDLER_SCHEDULE_COINS: '0 18 * * *',
  };
  await scheduled();
  const argv = ['backfill', '--top', '5', '--start', '-30d', '--max-wait', '0s'];
  const { code, out, err } = await chandler(argv, settings);
  expect(code).toBe(75);
  expect(out).toMatch(
    /\nStopped early: the rest of the quota is reserved for scheduled work\. Requests continue at 2026-11-04 00:00\S*Z \(in 1[12]h.*\), later than --max-wait allows\. Run the same command again then, or now with a longer --max-wait; nothing is lost\.\nThe rest takes 5 requests: done 2026-11-06 .* at the earliest, in 2d 1\dh\.\n/,
  );
  expect(err).toMatch(/^0 of 5 requests, 0 candles, quota left 0, 2d 1\dh to go\n/);
  expect(out).toMatch(/^ {2}quota left +0 today \(2 more are reserved for scheduled work\)$/m);
  const again = await chandler([...argv, '--json'], settings);
  expect(again.code).toBe(75);
  expect(JSON.parse(again.out).backfill).toMatchObject({ end: 'stopped', reason: 'reserved', requestsLeft: 5 });
});

test('a report leaves out numbers that mean nothing', async () => {
  const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_REQUESTS_PER_SECOND: 'unlimited' };
  const { code, out } = await chandler(['backfill', 'btc-bitcoin', '--start', '-30d', '--end', '-5d'], settings);
  expect(code).toBe(0);
  expect(out).not.toMatch(/\b0 candles\/s|\d ms\b/);
  expect(out).toContain('\nDone: nothing left to fetch.\n');
});

test('a plan without any limit names no time at which it is done', async () => {
  const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_REQUESTS_PER_SECOND: 'unlimited' };
  const argv = ['plan', '--top', '3', '--start', '-1000d'];
  const { out } = await chandler(argv, settings);
  expect(out).toMatch(/^ {2}done +as fast as the upstream answers \(no limit delays it\)$/m);
  expect(JSON.parse((await chandler([...argv, '--json'], settings)).out)).toMatchObject({
    finishAt: null,
    noFinishBecause: 'no limit delays it',
  });
});

test('a plan of which only the last full day becomes final says how many candles it will hold', async () => {
  const argv = ['plan', '--top', '3', '--start', '-365d'];
  const { out } = await chandler(argv, { CHANDLER_PLAN: 'free' });
  expect(out).toContain('Each request brings one final candle: the last full day (/ohlcv/latest).');
  expect(out).toContain(
    '\n  Tracked daily (track add --target-age 1d), 3 coins:\n  21 after a week, 90 after a month, 1,095 after a year.\n',
  );
  expect(out).not.toContain('The quota lasts for');
  expect(out).toMatch(/^ {2}requests +4$/m);
  expect(out).toMatch(/^ {2}rows expected +up to 3$/m);
  const json = JSON.parse((await chandler([...argv, '--json'], { CHANDLER_PLAN: 'free' })).out);
  expect(json).toMatchObject({
    requests: 4,
    rowsExpected: 3,
    endpoint: 'ohlcv/latest',
    heldAfter: { week: 21, month: 90, year: 1_095, everyDays: 1, everyDaysThisMonth: 1 },
  });
  const starter = JSON.parse((await chandler([...argv, '--json'], { CHANDLER_PLAN: 'starter' })).out);
  expect(starter).toMatchObject({ endpoint: 'ohlcv/historical', heldAfter: null });
});

test('a plan counts the candles that it will hold from the next month on when this month is used up', async () => {
  const settings = { CHANDLER_PLAN: 'free', CHANDLER_MONTHLY_REQUESTS: '10000' };
  const argv = ['plan', '--top', '10', '--start', '-30d', '--json'];
  expect(JSON.parse((await chandler(argv, settings)).out).heldAfter).toMatchObject({ month: 300 });
  await database.sql`update ops.quota set month_spent = 10000`;
  // The month has 27.5 days left.
  expect(JSON.parse((await chandler(argv, settings)).out).heldAfter).toEqual({
    ...{ week: 0, month: 25, year: 3_375, everyDays: 1, everyDaysThisMonth: null },
  });
  expect((await chandler(argv.slice(0, -1), settings)).out).toContain(
    "The rest of this month's quota leaves no requests for them; these days are lost.\n",
  );
});

describe('under the limits of the free plan', () => {
  let limited: Listening;
  beforeEach(async () => {
    const { fetch } = createSimulator({ market: 'made-up', coins: 20, clock, limits: { plan: 'free' }, onError });
    limited = await listen(fetch, { host: '127.0.0.1', port: 0 });
    env.CHANDLER_BASE_URL = `${limited.url}/v1`;
  });
  afterEach(() => limited.close());

  test('a backfill does not request the open day, and says when it will be requested', async () => {
    const argv = ['backfill', '--top', '3', '--start', '-1d'];
    const said =
      /^ {2}requests +none: the day that is still open is requested after it has ended, from 2026-11-04 00:00:?0?0?Z on$/m;
    const { code, out } = await chandler(argv, {});
    expect(code).toBe(0);
    expect(out).toMatch(said);
    expect(out).toMatch(/^ {2}requests +0 sent, 0 planned$/m);
    // The same after the history limit was met and the last full day is stored.
    expect((await chandler(['backfill', '--top', '3', '--start', '-10d'], {})).out).toMatch(
      /^ {2}requests +4 sent, 4 planned \(failed: 1 history limit\)$/m,
    );
    expect((await chandler(argv, {})).out).toMatch(/^ {2}requests +0 sent, 0 planned$/m);
    expect((await chandler(['plan', '--top', '3', '--start', '-10d'], {})).out).toMatch(said);
    expect((await chandler(['plan', '--top', '3', '--start', '-10d', '--end', '2026-11-03'], {})).out).toMatch(
      /^ {2}requests +none: the last full day is stored, and older days never become final under this plan$/m,
    );
    expect((await chandler(['plan', '--top', '3', '--start', '-10d', '--end', '-3d'], {})).out).toMatch(
      /^ {2}requests +none: plan free allows no part of this span$/m,
    );
  });

  test('a limit that was met is shown as documented, even if the clocks differ by seconds', async () => {
    await chandler(['backfill', '--top', '1', '--start', '-400d', '--series', 'prices'], {});
    const { out } = await chandler(['plan', '--top', '3', '--start', '-400d'], {});
    expect(out).toContain('\n  Prices instead of candles, daily: the last 365d, ');
    expect(out).toContain('\n  chandler backfill --top 3 --start -365d --series prices --interval 1d\n');
  });

  test('a plan says when the last day is requested again and finishes later while the upstream is late with that day', async () => {
    const { fetch } = createSimulator({
      ...{ market: 'made-up', coins: 20, clock, limits: { plan: 'free' }, latestTurnsAfterMs: 86_400_000, onError },
    });
    const late = await listen(fetch, { host: '127.0.0.1', port: 0 });
    try {
      const more = { CHANDLER_BASE_URL: `${late.url}/v1` };
      const target = ['--top', '2', '--start', '-2d'];
      const stopped = await chandler(['backfill', ...target, '--max-wait', '0s'], more);
      expect(stopped.code).toBe(75);
      expect(stopped.out).toMatch(/^The rest takes 2 requests: done 2026-11-03 12:1\d:\d\dZ at the earliest, in 1\dm/m);
      const { out } = await chandler(['plan', ...target], more);
      expect(out).toMatch(
        /^ {2}The upstream does not yet serve the day that ended last: Chandler requests it again from 2026-11-03 12:1\d:\d\dZ \(in 1\dm.*\) on\.$/m,
      );
      expect(out).toMatch(/^ {2}done +2026-11-03 12:1\d:\d\dZ \(in 1\dm/m);
      const json = JSON.parse((await chandler(['plan', ...target, '--json'], more)).out);
      expect(Date.parse(json.lateUntil)).toBeGreaterThan(clock.now());
      expect(Date.parse(json.finishAt)).toBeGreaterThanOrEqual(Date.parse(json.lateUntil));
    } finally {
      await late.close();
    }
  });

  test('coins that are left out share the probe of the history limit, and inactive ones have no new days', async () => {
    const planned = async (...argv: string[]) =>
      JSON.parse((await chandler(['plan', ...argv, '--start', '-20d', '--json'], {})).out);
    const active = await planned('--all');
    const all = await planned('--all', '--inactive');
    expect(active.leftOut.requests).toBe(active.leftOut.coins);
    expect(all.requests).toBe(active.requests + active.leftOut.requests);
    expect(all.heldAfter).toEqual(active.heldAfter);
    expect(active.heldAfter.week).toBe(7 * active.coins);
    expect(await planned('--inactive')).toMatchObject({ coins: active.leftOut.coins, heldAfter: null });
    expect((await chandler(['plan', '--inactive', '--start', '-20d'], {})).out).toContain(
      '\n  None of these coins is active any more: they get no new days.\n',
    );
    expect((await chandler(['plan', '--all', '--inactive', '--start', '-20d'], {})).out).toContain(
      `\n  Tracked daily (track add --target-age 1d), ${active.coins} active coins:\n`,
    );
  });
});

test('several intervals are planned and filled one after the other, and the report has their sum', async () => {
  const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_REQUESTS_PER_SECOND: 'unlimited' };
  const span = ['btc-bitcoin', 'eth-ethereum', '--start', '2026-10-14', '--end', '2026-10-29'];
  const argv = [...span, '--interval', '24h,6h', '--interval', '1h', '--interval', '6h'];
  const asJson = async (...given: string[]) => JSON.parse((await chandler([...given, '--json'], settings)).out);
  const alone = await Promise.all(['24h', '6h', '1h'].map((one) => asJson('plan', ...span, '--interval', one)));
  const plan = await asJson('plan', ...argv);
  const sum = (name: string) => alone.reduce((total, one) => total + one[name], 0);
  expect(plan).toMatchObject({
    interval: '24h,6h,1h',
    coins: 2,
    requests: sum('requests'),
    rowsExpected: sum('rowsExpected'),
    from: alone[0].from,
    to: alone[0].to,
    intervals: alone.map(({ interval, requests, rowsExpected }) => ({ interval, requests, rowsExpected })),
  });
  // One interval alone has the shape that it always had. Several have the same fields and one more.
  expect(alone[0]).not.toHaveProperty('intervals');
  expect(Object.keys(plan)).toEqual(expect.arrayContaining(Object.keys(alone[0])));
  const slots = 2 * 15 * (1 + 4 + 24);
  expect(plan.rowsExpected).toBe(slots);
  const text = (await chandler(['plan', ...argv], settings)).out;
  expect(text.match(/^2 coins, (24h|6h|1h) candles in usd/gm)).toHaveLength(3);
  expect(text).toMatch(/^Total: 6 requests for up to 870 rows, done as fast as the upstream answers/m);

  const { code, out, err } = await chandler(['backfill', ...argv], settings);
  expect(code).toBe(0);
  expect(out.match(/^Done: nothing left to fetch\.$/gm)).toHaveLength(3);
  expect(out).toMatch(/^Total: 870 rows stored, 6 requests sent, 6 planned, 0 slots left, /m);
  expect(err.match(/^\w+ candles$/gm)).toEqual(['24h candles', '6h candles', '1h candles']);
  const runs =
    await database.sql`select interval::text, spec->>'interval' as asked, state from ops.backfill order by id`;
  expect(runs.map((row) => Object.values(row).join(' '))).toEqual(['24h 24h done', '6h 6h done', '1h 1h done']);

  expect((await chandler(['backfill', ...argv], settings)).out).toMatch(/^Total: nothing to fetch\.$/m);

  // Slots that are stored already are not requested again. New ones are.
  const more = await asJson('backfill', ...span, '--interval', '1h,30m,15m');
  expect(more.plan.intervals.map((one: { requests: number }) => one.requests)).toEqual([0, 4, 8]);
  expect(more.backfill).toMatchObject({
    end: 'done',
    requests: 12,
    requestsPlanned: 12,
    stored: 2 * 15 * (48 + 96),
    byOutcome: { stored: 12 },
    intervals: [
      { interval: '30m', requests: 4, stored: 2 * 15 * 48 },
      { interval: '15m', requests: 8, stored: 2 * 15 * 96 },
    ],
    notStarted: [],
  });
  expect(await asJson('backfill', ...span, '--interval', '30m')).toMatchObject({ backfill: null });
  const single = await asJson('backfill', ...span, '--interval', '12h');
  expect(single.backfill).not.toHaveProperty('intervals');
});

test('a plan and a backfill leave out what retention would remove, say so in one sentence, and refuse a request for nothing else', async () => {
  const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_KEEP_CANDLES: '5m=30d' };
  const argv = ['btc-bitcoin', '--interval', '5m', '--start', '-400d'];
  const said = /\nOlder candles are left out: CHANDLER_KEEP_CANDLES keeps 5m candles for 30d\.\n/;
  const plan = await chandler(['plan', ...argv], settings);
  expect(plan.out).toMatch(/^1 coin, 5m candles in usd from 2026-10-04/);
  expect(plan.out).toMatch(said);
  // 30 days of 288 candles, 366 a request.
  expect(plan.out).toMatch(/^ {2}requests +24$/m);
  expect((await chandler(['backfill', ...argv, '--dry-run'], settings)).out).toMatch(said);
  const detached = await chandler(['backfill', ...argv, '--detach', '--yes'], settings);
  expect(detached.out).toMatch(said);
  const [listed] = JSON.parse((await chandler(['backfills', 'list', '--json'], settings)).out);
  const from = Date.parse(listed.from);
  expect(Math.abs(from - (clock.now() - 30 * 86_400_000))).toBeLessThan(10 * 60_000);
  const asJson = async (more: readonly string[]) =>
    JSON.parse((await chandler(['plan', '--json', ...more], settings)).out);
  expect(await asJson(argv)).toMatchObject({ requests: 24, from: listed.from, notKeptBefore: listed.from });
  expect(await asJson(['btc-bitcoin', '--start', '-400d'])).toMatchObject({ requests: 2, notKeptBefore: null });
  const { code, err } = await chandler(['plan', ...argv, '--end', '-31d'], settings);
  expect(code).toBe(2);
  expect(err).toMatch(/^error: CHANDLER_KEEP_CANDLES keeps 5m candles for 30d, and the whole span is older/);
});

describe('coins that are not active any more', () => {
  const settings = { CHANDLER_PLAN: 'enterprise', CHANDLER_REQUESTS_PER_SECOND: 'unlimited' };
  const span = ['--start', '-20d', '--end', '-10d'];
  const planned = async (...argv: string[]) =>
    JSON.parse((await chandler(['plan', ...argv, ...span, '--json'], settings)).out) as {
      coins: number;
      requests: number;
      leftOut: { coins: number; requests: number };
    };

  test('are left out unless --inactive is given, and the plan says what they would cost', async () => {
    const active = await planned('--all');
    const { coins } = active.leftOut;
    expect(coins).toBeGreaterThan(0);
    const all = await planned('--all', '--inactive');
    expect(all).toMatchObject({ coins: active.coins + coins, leftOut: { coins: 0, requests: 0 } });
    expect(all.requests).toBe(active.requests + active.leftOut.requests);
    expect(await planned('--inactive')).toMatchObject({ coins, leftOut: { coins: 0 } });
    expect(await planned('--top', '3')).toMatchObject({ coins: 3, leftOut: { coins } });
    expect(await planned('btc-bitcoin')).toMatchObject({ leftOut: { coins: 0, requests: 0 } });
    const { out } = await chandler(['plan', '--top', '3', ...span], settings);
    expect(out).toMatch(
      new RegExp(
        `${coins} coins? that (is|are) not active any more (is|are) left out\\.\\n  With --inactive: \\d+ requests? more\\.`,
      ),
    );
  });

  test.each(['24h', 'prices-1d'] as const)(
    'are among the largest of a past month in which they were active, by %s',
    async (interval) => {
      await planned('--top', '1');
      const { sql } = database;
      const inactive = await sql<{ id: string }[]>`select id from market.coin where not is_active order by id`;
      const dead = inactive[0]!.id;
      const large = (
        await sql<{ id: string }[]>`select id from market.coin where is_active order by rank desc limit 1`
      )[0]!.id;
      const monthEnd = Date.UTC(2024, 1, 29);
      for (const [coinId, cap] of [
        [dead, 9e12],
        [large, 1e12],
      ] as const) {
        await seedSeries(sql, {
          coinId,
          interval,
          wanted: [],
          covered: [{ from: monthEnd, to: monthEnd + 86_400_000 }],
          candles: [monthEnd],
        });
        await sql`update market.candle c set market_cap = ${cap} from market.series s where s.id = c.series_id and s.coin_id = ${coinId}`;
        await sql`update market.price p set market_cap = ${cap} from market.series s where s.id = p.series_id and s.coin_id = ${coinId}`;
        await sql`update market.coin set rank = 900, is_active = ${coinId !== dead} where id = ${coinId}`;
      }
      expect(await planned('--ever-top', '1')).toMatchObject({ coins: 2, leftOut: { coins: inactive.length - 1 } });
      expect(await planned('--ever-top', '2')).toMatchObject({ coins: 4 });
      const { code, err } = await chandler(['plan', '--all', '--ever-top', '5', ...span], settings);
      expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('no --ever-top with it') });
    },
  );
});
