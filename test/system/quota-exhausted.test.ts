import { afterEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

const MONTH_RESET = Date.UTC(2026, 11, 1);
const WORK = {
  coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
  from: TODAY - 1_500 * DAY,
  to: TODAY - 3 * DAY,
  concurrency: 4,
  maxWaitMs: HOUR,
};
const CHUNKS = 3 * Math.ceil(1_497 / 366);
const SPENT = 'you have reached maximum request limit';

let world: World;
let upstream: ScriptedWorld['upstream'];
afterEach(() => world?.close());

async function make(options: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}
const accountAsked = () => upstream.log.filter((asked) => asked.path.endsWith('/users/me')).length;
const refusals = () => upstream.ohlcv().filter((asked) => asked.status === 402).length;
const account =
  (made: number, left: number, status = 'active', plan = 'ultimate') =>
  (request: Request) =>
    request.url.endsWith('/users/me')
      ? Response.json({
          plan,
          plan_started_at: '2026-01-01T00:00:00Z',
          plan_status: status,
          portal_url: null,
          usage: { message: '', current_month: { requests_made: made, requests_left: left } },
        })
      : null;

describe('402 "you have reached maximum request limit"', () => {
  const walls = async () => {
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    return row!.n;
  };

  test('with a key and budget left by /users/me is no spent month: the ledger goes on asking', async () => {
    await make({
      apiKey: 'k',
      speed: 50,
      simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    const me = account(10, 9_999_990);
    // One coin's oldest year is refused so; all else is answered.
    upstream.script = (request) =>
      request.url.includes('btc-bitcoin/ohlcv') &&
      Date.parse(new URL(request.url).searchParams.get('start')!) < TODAY - 1_480 * DAY
        ? says(402, SPENT)
        : me(request);
    const run = await chandler.backfill(WORK);
    expect(run.end).toEqual({ kind: 'done' });
    // The second one was asked for when no cache could repeat the first any more, and is believed.
    const [first, second, ...more] = upstream.ohlcv().filter((asked) => asked.status === 402);
    expect(more).toEqual([]);
    expect(second!.at - first!.at).toBeGreaterThan(70_000);
    expect([...run.refused.keys()]).toEqual(['plan wall']);
    expect(await walls()).toBe(1);
    expect((await chandler.session.quota.state()).hold).toBeNull();
    expect(await chandler.session.quota.take({ class: 'backfill', name: 'more' })).toMatchObject({ kind: 'granted' });
  });

  test.each(['ultimate', 'starter'] as const)(
    'once, with budget left by /users/me, is a stray one: asked again, and no wall (%s)',
    async (plan) => {
      // The wall that the documents of the smaller plan tell of is probed alone, and the probe meets the stray one.
      await make({
        apiKey: 'k',
        plan,
        speed: 50,
        simulator: { seed: 3, unlimited: true, limits: { keys: { k: plan }, overrides: { historyDepthMs: null } } },
      });
      const chandler = await world.open();
      const me = account(10, 9_999_990);
      let strays = 0;
      upstream.script = (request) =>
        request.url.includes('/ohlcv') && strays++ === 0 ? says(402, SPENT) : me(request);
      upstream.forget();
      const run = await chandler.backfill(WORK);
      expect(run.end).toEqual({ kind: 'done' });
      expect([run.refused.size, refusals(), await walls()]).toEqual([0, 1, 0]);
      expect(upstream.ohlcv()).toHaveLength(CHUNKS + 1);
      expect(run.totals).toMatchObject({ requests: CHUNKS + 1, byOutcome: { stored: CHUNKS, limited: 1 } });
    },
  );

  test('to everything at one moment, with budget left by /users/me, is one doubt: no wall of those in flight', async () => {
    await make({
      apiKey: 'k',
      speed: 50,
      simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    const me = account(10, 9_999_990);
    const held: (() => void)[] = [];
    // Four are on their way before the first of them is answered.
    upstream.script = (request) => {
      if (!request.url.includes('/ohlcv') || held.length === 4) return me(request);
      return new Promise((resolve) => {
        held.push(() => resolve(says(402, SPENT)));
        if (held.length === 4) for (const answer of held) answer();
      });
    };
    const run = await chandler.backfill({ ...WORK, coins: ['btc-bitcoin'] });
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.refused.size, refusals(), await walls()]).toEqual([0, 4, 0]);
  });

  test.each(['past_due', 'inactive'])(
    'to an account whose plan is %s holds everybody for a day: no wall',
    async (status) => {
      await make({ apiKey: 'k', simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } } });
      const chandler = await world.open({ plan: null });
      const me = account(10, 9_999_990, status);
      upstream.script = (request) => (request.url.includes('/ohlcv') ? says(402, SPENT) : me(request));
      upstream.forget();
      const run = await chandler.backfill(WORK);
      expect(run.end).toMatchObject({ kind: 'stopped', reason: 'spent' });
      expect(refusals()).toBeLessThanOrEqual(4);
      expect(await walls()).toBe(0);
      const { hold } = await chandler.session.quota.state();
      expect(hold!.message).toContain(`the plan of the account is ${status.replace('_', ' ')}`);
      expect(hold!.until).toBeLessThanOrEqual(TODAY + DAY + 60_000);
    },
  );

  test('met while Ctrl-C ends the run holds nobody', async () => {
    await make({ apiKey: 'k', simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } } });
    const stop = new AbortController();
    const chandler = await world.open({ plan: null, signal: stop.signal });
    upstream.script = (request) => {
      if (!request.url.includes('/ohlcv')) return account(10, 9_999_990)(request);
      stop.abort();
      return says(402, SPENT);
    };
    const run = await chandler.backfill({ ...WORK, signal: stop.signal });
    expect(run.end).toEqual({ kind: 'interrupted' });
    expect((await chandler.session.quota.state()).hold).toBeNull();
    expect(await walls()).toBe(0);
  });

  test('with none left by /users/me holds everybody until the month turns, and ends the run', async () => {
    await make({ apiKey: 'k', simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } } });
    const chandler = await world.open({ plan: null });
    const me = account(10_000_000, 0);
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, SPENT) : me(request));
    upstream.forget();
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'stopped' });
    expect(run.end.kind === 'stopped' && run.end.until).toBeGreaterThanOrEqual(MONTH_RESET);
    expect(refusals()).toBeLessThanOrEqual(4);
    expect(accountAsked()).toBe(1);
    // Whoever tries again before that asks nothing.
    upstream.forget();
    world.clock.advanceTo(NOW + 5 * HOUR);
    const again = await (await world.open({ plan: null })).backfill(WORK);
    expect(again.end.kind).toBe('stopped');
    expect(upstream.ohlcv()).toEqual([]);
    // A new month: everything is asked, by the one that goes first alone and then by all.
    world.clock.advanceTo(MONTH_RESET + 20 * 60_000);
    upstream.script = account(0, 10_000_000);
    const later = await world.open({ plan: null });
    const run2 = await later.backfill(WORK);
    expect(run2.end).toEqual({ kind: 'done' });
    expect(upstream.ohlcv()).toHaveLength(CHUNKS);
  });

  test('holds nobody any more, and no number is left of it, once the account has a plan without a limit', async () => {
    await make({ apiKey: 'k', simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } } });
    const chandler = await world.open({ plan: null });
    const lapsed = account(5_000, 9_995_000, 'past_due');
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, SPENT) : lapsed(request));
    expect((await chandler.backfill(WORK)).end).toMatchObject({ kind: 'stopped', reason: 'spent' });
    expect(await chandler.session.quota.state()).toMatchObject({ month: { limit: 10_000_000 } });
    upstream.script = account(-1, -1, 'active', 'enterprise');
    await chandler.session.check();
    const { month, hold } = await chandler.session.quota.state();
    expect([month.limit, hold]).toEqual([null, null]);
    // What was spent is not forgotten: the next plan may have a limit again.
    expect(month.spent).toBeGreaterThanOrEqual(5_000);
    expect((await (await world.open({ plan: null })).backfill(WORK)).end).toEqual({ kind: 'done' });
  });

  test('is not believed for a month when the account cannot be asked', async () => {
    await make({ apiKey: 'k', simulator: { seed: 3, unlimited: true, limits: { keys: { k: 'ultimate' } } } });
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

  test('without a key holds until the anonymous day turns', async () => {
    await make({
      plan: 'free',
      limits: { perDay: 1_000 },
      simulator: { seed: 3, unlimited: true },
    });
    const chandler = await world.open();
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, SPENT) : null);
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'spent' });
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
    'without a key holds nobody longer than to the end of the day, when no limit of a day is known (%s)',
    async (text) => {
      await make({ plan: 'free', simulator: { seed: 3, unlimited: true } });
      upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, text) : null);
      const run = await (await world.open()).backfill(WORK);
      expect(run.end).toMatchObject({ kind: 'stopped', reason: 'spent' });
      expect(run.end.kind === 'stopped' && run.end.until).toBeLessThan(TODAY + DAY + 60_000);
    },
  );

  test('to the list of coins is remembered as well', async () => {
    await make({ plan: 'free', limits: { perDay: 1_000 }, catalogue: false, simulator: { seed: 3, unlimited: true } });
    const { refreshCatalogue } = await import('../../src/ingest/snapshot/coin-list.ts');
    upstream.script = () => says(402, SPENT);
    const { session } = await world.open();
    const deps = { sendRequest: session.sendRequest, sql: world.database.sql, clock: world.clock };
    for (let i = 0; i < 3; i++) {
      const refresh = await refreshCatalogue(deps);
      expect(refresh).toMatchObject({ kind: 'held' });
      expect(refresh.kind === 'held' && refresh.until).toBeGreaterThanOrEqual(i === 0 ? NOW : TODAY + DAY);
    }
    expect(upstream.log).toHaveLength(1);
  });
});

describe('402 with a text nobody knows, asked without a key', () => {
  const PAID = 'This endpoint requires a paid plan';
  const HOURS = { ...WORK, interval: '1h' as const, from: TODAY - 2 * DAY, to: TODAY };
  const DAYS = { ...WORK, from: TODAY - 9 * DAY, to: TODAY };
  const refuseHours = (request: Request) => (request.url.includes('interval=1h') ? says(402, PAID) : null);
  const open = () =>
    make({ plan: 'free', speed: 50, limits: { perDay: 1_000 }, simulator: { seed: 3, coins: 40, unlimited: true } });

  test.each([PAID, 'payment required', 'Free tier rate limit reached, or this endpoint requires a paid plan'])(
    'to an interval that the plan does not document is a wall of that interval after the second; days are still given (%s)',
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
      // Not again today; tomorrow one request finds out whether it still stands.
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

  test('once, to anything the plan has, is a stray one', async () => {
    await open();
    let strays = 0;
    upstream.script = (request) =>
      request.url.includes('/ohlcv') && strays++ === 0 ? says(402, 'payment required') : null;
    const run = await (await world.open()).backfill(DAYS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.refused.size, refusals()]).toEqual([0, 1]);
    expect(run.totals!.byOutcome).toEqual({ stored: 3, limited: 1 });
  });

  test('to everything costs a handful of requests, however many coins there are', async () => {
    await make({ plan: 'ultimate', speed: 50, simulator: { seed: 3, coins: 40, unlimited: true } });
    const chandler = await world.open();
    const coins = (await world.simulator.data.coins()).map((coin) => coin.id);
    upstream.script = (request) => (request.url.includes('/ohlcv') ? says(402, 'payment required') : null);
    upstream.forget();
    const run = await chandler.backfill({ ...DAYS, coins });
    expect(run.end).toEqual({ kind: 'done' });
    // Eight in doubt and those in flight with them; then each refusal halves what is left of nine days.
    expect(refusals()).toBeLessThanOrEqual(8 + 4 + 4 * 5);
    expect((await chandler.session.quota.state()).hold).toBeNull();
  });

  test('is a spent day when the ledger is near its limit, but not for what the plan does not document', async () => {
    await make({ plan: 'free', speed: 50, limits: { perDay: 100 }, simulator: { seed: 3, unlimited: true } });
    const chandler = await world.open();
    for (let i = 0; i < 90; i++) await chandler.session.quota.take({ class: 'backfill', name: 'earlier' });
    upstream.script = refuseHours;
    const hours = await chandler.backfill({ ...HOURS, coins: ['btc-bitcoin'] });
    expect([...hours.refused.keys()]).toEqual(['interval']);
    upstream.script = (request) => (request.url.includes('/ohlcv') ? says(402, PAID) : null);
    // Today's candle lies inside what the free plan shows.
    const days = await chandler.backfill({ ...DAYS, coins: ['btc-bitcoin'], from: TODAY, to: TODAY + DAY });
    expect(days.end).toMatchObject({ kind: 'stopped', reason: 'spent' });
    expect((await chandler.session.quota.state()).hold!.until).toBeLessThan(TODAY + DAY + 60_000);
  });
});
