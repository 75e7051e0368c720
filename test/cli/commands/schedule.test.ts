import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks, removeTracks } from '../../../src/store/tracking/track-rule.ts';
import { claimRun, endRun } from '../../../src/store/work/schedule-run.ts';
import { createManualClock } from '../../quota/manual-clock.ts';
import { type CommandOptions, runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { schedulerSeen } from '../../support/scheduler-seen.ts';
import { seedSeries } from '../../support/warehouse.ts';

const NOW = Date.UTC(2026, 10, 21, 12, 5);
const clock = createManualClock(NOW);
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const chandler = (argv: readonly string[], env: Record<string, string> = {}, options: CommandOptions = {}) =>
  runCommand(argv, { clock, env: { DATABASE_URL: database.url, ...env }, ...options });

describe('schedule', () => {
  test('shows what runs how often, what share of the plan that takes, and when it is next due', async () => {
    const { code, out } = await chandler(['schedule']);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^tickers +\*\/15 \* \* \* \* +1 +2,976 +14\.9% +never +in 10m +the latest prices of all coins$/m,
    );
    expect(out).toMatch(/^coins +7 \*\/6 \* \* \* +1 +124 +0\.6% +never +in 2m +the list of coins and their ranks$/m);
    expect(out).toMatch(/^gaps +52 \* \* \* \* +0 +0 +– +never +in 47m /m);
    expect(out).toContain(
      '\nTotal: 5,115 requests in a month of 31 days, 25.6% of 20,000; 165 requests in a day, 16.5% of 1,000 (plan free). The rest is available for candles and prices.\n',
    );
  });

  test('shows what was set by hand, and what is off', async () => {
    const env = { CHANDLER_SCHEDULE_TICKERS: '0 * * * *', CHANDLER_SCHEDULE_GLOBAL: 'off', CHANDLER_API_KEY: 'k' };
    const { schedules } = JSON.parse((await chandler(['schedule', '--json'], env)).out);
    const named = (name: string) => schedules.find((schedule: { name: string }) => schedule.name === name);
    expect(named('tickers')).toMatchObject({
      cron: '0 * * * *',
      source: 'configured',
      requestsPerRun: 1,
      requestsPerDay: 24,
      requestsPerMonth: 744,
      shareOfMonth: 744 / 20_000,
      lastRun: null,
      lastFailure: null,
      nextRun: '2026-11-21T13:00:00.000Z',
    });
    expect(named('global')).toMatchObject({ cron: null, requestsPerMonth: 0, nextRun: null });
    expect(named('account')).toMatchObject({ cron: '37 */6 * * *', source: 'plan' });
    expect((await chandler(['schedule'], env)).out).toMatch(/^global +off +1 +0 +– +never +– /m);
  });

  test('reserves nothing for a kind of data that the upstream refuses before it is due, and then one request a month', async () => {
    const { sql } = database;
    const accountId = 'anonymous@api.coinpaprika.com';
    await schedulerSeen(database, { accountId, at: NOW });
    const ids: number[] = [];
    for (const coinId of ['a-a', 'b-b', 'c-c'])
      ids.push(await seedSeries(sql, { coinId, interval: '24h', wanted: [], covered: [], candles: [] }));
    const read = async () => {
      const [quota, schedule] = await Promise.all([chandler(['quota', '--json']), chandler(['schedule', '--json'])]);
      const { schedules } = JSON.parse(schedule.out);
      const markets = schedules.find(({ name }: { name: string }) => name === 'coin_markets');
      return { reserved: JSON.parse(quota.out).month.reserved, perDay: markets.requestsPerDay };
    };
    const before = await read();
    // Three coins, each due after three hours, so requested at every second run.
    expect(before.perDay).toBe(18);
    const key = `${accountId} free coin_markets`;
    const refused = async (answers: number, requestedAt: number, retryAt: number) => {
      await sql`delete from ops.second_opinion where key = ${key}`;
      await sql`
        insert into ops.second_opinion (claim, key, evidence, answers, requested_at, retry_at)
        values ('catalogue refusal', ${key}, '{"reason": "plan", "message": "not in your plan"}', ${answers}, ${requestedAt}, ${retryAt})`;
      const { reserved, perDay } = await read();
      return { saved: before.reserved - reserved, perDay };
    };
    // A run every two hours requests two coins, so each coin has its turn every four hours, not three. Six runs today send nine requests, a day 18.
    const all = 9 + 9 * 18;
    expect(await refused(3, NOW, NOW + 30 * DAY)).toEqual({ saved: all, perDay: 0 });
    // Weeks after the last refusal, the next request is due after this month.
    expect(await refused(3, NOW - 15 * DAY, NOW + 15 * DAY)).toEqual({ saved: all, perDay: 0 });
    expect(await refused(3, NOW - 29 * DAY, NOW + DAY)).toEqual({ saved: all - 1, perDay: 0 });
    expect(await refused(3, NOW - 40 * DAY, NOW - 10 * DAY)).toEqual({ saved: all - 1, perDay: 0 });
    // Two refusals may be chance: a few minutes later the kind is requested as usual.
    expect(await refused(2, NOW, NOW + HOUR)).toEqual({ saved: 0, perDay: 18 });
    await sql`delete from ops.second_opinion where key = ${key}`;
    await sql`delete from market.series where id = any(${ids}::int[])`;
    await sql`delete from market.coin where id in ('a-a', 'b-b', 'c-c')`;
    await sql`delete from ops.account`;
  });

  test('says, as doctor does, what tracked series lack because a schedule is off', async () => {
    const { sql } = database;
    const off = { CHANDLER_SCHEDULE_FRESHNESS: 'off', CHANDLER_SCHEDULE_GAPS: 'off', CHANDLER_SCHEDULE_GLOBAL: 'off' };
    expect((await chandler(['schedule'], off)).out).not.toContain('tracked series');
    const coin = { id: 'btc-bitcoin', name: 'Bitcoin', symbol: 'BTC', rank: 1, is_new: false, is_active: true };
    await recordCoins(sql, [{ ...coin, type: 'coin' }], NOW);
    const term = { interval: '24h', quote: 'usd', since: NOW - 9 * DAY, priority: 10, targetAgeMs: DAY } as const;
    await addTracks(sql, [{ tier: 'list', coinId: 'btc-bitcoin', ...term }], NOW);
    await applyTracks(sql, NOW);
    const { out } = await chandler(['schedule'], off);
    expect(out).toContain('\nfreshness is off, which affects 1 tracked series: they are no longer refreshed.\n');
    expect(out).toMatch(/^gaps is off, which affects 1 tracked series: /m);
    expect(out).not.toMatch(/^global is off/m);
    const { schedules } = JSON.parse((await chandler(['schedule', '--json'], off)).out);
    const warned = schedules.flatMap(({ name, warning }: { name: string; warning: string | null }) =>
      warning === null ? [] : [name],
    );
    expect(warned).toEqual(['freshness', 'gaps']);
    expect((await chandler(['doctor'], off)).out).toMatch(
      /schedule freshness +it is off, which affects 1 tracked series: /,
    );
    await removeTracks(sql, {});
    await applyTracks(sql, NOW);
  });

  test('says by how much the planned requests exceed the plan, and what follows', async () => {
    const { sql } = database;
    const ids = Array.from({ length: 60 }, (_, i) => `c${i}-coin`);
    const coins = ids.map((id, i) => ({
      ...{ id, name: id, symbol: id, rank: i + 1, is_new: false, is_active: true, type: 'coin' },
    }));
    await recordCoins(sql, coins, NOW);
    // The ages were planned under a larger plan.
    const larger = { CHANDLER_PLAN: 'starter' };
    expect((await chandler(['track', 'add', ...ids, '--interval', '1h'], larger)).code).toBe(0);
    const { out } = await chandler(['schedule']);
    expect(out).toMatch(
      /^Total: [\d,]+ requests in a month of 31 days, 2\d\d(\.\d)?% of 20,000; .* \(plan free\)\. The plan allows fewer: at its next run, the schedule freshness lengthens the ages of tracked series \(chandler track list\)\.$/m,
    );
    expect(out).toMatch(/^freshness .* 2\d\d(\.\d)?% /m);
    expect((await chandler(['track', 'remove', ...ids])).code).toBe(0);
    await sql`update market.coin set is_active = false where id = any(${ids})`;
    await applyTracks(sql, NOW);
  });

  test('refuses schedules that the rate does not allow', async () => {
    const env = { CHANDLER_REQUESTS_PER_SECOND: '0.01', CHANDLER_SCHEDULE_TICKERS: '* * * * *' };
    const { code, err } = await chandler(['schedule'], { ...env, CHANDLER_PLAN: 'enterprise', CHANDLER_API_KEY: 'k' });
    expect(code).toBe(2);
    expect(err).toMatch(
      /1,\d\d\d requests in a day .* the limit is 855 \(a little less than 0\.01 a second, plan enterprise\)/,
    );
  });

  test('shows the last result of each schedule, and why it failed or waits', async () => {
    const { sql } = database;
    const run = (schedule: string, tick: number) =>
      claimRun(sql, { schedule, tick, owner: 'h:1', now: tick }, () => true);
    await endRun(
      sql,
      (await run('tickers', NOW - DAY))!,
      { state: 'failed', message: 'the list is broken' },
      NOW - DAY,
    );
    await endRun(sql, (await run('tickers', NOW - 300_000))!, { state: 'done' }, NOW - 290_000);
    await endRun(sql, (await run('coins', NOW - 300_000))!, { state: 'failed', message: 'no answer' }, NOW - 60_000);
    const held = { state: 'held', message: 'month', until: NOW + 3_600_000 } as const;
    await endRun(sql, (await run('global', NOW - 300_000))!, held, NOW - 60_000);
    const { out } = await chandler(['schedule']);
    expect(out).toMatch(/^tickers .* 4m 50s ago +in 10m /m);
    expect(out).toMatch(/^coins .* failed, 1m ago +in 2m /m);
    expect(out).toMatch(/^coins: failed after 1 attempt; the next run tries again: no answer$/m);
    expect(out).toMatch(/^global: waits until 2026-11-21 13:05Z \(in 1h\): this month's requests are used up$/m);
    expect(out).not.toMatch(/^tickers: /m);
    const { schedules } = JSON.parse((await chandler(['schedule', '--json'])).out);
    expect(schedules[0]).toMatchObject({
      lastRun: { state: 'done', attempts: 1, endedAt: '2026-11-21T12:00:10.000Z', owner: 'h:1' },
      lastFailure: { tick: '2026-11-20T12:05:00.000Z', message: 'the list is broken' },
    });
  });

  test('refuses schedules that alone exceed the plan, with the arithmetic, and sends no request', async () => {
    const settings = { CHANDLER_SCHEDULE_TICKERS: '*/2 * * * *' };
    const { code, err, out } = await chandler(['schedule', '--json'], settings);
    expect(code).toBe(2);
    expect(err).toMatch(
      /^error: the schedules alone need 24,397 requests in a month of 31 days \(tickers 22,320 × 1 \+ .*the limit is 20,000 \(plan free\); run them less often, like CHANDLER_SCHEDULE_TICKERS='\*\/15 \* \* \* \*'/,
    );
    expect(JSON.parse(out)).toMatchObject({ exitCode: 2 });
    const [row] = await database.sql<{ n: number }[]>`select count(*) as n from ops.fetch`;
    expect(row?.n).toBe(0);
  });
});
