/** An account without any limit: an outage, and faults of all kinds. */
import { afterEach, expect, test } from 'vitest';
import { MINUTE } from '../../src/core/interval.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';
import { fill } from '../support/fill.ts';
import { says } from '../support/scripted.ts';
import { until } from '../support/until.ts';
import { CONCURRENCY, counted, MOST_LATE, make, SLOTS, upstream, WORK, world } from './unlimited.ts';

afterEach(() => world?.close());

/** So many failures in a row are an outage. */
const NOTICED_AFTER = 4;
/** The second wait is twice as long as the first. */
const LEAST_WAITS_MS = [500, 1_000];
const MOST_WAIT_MS = 10 * MINUTE;

test('an outage costs no more requests than one for each worker and a few that probe', async () => {
  // So many coins that no single series is to blame.
  await make({ simulator: { seed: 3, coins: 24, unlimited: true } });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  const { sql } = world.database;
  const isDown = (request: Request) => request.url.includes('/ohlcv') && upstream.ohlcv().length > 200;
  const streak = async () => (await sql<{ streak: number }[]>`select down_streak as streak from ops.quota`)[0]!.streak;
  const failed = () => upstream.ohlcv().slice(200);
  /** Requests in flight: each answers one with a failure. */
  const inFlight: (() => void)[] = [];
  upstream.script = (request) =>
    isDown(request) ? new Promise((resolve) => inFlight.push(() => resolve(says(500, 'down')))) : null;
  const coins = (await sql<{ id: string }[]>`select id from market.coin`).map(({ id }) => id);
  let denials = 0;
  const run = chandler.backfill({
    ...WORK,
    coins,
    concurrency: CONCURRENCY,
    maxWaitMs: MOST_WAIT_MS,
    onProgress: ({ waiting }) => {
      if (waiting?.reason === 'unavailable') denials++;
    },
  });

  /** Answers one request. Resolves when its failure is counted, to the instant of the answer. */
  const failOne = async () => {
    const before = await streak();
    const at = world.clock.now();
    inFlight.shift()!();
    await until(async () => (await streak()) > before);
    return at;
  };
  // The order that costs most: all workers have sent their next request before each failure is counted.
  let failedAt = 0;
  for (let i = 0; i < NOTICED_AFTER; i++) {
    await until(() => inFlight.length === CONCURRENCY);
    failedAt = await failOne();
  }
  // Now it is an outage: the worker of the last failure sends nothing.
  await until(() => denials > 0 || inFlight.length === CONCURRENCY);
  const burst = NOTICED_AFTER - 1 + CONCURRENCY;
  expect(failed()).toHaveLength(burst);
  for (const fail of inFlight.splice(0)) fail();
  for (const [looks, leastMs] of LEAST_WAITS_MS.entries()) {
    await until(() => inFlight.length > 0);
    // The other workers ask for a permit while the answer to this look is awaited.
    const before = denials;
    await until(() => denials >= before + CONCURRENCY || inFlight.length > 1);
    expect(failed()).toHaveLength(burst + looks + 1);
    expect(failed().at(-1)!.at - failedAt).toBeGreaterThanOrEqual(leastMs);
    failedAt = await failOne();
  }
  upstream.script = (request) => (isDown(request) ? says(500, 'down') : null);
  world.clock.advanceTo(failedAt + MOST_WAIT_MS);
  expect((await run).end.kind).toBe('stopped');
  // Before the run ends, one more may look.
  expect(failed().length).toBeLessThanOrEqual(burst + LEAST_WAITS_MS.length + 1);
  expect(await counted()).toBe(upstream.log.length);
});

test('a run with a short --max-wait goes on when the upstream is back, although its other workers wait for the probe', async () => {
  await make({ simulator: { seed: 3, coins: 24, unlimited: true } });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  const { sql } = world.database;
  let isDown = true;
  let release: (() => void) | undefined;
  const probe = new Promise<void>((resolve) => {
    release = resolve;
  });
  let failures = 0;
  let probeAt = Number.POSITIVE_INFINITY;
  const answerInOutage = async (request: Request, simulated: FetchFunction) => {
    const [row] = await sql<{ probe: string | null }[]>`select probe from ops.quota`;
    if (row!.probe === null) {
      failures++;
      return says(500, 'down');
    }
    // The upstream is back, and answers slowly.
    probeAt = world.clock.now();
    await probe;
    isDown = false;
    return simulated(request);
  };
  upstream.script = (request, simulated) =>
    isDown && request.url.includes('/ohlcv') ? answerInOutage(request, simulated) : null;
  const { end } = await chandler.backfill({
    ...WORK,
    coins: (await sql<{ id: string }[]>`select id from market.coin`).map(({ id }) => id),
    concurrency: CONCURRENCY,
    maxWaitMs: 20_000,
    onProgress: ({ waiting }) => {
      // Another worker waits for the probe, too.
      if (waiting?.reason === 'unavailable' && waiting.until > probeAt) release?.();
    },
  });
  expect(end.kind).toBe('done');
  expect(failures).toBeGreaterThanOrEqual(NOTICED_AFTER);
});

test('hardly a request is counted that was not sent, whatever the upstream answers', async () => {
  const faults = parseFaultSpec('429:0.02,500:0.02,reset:0.02,truncated:0.02,seed=5');
  if (!faults.ok) throw new Error(faults.problem);
  await make({ speed: 4, faults: () => faults.spec });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  await fill(world, chandler, { ...WORK, concurrency: CONCURRENCY });
  const { faults: injected } = world.simulator.counters();
  expect(injected['429']).toBeGreaterThan(0);
  expect(injected['500']).toBeGreaterThan(0);
  // At this speed a permit is late after a fraction of a second. Then it is lost, and stays counted.
  const lost = (await counted()) - upstream.log.length;
  expect(lost).toBeGreaterThanOrEqual(0);
  expect(lost).toBeLessThanOrEqual(MOST_LATE);
});
