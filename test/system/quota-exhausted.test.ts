import { afterEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
import { NOW, TODAY } from '../support/scripted-world.ts';
import {
  account,
  accountAsked,
  CHUNKS,
  MONTH_RESET,
  make,
  refusals,
  SPENT,
  upstream,
  WORK,
  world,
} from './quota-exhausted.ts';

afterEach(() => world?.close());

describe('402 "you have reached maximum request limit"', () => {
  const limits = async () => {
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    return row!.n;
  };

  test('with a key and budget left by /users/me is no exhausted month: requests go on', async () => {
    await make({
      apiKey: 'k',
      speed: 200,
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    const me = account(10, 9_999_990);
    // One coin's oldest year is refused so. Everything else is answered.
    upstream.script = (request) =>
      request.url.includes('btc-bitcoin/ohlcv') &&
      Date.parse(new URL(request.url).searchParams.get('start')!) < TODAY - 1_480 * DAY
        ? says(402, SPENT)
        : me(request);
    const run = await chandler.backfill(WORK);
    expect(run.end).toEqual({ kind: 'done' });
    // The second request came when no cache could repeat the first answer any more, and is believed.
    const [first, second, ...more] = upstream.ohlcv().filter((asked) => asked.status === 402);
    expect(more).toEqual([]);
    expect(second!.at - first!.at).toBeGreaterThan(70_000);
    expect([...run.refused.keys()]).toEqual(['history limit']);
    expect(await limits()).toBe(1);
    expect((await chandler.session.quota.state()).hold).toBeNull();
    expect(await chandler.session.quota.take({ class: 'backfill', name: 'more' })).toMatchObject({ kind: 'granted' });
  });

  test.each(['ultimate', 'starter'] as const)(
    'once, with budget left by /users/me, is a stray one: requested again, and no history limit (%s)',
    async (plan) => {
      // The documented history limit of the smaller plan is probed alone, and the probe meets the stray refusal.
      await make({
        apiKey: 'k',
        plan,
        speed: 200,
        simulator: {
          seed: 3,
          coins: 12,
          unlimited: true,
          limits: { keys: { k: plan }, overrides: { historyDepthMs: null } },
        },
      });
      const chandler = await world.open();
      const me = account(10, 9_999_990);
      let strays = 0;
      upstream.script = (request) =>
        request.url.includes('/ohlcv') && strays++ === 0 ? says(402, SPENT) : me(request);
      upstream.forget();
      const run = await chandler.backfill(WORK);
      expect(run.end).toEqual({ kind: 'done' });
      expect([run.refused.size, refusals(), await limits()]).toEqual([0, 1, 0]);
      expect(upstream.ohlcv()).toHaveLength(CHUNKS + 1);
      expect(run.totals).toMatchObject({ requests: CHUNKS + 1, byOutcome: { stored: CHUNKS, limited: 1 } });
    },
  );

  test('with none left by /users/me holds all requests until the next month, and ends the run', async () => {
    await make({
      apiKey: 'k',
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    const me = account(10_000_000, 0);
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, SPENT) : me(request));
    upstream.forget();
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'stopped' });
    expect(run.end.kind === 'stopped' && run.end.until).toBeGreaterThanOrEqual(MONTH_RESET);
    expect(refusals()).toBeLessThanOrEqual(4);
    expect(accountAsked()).toBe(1);
    // A run before that sends no requests.
    upstream.forget();
    world.clock.advanceTo(NOW + 5 * HOUR);
    const again = await (await world.open({ plan: null })).backfill(WORK);
    expect(again.end.kind).toBe('stopped');
    expect(upstream.ohlcv()).toEqual([]);
    // In the new month everything is requested, first by one request alone and then by all.
    world.clock.advanceTo(MONTH_RESET + 20 * 60_000);
    upstream.script = account(0, 10_000_000);
    const later = await world.open({ plan: null });
    const run2 = await later.backfill(WORK);
    expect(run2.end).toEqual({ kind: 'done' });
    expect(upstream.ohlcv()).toHaveLength(CHUNKS);
  });

  test('is not believed for a whole month when the account request fails', async () => {
    await make({
      apiKey: 'k',
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    upstream.script = (request) =>
      request.url.endsWith('/users/me') || request.url.includes('ohlcv')
        ? says(request.url.endsWith('me') ? 500 : 402, SPENT)
        : null;
    upstream.forget();
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'stopped' });
    expect(run.end.kind === 'stopped' && run.end.until).toBeLessThanOrEqual(TODAY + DAY + 60_000);
    expect(upstream.log.length).toBeLessThanOrEqual(5);
  });

  test('without a key holds until the end of the anonymous day', async () => {
    await make({
      plan: 'free',
      limits: { perDay: 1_000 },
      simulator: { seed: 3, coins: 12, unlimited: true },
    });
    const chandler = await world.open();
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, SPENT) : null);
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'quota exhausted' });
    const until = run.end.kind === 'stopped' ? run.end.until : 0;
    expect(until).toBeGreaterThanOrEqual(TODAY + DAY);
    expect(until).toBeLessThan(TODAY + DAY + 60_000);
    expect(refusals()).toBeLessThanOrEqual(4);
    expect(accountAsked()).toBe(0);
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    expect(row!.n).toBe(0);
    upstream.forget();
    expect((await (await world.open()).backfill(WORK)).end.kind).toBe('stopped');
    expect(upstream.log).toEqual([]);
  });

  test.each([SPENT, 'Monthly quota exceeded', 'rate limit reached'])(
    'without a key holds requests at most until the end of the day, when no limit of a day is known (%s)',
    async (text) => {
      await make({ plan: 'free', simulator: { seed: 3, coins: 12, unlimited: true } });
      upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, text) : null);
      const run = await (await world.open()).backfill(WORK);
      expect(run.end).toMatchObject({ kind: 'stopped', reason: 'quota exhausted' });
      expect(run.end.kind === 'stopped' && run.end.until).toBeLessThan(TODAY + DAY + 60_000);
    },
  );
});

describe('402 with an unknown text, for a request without a key', () => {
  const PAID = 'This endpoint requires a paid plan';
  const HOURS = { ...WORK, interval: '1h' as const, from: TODAY - 2 * DAY, to: TODAY };
  const DAYS = { ...WORK, from: TODAY - 9 * DAY, to: TODAY };
  const open = () =>
    make({ plan: 'free', speed: 200, limits: { perDay: 1_000 }, simulator: { seed: 3, coins: 40, unlimited: true } });

  test.each([PAID, 'payment required', 'Free tier rate limit reached, or this endpoint requires a paid plan'])(
    'for an undocumented interval is a history limit of that interval after the second; days are still fetched (%s)',
    async (text) => {
      await open();
      const chandler = await world.open();
      upstream.script = (request) => (request.url.includes('interval=1h') ? says(402, text) : null);
      const hours = await chandler.backfill(HOURS);
      expect(hours.end).toEqual({ kind: 'done' });
      expect([...hours.refused.keys()]).toEqual(['interval']);
      expect(refusals()).toBe(2);
      const [first, second] = upstream.ohlcv();
      expect(second!.at - first!.at).toBeGreaterThan(70_000);
      expect((await chandler.session.quota.state()).hold).toBeNull();
      const days = await chandler.backfill(DAYS);
      expect(days.end).toEqual({ kind: 'done' });
      expect(days.totals!.byOutcome).toMatchObject({ stored: 3 });
      // No further request today. Tomorrow one request finds out whether it still holds.
      upstream.forget();
      expect((await (await world.open()).backfill(HOURS)).planned).toBe(0);
      expect(upstream.ohlcv()).toEqual([]);
      world.clock.advanceTo(world.clock.now() + DAY + HOUR);
      upstream.script = null;
      const tomorrow = await (await world.open()).backfill(HOURS);
      expect(tomorrow.refused.size).toBe(0);
      expect(tomorrow.totals!.byOutcome).toEqual({ stored: 3 });
    },
  );
});
