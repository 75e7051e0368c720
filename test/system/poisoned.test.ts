import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
import { TODAY } from '../support/scripted-world.ts';
import { ATTEMPTS, askedOf, HEALTHY, MINUTE, make, missing, POISONED, upstream, WORK, world } from './poisoned.ts';

afterEach(() => world?.close());

describe('a coin that the upstream does not know (404)', () => {
  const unknown = (request: Request) => (request.url.includes(`${POISONED}/ohlcv`) ? says(404, 'id not found') : null);

  test('costs one request however many chunks it has and is not requested again, and the others complete', async () => {
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
});

describe('a refusal of everything at once', () => {
  const MANY = { ...WORK, from: TODAY - 103 * DAY, concurrency: 8 };
  const makeMany = async () => {
    await make({ speed: 100, simulator: { seed: 3, coins: 40, unlimited: true } });
    return (await world.simulator.data.coins()).map((coin) => coin.id);
  };
  /** Some of so many coins are inactive, and have empty answers. */
  const unanswered = async () => (await missing()).filter((gap) => !gap.endsWith(' unconfirmed'));
  const noRoute = () => Response.json({ message: 'no Route matched with those values' }, { status: 404 });
  /** Answers as `answer` says after so many good answers. */
  const onceAnswered = (few: number, answer: () => Response) => (request: Request) =>
    request.url.includes('/ohlcv') && upstream.ohlcv().length > few ? answer() : null;

  test('by a gateway that knows no route, from the first request on, is a wrong address: no coin is called unknown', async () => {
    const coins = await makeMany();
    const chandler = await world.open();
    upstream.script = onceAnswered(0, noRoute);
    const run = await chandler.backfill({ ...MANY, coins });
    expect(run.end).toMatchObject({
      kind: 'configurationError',
      message: expect.stringContaining('CHANDLER_BASE_URL'),
    });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(8);
    upstream.script = null;
    expect((await (await world.open()).backfill({ ...MANY, coins })).end).toEqual({ kind: 'done' });
    expect(await unanswered()).toEqual([]);
  });

  test.each([
    [403, 'invalid api key'],
    [400, 'invalid parameters'],
  ])('with %i in the middle of a run ends it, and is recorded for no series', async (status, text) => {
    const coins = await makeMany();
    const chandler = await world.open();
    upstream.script = onceAnswered(5, () => says(status, text));
    const run = await chandler.backfill({ ...MANY, coins });
    expect(run.end).toMatchObject({
      kind: 'configurationError',
      message: expect.stringContaining('10 series in a row'),
    });
    expect(await world.database.sql`select * from market.refusal`).toEqual([]);
    upstream.script = null;
    expect((await (await world.open()).backfill({ ...MANY, coins })).end).toEqual({ kind: 'done' });
    expect(await unanswered()).toEqual([]);
  });
});

describe('a coin on which the upstream always fails (500)', () => {
  const poison = (request: Request) =>
    request.url.includes(`${POISONED}/ohlcv`) ? says(500, 'An unexpected server error has occurred') : null;

  test.each([1, 4])(
    'never delays the others, and its chunk is reported as failed (%i workers)',
    async (concurrency) => {
      await make({ speed: 100 });
      const chandler = await world.open();
      upstream.script = poison;
      const run = await chandler.backfill({ ...WORK, concurrency });
      expect(run.end).toEqual({ kind: 'done' });
      expect(new Set(run.failed.map((chunk) => chunk.coinId))).toEqual(new Set([POISONED]));
      expect(run.failed[0]!.message).toMatch(/500: An unexpected server error/);
      expect(await missing()).toEqual([`${POISONED} not asked yet`]);
      // Each of the others' chunks is requested once, before the two failing chunks could have had all their attempts.
      const coins = upstream.ohlcv().flatMap(({ path, coin }) => (path.endsWith('/ohlcv/historical') ? [coin] : []));
      expect(coins.filter((coin) => coin !== POISONED)).toHaveLength(2 * HEALTHY.length);
      const before = coins.slice(
        0,
        coins.findLastIndex((coin) => coin !== POISONED),
      );
      expect(before.filter((coin) => coin === POISONED).length).toBeLessThan(2 * ATTEMPTS);
    },
  );
});

describe('an upstream that is down', () => {
  test('gets few requests, and the run stops when it would wait longer than allowed; afterwards nothing is lost', async () => {
    await make({ speed: 200 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = () =>
      Promise.reject(Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }));
    upstream.forget();
    const run = await chandler.backfill({ ...WORK, maxWaitMs: 5 * MINUTE });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'unavailable' });
    expect(run.failed).toEqual([]);
    // Four to notice it, and then one at a time, each later than the last.
    expect(upstream.log.length).toBeLessThanOrEqual(4 + 3 + 9);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + 10 * MINUTE);
    expect((await (await world.open({ candlesPerRequest: 20 })).backfill(WORK)).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([]);
  });

  test('and shows web pages from the first request on is a wrong address, which one request finds out', async () => {
    await make({ catalogue: false });
    upstream.script = () => new Response('<html><body>Welcome', { headers: { 'content-type': 'text/html' } });
    const { refreshCatalogue } = await import('../../src/ingest/snapshot/coin-list.ts');
    const { session } = await world.open();
    await expect(
      refreshCatalogue({ sendRequest: session.sendRequest, sql: world.database.sql, clock: world.clock }),
    ).rejects.toThrow(/CHANDLER_BASE_URL does not answer like the market data API.*end in \/v1/);
    expect(upstream.log).toHaveLength(1);
  });
});

test('a redirect within the origin is followed by a second request, with the query of the new address', async () => {
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

describe('an endless redirect', () => {
  let n = 0;
  const around = () => new Response(null, { status: 302, headers: { location: `/v1/gate?n=${n++}` } });

  test('from an upstream that has answered nothing ends the run at its second try and names the address', async () => {
    await make();
    // For this account: the list of coins is read.
    await world.open();
    upstream.script = around;
    upstream.forget();
    const fresh = await world.open({ candlesPerRequest: 20 });
    const run = await fresh.backfill({ ...WORK, concurrency: 1 });
    expect(run.end).toMatchObject({
      kind: 'configurationError',
      message: expect.stringMatching(
        /^CHANDLER_BASE_URL does not .*redirected more than 3 times, last to \/v1\/gate\)/,
      ),
    });
    expect(upstream.log).toHaveLength(8);
  });
});
