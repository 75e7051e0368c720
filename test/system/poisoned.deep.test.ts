/** Coins and upstreams that fail, rarer cases: many workers, few series, redirects, web pages. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { refreshCatalogue } from '../../src/ingest/snapshot/coin-list.ts';
import { says } from '../support/scripted.ts';
import { TODAY } from '../support/scripted-world.ts';
import { askedOf, HEALTHY, MINUTE, make, missing, POISONED, upstream, WORK, world } from './poisoned.ts';

/** The longest wait of each backoff. */
const LONGEST = () => 0;

afterEach(() => world?.close());

describe('a coin that the upstream does not know (404)', () => {
  const unknown = (request: Request) => (request.url.includes(`${POISONED}/ohlcv`) ? says(404, 'id not found') : null);

  test('costs many workers no more requests than are in flight at once, and is not taken for a wrong address', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = unknown;
    const run = await chandler.backfill({ ...WORK, concurrency: 24 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(askedOf(POISONED).length).toBeLessThanOrEqual(24);
    expect(await missing()).toEqual([`${POISONED} unknown coin`]);
  });

  test('is requested again after a day, because a gateway may have sent the 404', async () => {
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

  test('is not taken for a wrong address even when nothing else is requested', async () => {
    await make();
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = unknown;
    const run = await chandler.backfill({ ...WORK, coins: [POISONED], concurrency: 24 });
    expect(run.end).toEqual({ kind: 'done' });
    expect(askedOf(POISONED).length).toBeLessThanOrEqual(24);
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

  test('with 404 ends a run after ten coins as well; the next runs get past them, and request them again after a day', async () => {
    const coins = await makeMany();
    const dead = new Set(coins.slice(0, 16));
    const chandler = await world.open();
    upstream.script = (request) =>
      [...dead].some((coin) => request.url.includes(`${coin}/ohlcv`)) ? says(404, 'id not found') : null;
    const work = { ...MANY, coins, concurrency: 1 };
    const refused = { kind: 'configurationError', message: expect.stringContaining('10 series in a row') };
    expect((await chandler.backfill(work)).end).toMatchObject(refused);
    // From an upstream that has given no data yet, a 404 may be about the address.
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
    // Those that are still called unknown have no candle that would prove otherwise.
    expect((await unanswered()).length).toBeLessThan(dead.size / 2);
  });

  test('with 403 of the last few series is recorded for no series; a refusal with good answers after it is recorded', async () => {
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

describe('a coin on which the upstream always fails (500)', () => {
  const poison = (request: Request) =>
    request.url.includes(`${POISONED}/ohlcv`) ? says(500, 'An unexpected server error has occurred') : null;

  test('does not delay the others even when it is first and has many chunks, and then costs few requests', async () => {
    await make({ speed: 100 });
    const chandler = await world.open({ candlesPerRequest: 10 });
    upstream.script = poison;
    const run = await chandler.backfill({ ...WORK, coins: [POISONED, ...HEALTHY] });
    // It has sixty chunks, and so has each of the others, which are requested once.
    for (const coin of HEALTHY) expect(askedOf(coin)).toHaveLength(60);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.failed).toHaveLength(60);
    expect(await missing()).toEqual([`${POISONED} not asked yet`]);
    expect(askedOf(POISONED).length).toBeLessThanOrEqual(12);
    // The next run tries again with as few requests.
    upstream.script = null;
    expect((await chandler.backfill(WORK)).end).toEqual({ kind: 'done' });
    expect(await missing()).toEqual([]);
  });
});

describe('an upstream that is down', () => {
  test('is an outage for an account with former answers, whatever page it shows', async () => {
    await make({ speed: 40, random: LONGEST });
    const chandler = await world.open();
    const sent: number[] = [];
    upstream.script = ({ url }) => {
      if (url.includes('/ohlcv')) sent.push(world.clock.now());
      return new Response('<html><body>Welcome', { headers: { 'content-type': 'text/html' } });
    };
    const run = await chandler.backfill({ ...WORK, maxWaitMs: 5 * MINUTE });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'unavailable' });
    // Four failures in a row are an outage. When the fourth fails, each of the other workers may have one more in flight.
    const early = 4 + WORK.concurrency - 1;
    const waits = sent.slice(early).map((at, i) => at - sent[early + i - 1]!);
    // From then on one request finds out whether it is over, and each wait is twice the last one.
    for (const [i, wait] of waits.entries())
      expect(wait, `of ${waits.join(', ')}`).toBeGreaterThanOrEqual(1_000 * 2 ** i);
    expect(waits.length).toBeGreaterThan(0);
  });

  test('with a web page from time to time, or for a while, fails like any other', async () => {
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

describe('an endless redirect', () => {
  let n = 0;
  const around = () => new Response(null, { status: 302, headers: { location: `/v1/gate?n=${n++}` } });
  const isGate = (request: Request) => request.url.includes('/gate');

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

  test('of one coin is tried twice, whatever its number of chunks, and the others complete', async () => {
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

  test('is recorded by the ledger as a failure, as often as it happens', async () => {
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
