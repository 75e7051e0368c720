import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { refreshCatalogue } from '../../src/ingest/snapshot/coin-list.ts';
import { says } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { WorldOptions } from '../support/world.ts';

const POISONED = 'btc-bitcoin';
const HEALTHY = ['eth-ethereum', 'ltc-litecoin'];
const WORK = { coins: [POISONED, ...HEALTHY], from: TODAY - 603 * DAY, to: TODAY - 3 * DAY, concurrency: 4 };
const MINUTE = 60_000;
/** Of a chunk. */
const ATTEMPTS = 8;

let world: ScriptedWorld['world'];
let upstream: ScriptedWorld['upstream'];
afterEach(() => world?.close());
async function make(options: WorldOptions = {}): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}
const askedOf = (coin: string) => upstream.ohlcv().filter((asked) => asked.coin === coin);
const missing = async () => {
  const rows = await world.database.sql<{ coinId: string; reason: string }[]>`
    select distinct coin_id, reason from market.gaps order by coin_id`;
  return rows.map((row) => `${row.coinId} ${row.reason}`);
};

describe('a coin that upstream does not know (404)', () => {
  const unknown = (request: Request) => (request.url.includes(`${POISONED}/ohlcv`) ? says(404, 'id not found') : null);

  test('costs one request however many chunks it has; the others complete; it is not asked again', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = unknown;
    const run = await chandler.backfill({ ...WORK, concurrency: 1 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.refused.get('unknown coin')?.message).toContain('id not found');
    expect(askedOf(POISONED)).toHaveLength(1);
    for (const coin of HEALTHY) expect(askedOf(coin).length).toBeGreaterThan(20);
    expect(await missing()).toEqual([`${POISONED} unknown coin`]);
    const [refusal] = await world.database.sql`
      select f.outcome, f.status, f.message = r.message as same from market.refusal r join ops.fetch f on f.id = r.fetch_id`;
    expect(refusal).toEqual({ outcome: 'unknown id', status: 404, same: true });
    expect((await chandler.backfill(WORK)).planned).toBe(0);
    expect(askedOf(POISONED)).toHaveLength(1);
  });

  test('with many workers costs no more than are under way at once, and is not taken for a wrong address', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = unknown;
    const run = await chandler.backfill({ ...WORK, concurrency: 24 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(askedOf(POISONED).length).toBeLessThanOrEqual(24);
    expect(await missing()).toEqual([`${POISONED} unknown coin`]);
  });

  test('is asked about again after a day: it may have been a gateway that said so', async () => {
    await make();
    const chandler = await world.open();
    upstream.script = unknown;
    await chandler.backfill(WORK);
    const [shown] = await world.database.sql<{ nextAskAt: number; refusedAt: number }[]>`
      select g.next_ask_at, r.refused_at from market.gaps g, market.refusal r where g.coin_id = ${POISONED}`;
    expect(shown!.nextAskAt).toBe(shown!.refusedAt + DAY);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + DAY);
    expect((await chandler.backfill(WORK)).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([]);
  });

  test('even when nothing else is asked for', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = unknown;
    const run = await chandler.backfill({ ...WORK, coins: [POISONED], concurrency: 24 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(askedOf(POISONED).length).toBeLessThanOrEqual(24);
  });
});

describe('everything refused at once', () => {
  const MANY = { ...WORK, from: TODAY - 103 * DAY, concurrency: 8 };
  const makeMany = async () => {
    await make({ speed: 100, simulator: { seed: 3, coins: 40, unlimited: true } });
    return (await world.simulator.data.coins()).map((coin) => coin.id);
  };
  /** Some of so many coins are dead, and answered empty. */
  const unanswered = async () => (await missing()).filter((gap) => !gap.endsWith(' unconfirmed'));
  const noRoute = () => Response.json({ message: 'no Route matched with those values' }, { status: 404 });
  /** Answered as `answer` says when so many have been answered well. */
  const onceAnswered = (few: number, answer: () => Response) => (request: Request) =>
    request.url.includes('/ohlcv') && upstream.ohlcv().length > few ? answer() : null;

  test('by a gateway that knows no route, from the first request on, is a wrong address: no coin is called unknown', async () => {
    const coins = await makeMany();
    const chandler = await world.open();
    upstream.script = onceAnswered(0, noRoute);
    const run = await chandler.backfill({ ...MANY, coins });
    expect(run.end).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining('CHANDLER_BASE_URL') });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(8);
    upstream.script = null;
    expect((await (await world.open()).backfill({ ...MANY, coins })).end).toEqual({ kind: 'done' });
    expect(await unanswered()).toEqual([]);
  });

  test('by a gateway that knows no route, in the middle of a run, is an outage', async () => {
    const coins = await makeMany();
    const chandler = await world.open();
    upstream.script = onceAnswered(5, noRoute);
    const run = await chandler.backfill({ ...MANY, coins, maxWaitMs: 5 * MINUTE });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'unavailable' });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(5 + 8 + 3 + 9);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + 10 * MINUTE);
    expect((await (await world.open()).backfill({ ...MANY, coins })).end).toEqual({ kind: 'done' });
    expect(await unanswered()).toEqual([]);
  });

  test.each([
    [403, 'invalid api key'],
    [400, 'invalid parameters'],
  ])('with %i in the middle of a run ends it, and is held against no series', async (status, text) => {
    const coins = await makeMany();
    const chandler = await world.open();
    upstream.script = onceAnswered(5, () => says(status, text));
    const run = await chandler.backfill({ ...MANY, coins });
    expect(run.end).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining('10 series in a row') });
    expect(await world.database.sql`select * from market.refusal`).toEqual([]);
    upstream.script = null;
    expect((await (await world.open()).backfill({ ...MANY, coins })).end).toEqual({ kind: 'done' });
    expect(await unanswered()).toEqual([]);
  });

  test('with 404 ends it as well, but each run gets past ten of them, and after a day they are asked about again', async () => {
    const coins = await makeMany();
    const dead = new Set(coins.slice(0, 16));
    const chandler = await world.open();
    upstream.script = (request) =>
      [...dead].some((coin) => request.url.includes(`${coin}/ohlcv`)) ? says(404, 'id not found') : null;
    const work = { ...MANY, coins, concurrency: 1 };
    const refused = { kind: 'misconfigured', message: expect.stringContaining('10 series in a row') };
    expect((await chandler.backfill(work)).end).toMatchObject(refused);
    // From an upstream that has given nothing yet it may be about the address.
    expect(await world.database.sql`select from market.refusal`).toEqual([]);
    expect((await chandler.backfill({ ...work, coins: coins.slice(20, 25) })).end).toEqual({ kind: 'done' });
    expect((await chandler.backfill(work)).end).toMatchObject(refused);
    expect((await chandler.backfill(work)).end).toEqual({ kind: 'done' });
    expect(new Set(await unanswered())).toEqual(new Set([...dead].map((coin) => `${coin} unknown coin`)));
    expect(upstream.ohlcv().filter(({ coin }) => coin !== null && dead.has(coin))).toHaveLength(10 + dead.size);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + DAY);
    expect((await chandler.backfill(work)).end).toEqual({ kind: 'done' });
    for (const coin of dead) expect(askedOf(coin).length, coin).toBeGreaterThan(1);
    // Those that are still called unknown have no candle that would say otherwise.
    expect((await unanswered()).length).toBeLessThan(dead.size / 2);
  });

  test('with 403, when fewer than ten series are left, is not kept either; one with others answered after it is', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 100 });
    upstream.script = onceAnswered(15, () => says(403, 'invalid api key'));
    const run = await chandler.backfill({ ...WORK, concurrency: 1 });
    expect(run.end).toEqual({ kind: 'done' });
    expect([...run.refused.keys()]).toEqual(['forbidden']);
    expect(new Set((await missing()).map((gap) => gap.split(' ').slice(1).join(' ')))).toEqual(
      new Set(['not asked yet']),
    );
    upstream.script = (request) => (request.url.includes(`${POISONED}/ohlcv`) ? says(403, 'not today') : null);
    const later = { ...WORK, from: WORK.from - 1_200 * DAY };
    expect((await chandler.backfill({ ...later, concurrency: 1 })).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([`${POISONED} forbidden`]);
  });
});

describe('a coin that upstream always fails on (500)', () => {
  const poison = (request: Request) =>
    request.url.includes(`${POISONED}/ohlcv`) ? says(500, 'An unexpected server error has occurred') : null;

  test.each([1, 4])(
    'never holds up the others, and its chunk is reported as failed (%i workers)',
    async (concurrency) => {
      await make({ speed: 100 });
      const chandler = await world.open();
      upstream.script = poison;
      const run = await chandler.backfill({ ...WORK, concurrency });
      expect(run.end).toEqual({ kind: 'done' });
      expect(new Set(run.failed.map((chunk) => chunk.coinId))).toEqual(new Set([POISONED]));
      expect(run.failed[0]!.message).toMatch(/500: An unexpected server error/);
      expect(await missing()).toEqual([`${POISONED} not asked yet`]);
      // Each of theirs is asked once, and before its two chunks could have had all of their attempts.
      const coins = upstream.ohlcv().map((asked) => asked.coin);
      expect(coins.filter((coin) => coin !== POISONED)).toHaveLength(2 * HEALTHY.length);
      const before = coins.slice(
        0,
        coins.findLastIndex((coin) => coin !== POISONED),
      );
      expect(before.filter((coin) => coin === POISONED).length).toBeLessThan(2 * ATTEMPTS);
    },
  );

  test('does not even when it is first and has many chunks, and then costs few requests', async () => {
    await make({ speed: 100 });
    const chandler = await world.open({ candlesPerRequest: 10 });
    upstream.script = poison;
    const run = await chandler.backfill({ ...WORK, coins: [POISONED, ...HEALTHY] });
    // Sixty chunks of it, and sixty of each of the others, which are asked once.
    for (const coin of HEALTHY) expect(askedOf(coin)).toHaveLength(60);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.failed).toHaveLength(60);
    expect(await missing()).toEqual([`${POISONED} not asked yet`]);
    expect(askedOf(POISONED).length).toBeLessThanOrEqual(20);
    // The next run tries again, as modestly.
    upstream.script = null;
    expect((await chandler.backfill(WORK)).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([]);
  });
});

describe('an upstream that is down', () => {
  test('is asked few times, and the run stops when it would wait longer than allowed; afterwards nothing is lost', async () => {
    await make({ speed: 200 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = () =>
      Promise.reject(Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }));
    upstream.forget();
    const run = await chandler.backfill({ ...WORK, maxWaitMs: 5 * MINUTE });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'unavailable' });
    expect(run.failed).toEqual([]);
    // Four to see it, and then one at a time, each later than the last.
    expect(upstream.log.length).toBeLessThanOrEqual(4 + 3 + 9);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + 10 * MINUTE);
    expect((await (await world.open({ candlesPerRequest: 20 })).backfill(WORK)).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([]);
  });

  test('and answers with web pages from the first request on is a wrong address, told after one', async () => {
    await make({ catalogue: false });
    upstream.script = () => new Response('<html><body>Welcome', { headers: { 'content-type': 'text/html' } });
    const { refreshCatalogue } = await import('../../src/ingest/snapshot/coin-list.ts');
    const { session } = await world.open();
    await expect(
      refreshCatalogue({ sendRequest: session.sendRequest, sql: world.database.sql, clock: world.clock }),
    ).rejects.toThrow(/CHANDLER_BASE_URL does not answer like the market data API.*end in \/v1/);
    expect(upstream.log).toHaveLength(1);
  });

  test('also when the list of coins is known already', async () => {
    await make();
    const chandler = await world.open();
    upstream.script = () => new Response('<html><body>Welcome', { headers: { 'content-type': 'text/html' } });
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining('CHANDLER_BASE_URL') });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(4);
  });

  test('but a web page from time to time, or for a while, is trouble like any other', async () => {
    await make({ speed: 100 });
    const chandler = await world.open({ candlesPerRequest: 60 });
    let n = 0;
    upstream.script = (request) =>
      request.url.includes('ohlcv') && ++n > 3 && n < 12
        ? new Response('<html><body>Maintenance', { headers: { 'content-type': 'text/html' } })
        : null;
    expect((await chandler.backfill(WORK)).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([]);
  });
});

test('a redirect within the origin is followed by a second request, with the query of the address that it names', async () => {
  await make();
  const chandler = await world.open();
  const followed: string[] = [];
  const moved = `/v1/moved/ohlcv?token=a%2Fb%26c&start=${encodeURIComponent('2024-01-01T00:00:00Z')}&n=1`;
  let original: Request | null = null;
  upstream.script = (request, simulated) => {
    const url = new URL(request.url);
    if (url.pathname.startsWith('/v1/moved')) {
      followed.push(url.pathname + url.search);
      return simulated(original!);
    }
    if (original !== null || !request.url.includes(`${POISONED}/ohlcv`)) return null;
    original = request;
    return new Response(null, { status: 307, headers: { location: moved } });
  };
  const run = await chandler.backfill({ ...WORK, concurrency: 1 });
  expect(run.end).toEqual({ kind: 'done' });
  expect(run.failed).toEqual([]);
  expect(followed).toEqual([moved]);
  expect(await missing()).toEqual([]);
});

describe('a redirect without an end', () => {
  let n = 0;
  const around = () => new Response(null, { status: 302, headers: { location: `/v1/gate?n=${n++}` } });
  const isGate = (request: Request) => request.url.includes('/gate');

  test('from an upstream that has answered nothing ends the run at its second try and names the address', async () => {
    await make();
    // Of this account; the list of coins is read.
    await world.open();
    upstream.script = around;
    upstream.forget();
    const fresh = await world.open({ candlesPerRequest: 20 });
    const run = await fresh.backfill({ ...WORK, concurrency: 1 });
    expect(run.end).toMatchObject({
      kind: 'misconfigured',
      message: expect.stringMatching(
        /^CHANDLER_BASE_URL does not .*redirected more than 3 times, last to \/v1\/gate\)/,
      ),
    });
    expect(upstream.log).toHaveLength(8);
  });

  test('of the list of coins is tried twice as well', async () => {
    await make({ catalogue: false });
    const chandler = await world.open();
    upstream.script = around;
    const { sendRequest } = chandler.session;
    await expect(refreshCatalogue({ sendRequest, sql: world.database.sql, clock: world.clock })).rejects.toThrow(
      /CHANDLER_BASE_URL/,
    );
    expect(upstream.log).toHaveLength(8);
  });

  test('of one coin is tried twice, whatever number of chunks it has; the others complete', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = (request) => (request.url.includes(`${POISONED}/ohlcv`) || isGate(request) ? around() : null);
    upstream.forget();
    const run = await chandler.backfill({ ...WORK, concurrency: 1 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.failed.every((f) => f.coinId === POISONED && f.message.includes('redirected more than 3 times'))).toBe(
      true,
    );
    expect(askedOf(POISONED)).toHaveLength(2);
    expect(upstream.log.filter((asked) => asked.path === '/v1/gate')).toHaveLength(6);
    for (const coin of HEALTHY) expect(askedOf(coin).length).toBeGreaterThan(20);
  });

  test('is a failure to the ledger, as often as it happens', async () => {
    await make({ catalogue: false });
    const chandler = await world.open();
    upstream.script = around;
    const asking = { spender: { class: 'backfill', name: 'b' }, record: { endpoint: 'ohlcv' } } as const;
    await chandler.session.sendRequest({ path: '/coins/x/ohlcv/historical' }, asking);
    await chandler.session.sendRequest({ path: '/coins/x/ohlcv/historical' }, asking).catch(() => undefined);
    expect(await world.database.sql`select down_streak::int from ops.quota`).toEqual([{ downStreak: 2 }]);
    expect((await chandler.session.quota.state()).day.spent).toBe(8);
  });
});
