import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DAY, HOUR, MINUTE } from '../../../src/core/interval.ts';
import { markSeen } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { recordRefreshes } from '../../../src/store/tracking/tracked-series.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let env: Record<string, string>;
const track = (...argv: string[]) => runCommand(['track', ...argv], { env });
const json = async (...argv: string[]) => {
  const { code, out, err } = await runCommand([...argv, '--json'], { env });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out);
};

beforeAll(async () => {
  database = await createTestDatabase();
  // Nothing listens there, so any upstream request fails.
  env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: 'http://127.0.0.1:1/v1' };
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.sql`truncate market.coin, ops.track, ops.tier, ops.tracked cascade`;
  const ids = ['btc-bitcoin', 'eth-ethereum', 'usdt-tether', 'doge-dogecoin'];
  const coins = ids.map((id, i) => ({
    id,
    name: id.split('-')[1]!,
    symbol: id.split('-')[0]!,
    rank: i + 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  }));
  await recordCoins(database.sql, coins, systemClock.now());
});

describe('track add', () => {
  test('saves the rules with their defaults, makes the series, and says what they cost', async () => {
    const { code, out, err } = await track('add', 'btc-bitcoin', '--top', '3', '--interval', '24h,1h');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^4 rules saved; 6 series tracked, 6 of them new\./);
    expect(out).toMatch(/^list 24h +20 +1 +1d +1d +– +– +1 series not refreshed yet$/m);
    expect(out).toMatch(/^top 1h +10 +2 +2h +2h /m);
    // 1 + 2 daily; one hourly every 55 minutes and two every 115 minutes: one run of the schedule earlier than their targets.
    expect(out).toMatch(/Keeping every target age costs 55 requests a day; \d+ are available\.$/m);
    expect(out).toMatch(/^As documented, plan free includes no 1h candles\. One request will check this; /m);
    const { rules } = await json('track', 'list');
    expect(rules).toHaveLength(4);
    expect(rules[0]).toMatchObject({
      tier: 'list',
      coinId: 'btc-bitcoin',
      interval: '24h',
      quote: 'usd',
      priority: 20,
      targetAgeMs: DAY,
      since: new Date(Math.floor(systemClock.now() / DAY) * DAY).toISOString(),
    });
  });

  test('says which age can be achieved when the budget does not allow the target', async () => {
    env.CHANDLER_MONTHLY_REQUESTS = '120';
    const report = await json('track', 'add', '--all', '--interval', '1h', '--target-age', '6h');
    delete env.CHANDLER_MONTHLY_REQUESTS;
    expect(report.added).toBe(1);
    expect(report.requestsPerDay.wanted).toBeCloseTo((4 * 24 * 60) / 355);
    expect(report.requestsPerDay.planned).toBeLessThanOrEqual(report.requestsPerDay.available);
    expect(report.tiers[0].achievableAgeMs).toBeGreaterThan(6 * HOUR);
    expect((await track('list')).out).toMatch(/^all 1h +0 +4 +6h +\dd/m);
  });

  test('says that skipped days are lost when the plan gives only the last one, and that a backfill fills other gaps', async () => {
    env.CHANDLER_MONTHLY_REQUESTS = '120';
    const lost =
      /^Daily candles that are skipped cannot be fetched later under this plan, which gives only the last full day\. /m;
    const filled = /chandler backfill fills the gaps between them\./;
    const { out } = await track('add', '--all', '--target-age', '1d');
    expect(out).toMatch(/^all 24h .* candles are skipped/m);
    for (const said of [out, (await track('list')).out, (await runCommand(['status'], { env })).out]) {
      expect(said).toMatch(lost);
      expect(said).not.toMatch(filled);
    }
    env.CHANDLER_PLAN = 'starter';
    const more = await track('list');
    expect(more.out).not.toMatch(lost);
    expect(more.out).toMatch(filled);
    delete env.CHANDLER_PLAN;
    delete env.CHANDLER_MONTHLY_REQUESTS;
  });

  test.each(['2600', '2900'])('plans no more requests than are available, with %s a month', async (perMonth) => {
    env.CHANDLER_MONTHLY_REQUESTS = perMonth;
    const { out } = await track('add', '--all', '--series', 'prices', '--interval', '1h', '--target-age', '1h');
    delete env.CHANDLER_MONTHLY_REQUESTS;
    const [, available, planned] = /only (\d+) are available\. Chandler plans (\d+) a day/.exec(out)!;
    expect(Number(planned)).toBe(Number(available));
  });

  test('accepts every term, and replaces the terms of the same coins', async () => {
    await json(
      'track',
      'add',
      'btc-bitcoin',
      '--since',
      '2024-02-01',
      '--priority',
      '-3',
      '--target-age',
      '36h',
      '--quote',
      'btc',
    );
    await json(
      'track',
      'add',
      'btc-bitcoin',
      '--since',
      '-7d',
      '--quote',
      'btc',
      '--interval',
      '24h,5m',
      '--target-age',
      '2d,5m=30m',
    );
    const { rules } = await json('track', 'list');
    expect(rules).toMatchObject([
      { interval: '24h', quote: 'btc', priority: 20, targetAgeMs: 2 * DAY },
      { interval: '5m', quote: 'btc', priority: 20, targetAgeMs: HOUR / 2 },
    ]);
  });

  test.each<[string[], RegExp]>([
    [['btc-bitcon'], /the upstream has no coin btc-bitcon; did you mean btc-bitcoin\?/],
    [[], /No coins given; give ids like btc-bitcoin, or --top 100, or --all\./],
    [['btc-bitcoin', '--all'], /--all already means every coin/],
    [['--top', '0'], /'0' is invalid.*above 0/],
    [['--all', '--interval', '1h,1d'], /There are no 1d candles; give 24h, or --series prices for 1d prices/],
    [['--all', '--quote', 'eur'], /usd, btc/],
    [['--all', '--since', '2999-01-01'], /--since 2999-01-01 lies in the future/],
    [['--all', '--since', 'yesterday'], /--since 'yesterday' is not a time/],
    [['--all', '--priority', '101'], /whole number from -100 to 100/],
    [['--all', '--target-age', '0s'], /shortest target age is 1m/],
    [['--all', '--target-age', '2'], /is invalid.*2s, 2m or 2h/],
    [['--all', '--target-age', '1h=2h'], /--target-age is given for 1h, but --interval is 24h; add 1h to --interval/],
    [['--all', '--target-age', '1hour=2h'], /It must be one of 5m/],
  ])('%j is wrong usage, and changes nothing', async (argv, message) => {
    const { code, out, err } = await track('add', ...argv);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
    expect(await json('track', 'list')).toEqual({ rules: [], tiers: [] });
  });
});

describe('track remove', () => {
  test('says what stays, and what other rules still want', async () => {
    await track('add', 'btc-bitcoin', 'doge-dogecoin', '--top', '2');
    const rows = await database.sql<{ id: number }[]>`select id from market.series`;
    const now = systemClock.now();
    await recordRefreshes(
      database.sql,
      rows.map(({ id }) => ({ seriesId: id, askedAt: now, refreshAt: now, isQueued: false })),
    );
    const { code, out } = await track('remove', 'btc-bitcoin', 'doge-dogecoin');
    expect(code).toBe(0);
    expect(out).toMatch(/^2 rules removed; 2 series still tracked\.\n1 series no longer tracked\. Stored data stays;/);
    expect(out).toContain('Other rules still track 1 series of these coins');
    expect(out).toMatch(/1 series tracked only until final$/m);
    expect(await json('track', 'remove', '--top', '2')).toMatchObject({ removed: 1, applied: { series: 0, ended: 2 } });
    expect((await track('list')).out).toBe('Nothing is tracked yet. Begin with: chandler track add --top 100\n');
  });

  test.each<[string[], RegExp]>([
    [['btc-bitcon'], /no rule names btc-bitcon \(did you mean btc-bitcoin\?\)/],
    [['eth-ethereum'], /eth-ethereum is tracked by --top or --all, and a single coin cannot be removed from those/],
    [['btc-bitcoin', '--interval', '1h'], /btc-bitcoin has no rule for 1h\./],
    [['--top', '3'], /there is no rule --top 3/],
    [['btc-bitcoin', 'nope'], /Nothing was removed: no rule names nope/],
    [[], /No coins given/],
  ])('%j is wrong usage, and removes nothing', async (argv, message) => {
    await track('add', 'btc-bitcoin', '--top', '2');
    const { code, err } = await track('remove', ...argv);
    expect(code).toBe(2);
    expect(err).toMatch(message);
    expect((await json('track', 'list')).rules).toHaveLength(2);
  });
});

test('status shows how fresh each tier is', async () => {
  await track('add', '--all');
  const rows = await database.sql<{ id: number }[]>`select id from market.series order by id`;
  const now = systemClock.now();
  for (const [i, { id }] of rows.slice(0, 3).entries()) await markSeen(database.sql, id, now - (i + 1) * 10 * HOUR);
  const { tiers } = await json('status');
  // On the free plan a day is lost that was not requested before the next one has ended. So it is requested each day, at the first run
  // after midnight.
  expect(tiers).toMatchObject([
    {
      tier: 'all',
      interval: '24h',
      series: 4,
      unseen: 1,
      ending: 0,
      targetAgeMs: 2 * DAY,
      achievableAgeMs: DAY + 5 * MINUTE,
    },
  ]);
  expect(Math.floor(tiers[0].medianAgeMs / HOUR)).toBe(20);
  expect(Math.floor(tiers[0].oldestAgeMs / HOUR)).toBe(30);
  expect((await runCommand(['status'], { env })).out).toMatch(
    /Tracked\n[\s\S]*^all 24h +0 +4 +2d +1d +20h.* +1d 6h.* +1 series not refreshed yet$/m,
  );
});
