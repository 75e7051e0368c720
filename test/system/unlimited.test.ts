/** An account without any limit: what is counted is exactly what is asked, and a pause or an outage stops everybody at once. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { oneAtATime } from '../../src/ingest/chunk/single-flight.ts';
import type { ChunkJob } from '../../src/ingest/queue/chunk-job.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { startBackfill } from '../../src/store/work/backfill.ts';
import { makeSeriesOf } from '../bench/prepared.ts';
import { fill } from '../support/fill.ts';
import { says } from '../support/scripted.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

const WORK = { coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'], from: TODAY - 2_003 * DAY, to: TODAY - 3 * DAY };
const SLOTS = 20;
const CONCURRENCY = 4;
const CHUNKS = 100;
/** Of some hundred turns. */
const MOST_LATE = 20;

let world: World;
let upstream: ScriptedWorld['upstream'];
afterEach(() => world?.close());

async function make(options?: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}

async function counted(): Promise<number> {
  const [row] = await world.database.sql<{ n: number; spent: number }[]>`
    select (select sum(month_spent)::int from ops.quota_spent) as n, (select month_spent::int from ops.quota) as spent`;
  expect(row!.spent).toBe(row!.n);
  return row!.n;
}

test('a coin that upstream does not know is asked about once, however many chunks are planned of it', async () => {
  await make();
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  upstream.script = (request) =>
    request.url.includes('eth-ethereum/ohlcv') ? Response.json({ error: 'id not found' }, { status: 404 }) : null;
  const run = await chandler.backfill({ ...WORK, concurrency: 1 });
  expect(run.end).toEqual({ kind: 'done' });
  expect(upstream.ohlcv().filter(({ path }) => path.includes('eth-ethereum'))).toHaveLength(1);
  expect(upstream.ohlcv()).toHaveLength(2 * CHUNKS + 1);
  expect(await counted()).toBe(upstream.log.length);
});

test.each([1, 5, 40])('an interrupted run has sent all that is counted (after %i requests)', async (requests) => {
  await make();
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  const stop = new AbortController();
  upstream.script = () => {
    if (upstream.ohlcv().length >= requests) stop.abort();
    return null;
  };
  const run = await chandler.backfill({ ...WORK, concurrency: CONCURRENCY, signal: stop.signal });
  expect(run.end).toEqual({ kind: 'interrupted' });
  expect(upstream.ohlcv().length).toBeLessThan(requests + CONCURRENCY);
  expect(await counted()).toBe(upstream.log.length);
});

test('an outage costs no more requests than there are workers and a few that look again', async () => {
  // Many: no series is to blame.
  await make({ simulator: { seed: 3, coins: 24, unlimited: true } });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  upstream.script = (request) =>
    request.url.includes('/ohlcv') && upstream.ohlcv().length > 200 ? says(500, 'down') : null;
  const coins = (await world.database.sql<{ id: string }[]>`select id from market.coin`).map(({ id }) => id);
  const run = await chandler.backfill({ ...WORK, coins, concurrency: CONCURRENCY, maxWaitMs: 3_000 });
  expect(run.end.kind).toBe('stopped');
  const failed = upstream.ohlcv().filter(({ status }) => status === 500);
  expect(failed.length).toBeGreaterThan(0);
  expect(failed.length).toBeLessThanOrEqual(2 * CONCURRENCY);
  expect(await counted()).toBe(upstream.log.length);
});

test('a pause that another process was asked for is heeded by the next take', async () => {
  await make();
  const [chandler, other] = [
    await world.open({ candlesPerRequest: SLOTS }),
    await world.open({ candlesPerRequest: SLOTS }),
  ];
  let toldAt = Number.POSITIVE_INFINITY;
  upstream.script = async (_, simulated, clock) => {
    if (upstream.ohlcv().length === 40) {
      const sentAt = clock.now();
      await other.session.quota.limited({ sentAt, retryAfterMs: 600_000, message: 'slowly' });
      toldAt = clock.now();
    }
    return simulated(_);
  };
  const run = await chandler.backfill({ ...WORK, concurrency: CONCURRENCY, maxWaitMs: 0 });
  expect(run.end).toMatchObject({ kind: 'stopped' });
  const late = upstream.ohlcv().filter(({ at }) => at > toldAt);
  // The others may have been granted theirs, and not have sent it.
  expect(late.length).toBeLessThan(CONCURRENCY);
  expect(await counted()).toBe(upstream.log.length);
});

test('a chunk that two workers of a process have in hand is asked once', async () => {
  await make();
  const { sql } = world.database;
  const { session } = await world.open();
  const span = { from: WORK.from, to: WORK.from + 5 * 366 * DAY };
  const [seriesId] = await makeSeriesOf(sql, ['btc-bitcoin'], '24h', span);
  const backfillId = await startBackfill(sql, {
    spec: {},
    span,
    interval: '24h',
    quote: 'usd',
    plannedRequests: 5,
    owner: 'here:1',
    requestedAt: NOW,
    startedAt: NOW,
  });
  const jobs = (): ChunkJob[] =>
    [0, 1, 2, 3, 4].map((i) => ({
      kind: 'backfill',
      backfillId,
      seriesId: seriesId!,
      coinId: 'btc-bitcoin',
      quote: 'usd',
      interval: '24h',
      from: span.from + i * 366 * DAY,
      to: span.from + (i + 1) * 366 * DAY,
      askedSince: NOW,
    }));
  const ingestChunk = oneAtATime(session.ingestChunk);
  const worker = async (chunks: readonly ChunkJob[]) => {
    for (const job of chunks) await ingestChunk(job);
  };
  await Promise.all([worker(jobs()), worker(jobs())]);
  expect(upstream.ohlcv()).toHaveLength(5);
  expect(await counted()).toBe(upstream.log.length);
});

test('whatever upstream answers, hardly a request is counted that was not sent', async () => {
  const faults = parseFaultSpec('429:0.02,500:0.02,reset:0.02,truncated:0.02,seed=5');
  if (!faults.ok) throw new Error(faults.problem);
  await make({ speed: 4, faults: () => faults.spec });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  await fill(world, chandler, { ...WORK, concurrency: CONCURRENCY });
  const { faults: injected } = world.simulator.counters();
  expect(injected['429']).toBeGreaterThan(0);
  expect(injected['500']).toBeGreaterThan(0);
  // At this speed a turn is late after a fraction of a second; it is lost then, and stays counted.
  const lost = (await counted()) - upstream.log.length;
  expect(lost).toBeGreaterThanOrEqual(0);
  expect(lost).toBeLessThanOrEqual(MOST_LATE);
});
