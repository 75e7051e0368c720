/** 402, rarer cases: accounts that are past due, single refusals, refusals of everything. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { GRACE_MS } from '../../src/quota/ledger.ts';
import { says } from '../support/scripted.ts';
import { NOW, TODAY } from '../support/scripted-world.ts';
import { account, make, refusals, SPENT, upstream, WORK, world } from './quota-exhausted.ts';

afterEach(() => world?.close());

describe('402 "you have reached maximum request limit"', () => {
  const limits = async () => {
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    return row!.n;
  };

  test('for everything at once, with budget left by /users/me, is one claim: those in flight teach no history limit', async () => {
    await make({
      apiKey: 'k',
      speed: 50,
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    const me = account(10, 9_999_990);
    const held: (() => void)[] = [];
    // Four are in flight before the first of them is answered.
    upstream.script = (request) => {
      if (!request.url.includes('/ohlcv') || held.length === 4) return me(request);
      return new Promise((resolve) => {
        held.push(() => resolve(says(402, SPENT)));
        if (held.length === 4) for (const answer of held) answer();
      });
    };
    const run = await chandler.backfill({ ...WORK, coins: ['btc-bitcoin'] });
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.refused.size, refusals(), await limits()]).toEqual([0, 4, 0]);
  });

  test.each(['past_due', 'inactive'])(
    'for an account whose plan is %s holds all requests for a day, and is no history limit',
    async (status) => {
      await make({
        apiKey: 'k',
        simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
      });
      const chandler = await world.open({ plan: null });
      const me = account(10, 9_999_990, status);
      upstream.script = (request) => (request.url.includes('/ohlcv') ? says(402, SPENT) : me(request));
      upstream.forget();
      const run = await chandler.backfill(WORK);
      expect(run.end).toMatchObject({ kind: 'stopped', reason: 'quota exhausted' });
      expect(refusals()).toBeLessThanOrEqual(4);
      expect(await limits()).toBe(0);
      const { hold } = await chandler.session.quota.state();
      expect(hold!.message).toContain(`the plan of the account is ${status.replace('_', ' ')}`);
      expect(hold!.until).toBeLessThanOrEqual(TODAY + DAY + 60_000);
    },
  );

  test('met while Ctrl-C ends the run holds no requests', async () => {
    await make({
      apiKey: 'k',
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
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
    expect(await limits()).toBe(0);
  });

  test('holds no requests any more, without a trace in the numbers, once the account has a plan without a limit', async () => {
    await make({
      apiKey: 'k',
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { keys: { k: 'ultimate' } } },
    });
    const chandler = await world.open({ plan: null });
    const lapsed = account(5_000, 9_995_000, 'past_due');
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(402, SPENT) : lapsed(request));
    expect((await chandler.backfill(WORK)).end).toMatchObject({ kind: 'stopped', reason: 'quota exhausted' });
    expect(await chandler.session.quota.state()).toMatchObject({ month: { limit: 10_000_000 } });
    upstream.script = account(-1, -1, 'active', 'enterprise');
    await chandler.session.check();
    const { month, hold } = await chandler.session.quota.state();
    expect([month.limit, hold]).toEqual([null, null]);
    // The spent requests are not forgotten: the next plan may have a limit again.
    expect(month.spent).toBeGreaterThanOrEqual(5_000);
    expect((await (await world.open({ plan: null })).backfill(WORK)).end).toEqual({ kind: 'done' });
  });

  test('for the list of coins is remembered as well', async () => {
    await make({
      plan: 'free',
      limits: { perDay: 1_000 },
      catalogue: false,
      simulator: { seed: 3, coins: 12, unlimited: true },
    });
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

describe('402 with an unknown text, for a request without a key', () => {
  const PAID = 'This endpoint requires a paid plan';
  const HOURS = { ...WORK, interval: '1h' as const, from: TODAY - 2 * DAY, to: TODAY };
  const DAYS = { ...WORK, from: TODAY - 9 * DAY, to: TODAY };
  const refuseHours = (request: Request) => (request.url.includes('interval=1h') ? says(402, PAID) : null);
  const open = () =>
    make({ plan: 'free', speed: 50, limits: { perDay: 1_000 }, simulator: { seed: 3, coins: 40, unlimited: true } });

  test('once, for anything that the plan has, is a stray one', async () => {
    await open();
    let strays = 0;
    upstream.script = (request) =>
      request.url.includes('/ohlcv') && strays++ === 0 ? says(402, 'payment required') : null;
    const run = await (await world.open()).backfill(DAYS);
    expect(run.end).toEqual({ kind: 'done' });
    expect([run.refused.size, refusals()]).toEqual([0, 1]);
    expect(run.totals!.byOutcome).toEqual({ stored: 3, limited: 1 });
  });

  test('for everything costs a few requests, however many coins there are', async () => {
    await make({ plan: 'ultimate', speed: 50, simulator: { seed: 3, coins: 40, unlimited: true } });
    const chandler = await world.open();
    const coins = (await world.simulator.data.coins()).map((coin) => coin.id);
    upstream.script = (request) => (request.url.includes('/ohlcv') ? says(402, 'payment required') : null);
    upstream.forget();
    const run = await chandler.backfill({ ...DAYS, coins });
    expect(run.end).toEqual({ kind: 'done' });
    // Eight that need a second opinion, and those in flight with them. Then each refusal halves what is left of nine days.
    expect(refusals()).toBeLessThanOrEqual(8 + 4 + 4 * 5);
    expect((await chandler.session.quota.state()).hold).toBeNull();
  });

  test('is an exhausted day when the ledger is near its limit, except for what the plan does not document', async () => {
    await make({
      plan: 'free',
      speed: 50,
      limits: { perDay: 100 },
      // The messages include the guard time at the end of the day.
      graceMs: GRACE_MS,
      simulator: { seed: 3, coins: 12, unlimited: true },
    });
    const chandler = await world.open();
    for (let i = 0; i < 90; i++) await chandler.session.quota.take({ class: 'backfill', name: 'earlier' });
    upstream.script = refuseHours;
    const hours = await chandler.backfill({ ...HOURS, coins: ['btc-bitcoin'] });
    expect([...hours.refused.keys()]).toEqual(['interval']);
    upstream.script = (request) => (request.url.includes('/ohlcv') ? says(402, PAID) : null);
    // The free plan gives the last full day.
    const days = await chandler.backfill({ ...DAYS, coins: ['btc-bitcoin'], from: TODAY - DAY, to: TODAY });
    expect(days.end).toMatchObject({ kind: 'stopped', reason: 'quota exhausted' });
    expect((await chandler.session.quota.state()).hold!.until).toBeLessThan(TODAY + DAY + 60_000);
  });
});
