/** Backfills that wait for a service: claimed, given back, taken over, against the simulator. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { type BackfillRunnerDeps, createBackfillRunner } from '../../../src/ingest/backfill/backfill-runner.ts';
import type { BackfillEndTold } from '../../../src/ingest/backfill/claim-end.ts';
import { auditGaps } from '../../../src/ingest/tracking/audit.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../../src/store/tracking/track-rule.ts';
import {
  changeBackfill,
  claimBackfill,
  prioritizeBackfill,
  queueBackfill,
} from '../../../src/store/work/backfill-queue.ts';
import { LEASE_EXPIRES_AFTER_MS } from '../../../src/store/work/lease.ts';
import { readBackfills } from '../../../src/views/operations/backfills.ts';
import { verifySeries } from '../../../src/views/operations/verify.ts';
import { testRedisUrl } from '../../support/database.ts';
import { createWorld, type World, type WorldOptions } from '../../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const SPAN = { from: NOW - 900.5 * DAY, to: NOW - 0.5 * DAY };
let world: World;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

async function open(options: WorldOptions = {}) {
  world = await createWorld({ startAt: NOW, simulator: { seed: 5, coins: 12, latencyMs: 20 }, ...options });
  // Reads the list of coins.
  return world.open();
}

async function record(coinIds: readonly string[], priority = 0): Promise<number> {
  const { sql } = world.database;
  const target = { coinIds, interval: '24h', quote: 'usd', span: SPAN } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  return queueBackfill(sql, { ...target, requestedAt: NOW, spec: { coinIds }, plannedRequests: 3, priority });
}

async function service(
  owner: string,
  {
    candlesPerRequest = null,
    ...more
  }: Partial<Pick<BackfillRunnerDeps, 'lookMs' | 'finishOf' | 'keep'>> & {
    readonly candlesPerRequest?: number | null;
  } = {},
) {
  const { session, queue } = await world.open({ candlesPerRequest });
  const ends: BackfillEndTold[] = [];
  const begun: number[] = [];
  const errors: Error[] = [];
  const runner = createBackfillRunner({
    sql: world.database.sql,
    clock: world.clock,
    queue,
    session,
    owner,
    concurrency: 2,
    finishOf: async () => NOW + DAY,
    onBegin: ({ id }) => begun.push(id),
    onEnd: (end) => ends.push(end),
    onChunk: () => undefined,
    onFailure: () => undefined,
    onError: (error) => errors.push(error),
    lookMs: 30,
    ...more,
  });
  closers.push(() => runner.stop());
  runner.start();
  return { runner, ends, begun, errors };
}

const stateOf = async (id: number) => (await readBackfills(world.database.sql, { all: true, id }))[0]!;
const until = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 60_000, interval: 20 });
const become = (id: number, state: string) => until(async () => expect((await stateOf(id)).state).toBe(state));
const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
async function otherCoins(count: number): Promise<string[]> {
  const rows = await world.database.sql<{ id: string }[]>`
    select id from market.coin where is_active and id <> all(${COINS}::text[]) order by rank limit ${count}`;
  return rows.map(({ id }) => id);
}

test('is worked off, the most urgent first, with what it cost and brought', async () => {
  await open();
  const [low, high] = [await record(['btc-bitcoin'], -5), await record(['eth-ethereum', 'ltc-litecoin'], 5)];
  const { begun, errors } = await service('a:1');
  await become(low, 'done');
  expect(begun).toEqual([high, low]);
  const done = await stateOf(high);
  expect(done).toMatchObject({ state: 'done', spent: 6, leftRequests: 0, owner: 'a:1', message: null, finishAt: null });
  expect(done.stored).toBeGreaterThan(1_500);
  expect(errors).toEqual([]);
});

test('says what is left of it from when it is planned, and never that nothing is before that', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 100 } });
  const id = await record(COINS);
  const left: (number | null)[] = [];
  const finishOf = async () => {
    left.push((await stateOf(id)).leftRequests);
    return NOW + DAY;
  };
  await service('a:1', { finishOf, lookMs: 1 });
  await become(id, 'done');
  // As recorded, as planned, and less and less.
  expect(left[0]).toBe(3);
  expect(Math.max(...left.map(Number))).toBe(9);
  expect(left.slice(0, left.indexOf(9))).not.toContain(0);
});

test('that is paused asks nothing more, and goes on where it was when it is resumed', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 150 } });
  const { sql } = world.database;
  const id = await record(COINS);
  const { ends } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  expect(await changeBackfill(sql, id, 'pause', NOW)).toBe('running');
  await until(() => expect(ends).toMatchObject([{ id, state: 'taken' }]));
  const { spent } = await stateOf(id);
  expect(spent).toBeLessThan(9);
  await world.clock.sleep(300);
  expect(await stateOf(id)).toMatchObject({ state: 'paused', spent });
  expect(await changeBackfill(sql, id, 'pause', NOW)).toBeNull();
  expect(await changeBackfill(sql, id, 'resume', NOW)).toBe('paused');
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ spent: 9 });
});

test('that is cancelled ends, and what it has brought stays', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 150 } });
  const { sql } = world.database;
  const id = await record(COINS);
  const { ends } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  await changeBackfill(sql, id, 'cancel', NOW);
  await until(() => expect(ends).toHaveLength(1));
  const { spent, stored, state, finishedAt } = await stateOf(id);
  expect({ state, finishedAt }).toEqual({ state: 'cancelled', finishedAt: NOW });
  expect(spent).toBeLessThan(9);
  expect(stored).toBeGreaterThan(0);
});

test('gives way to a more urgent one, and is gone on with afterwards', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 150 } });
  const { sql } = world.database;
  const id = await record(COINS);
  const { begun } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(0));
  const urgent = await record(await otherCoins(1));
  expect(await prioritizeBackfill(sql, urgent, 50)).toBe(true);
  await become(id, 'done');
  expect(begun).toEqual([id, urgent, id]);
  expect(await stateOf(id)).toMatchObject({ spent: 9 });
});

test('whose process died is taken over by another, and nothing is asked twice', async () => {
  await open();
  const { sql } = world.database;
  const id = await record(COINS);
  // Claimed, and never heard of again.
  expect(await claimBackfill(sql, { owner: 'dead:1', now: world.clock.now() })).toMatchObject({ id, coinIds: COINS });
  const { begun } = await service('b:2');
  await world.clock.sleep(200);
  expect(begun).toEqual([]);
  world.clock.advanceTo(world.clock.now() + LEASE_EXPIRES_AFTER_MS + 1_000);
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ owner: 'b:2', spent: 9 });
});

test('whose process is only slow may have two owners for a while: at most what was in hand is asked twice, and nothing else happens', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 150 } });
  const id = await record(COINS);
  // Its first sign of life is its last one.
  const slow = await service('a:1', { lookMs: 3_600_000 });
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  world.clock.advanceTo(world.clock.now() + LEASE_EXPIRES_AFTER_MS + 1_000);
  const second = await service('b:2');
  await until(() => expect(second.begun).toEqual([id]));
  await become(id, 'done');
  await until(() => expect(slow.ends).toHaveLength(1));
  const { owner, state, spent } = await stateOf(id);
  expect({ owner, state }).toEqual({ owner: 'b:2', state: 'done' });
  // Two are asked at once.
  expect(spent).toBeLessThanOrEqual(9 + 2);
  for await (const { differences } of verifySeries(world.database.sql, {}, world.clock.now()))
    expect(differences).toEqual([]);
  expect([...slow.errors, ...second.errors]).toEqual([]);
});

test('whose forecast cannot be made is no less alive: it stays with its owner', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 300 } });
  const id = await record(COINS);
  const finishOf = () => Promise.reject(new Error('no forecast'));
  const { begun, errors } = await service('a:1', { finishOf });
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  const claimedAt = (await stateOf(id)).startedAt!;
  world.clock.advanceTo(world.clock.now() + LEASE_EXPIRES_AFTER_MS + 1_000);
  await until(async () => {
    const [row] = await world.database.sql<{ at: number }[]>`
      select heartbeat_at as at from ops.backfill
      where id = ${id} and state = 'running'`;
    expect(row!.at).toBeGreaterThan(claimedAt + LEASE_EXPIRES_AFTER_MS);
  });
  await become(id, 'done');
  expect(begun).toEqual([id]);
  expect(errors.map(({ message }) => message)).toContain('no forecast');
});

test('of one stopped service is gone on with by the next', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 150 } });
  const id = await record(COINS);
  const first = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  await first.runner.stop();
  expect((await stateOf(id)).state).toBe('queued');
  await service('b:2');
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ owner: 'b:2', spent: 9 });
});

test('that the budget holds waits until then, with the reason, and lets others go before', async () => {
  await open({ limits: { perDay: 8 } });
  const id = await record(COINS);
  const { ends } = await service('a:1');
  await until(() => expect(ends).toHaveLength(1));
  const midnight = Date.UTC(2026, 10, 19);
  const held = await stateOf(id);
  expect(held).toMatchObject({ state: 'queued', message: 'day' });
  expect(held.waitUntil).toBeGreaterThanOrEqual(midnight);
  expect(held.waitUntil).toBeLessThan(midnight + 60_000);
  expect(held.leftRequests).toBeGreaterThan(0);
  world.clock.advanceTo(held.waitUntil! + 1_000);
  await become(id, 'done');
});

test('of which something has become too old to be kept asks for the rest of it', async () => {
  await open();
  const id = await record(['btc-bitcoin']);
  await service('a:1', { keep: { '24h': 100 * DAY } });
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ spent: 1 });
  const [row] = await world.database.sql<{ oldest: number }[]>`select min(open_time) as oldest from market.candle`;
  expect(row!.oldest).toBeGreaterThanOrEqual(NOW - 101 * DAY);
});

test('the audit makes one of what tracked series miss of their past, and only one', async () => {
  const { session } = await open();
  const { sql } = world.database;
  const term = { interval: '24h', quote: 'usd', since: SPAN.from, priority: 10, targetAgeMs: DAY } as const;
  await addTracks(sql, [{ tier: 'top', top: 3, ...term }], NOW);
  await applyTracks(sql, NOW);
  const { plan, walls } = session;
  const audit = () => auditGaps({ sql, clock: world.clock, plan, walls });
  const [id] = await audit();
  expect(id).toBeDefined();
  expect(await audit()).toEqual([]);
  await service('b:2');
  await become(id!, 'done');
  // What is younger than one request holds is kept by freshness.
  expect(await stateOf(id!)).toMatchObject({ priority: -10, coins: 3, spent: 6, requestedBy: 'the audit of gaps' });
  expect(await audit()).toEqual([]);
});

describe('one of the past that is cancelled', () => {
  const term = { interval: '24h', quote: 'usd', since: SPAN.from, priority: 10, targetAgeMs: DAY } as const;
  const track = async (top: number, keep = {}) => {
    const now = world.clock.now();
    await addTracks(world.database.sql, [{ tier: 'top', top, ...term }], now);
    await applyTracks(world.database.sql, now, keep);
  };
  async function cancelled(keep = {}) {
    const { session } = await open();
    const { clock, database } = world;
    await track(2, keep);
    const { plan, walls } = session;
    const audit = () => auditGaps({ sql: database.sql, clock, plan, walls, keep });
    const [id] = await audit();
    await changeBackfill(database.sql, id!, 'cancel', clock.now());
    clock.advanceTo(NOW + 3 * DAY);
    return audit;
  }

  test.each([
    ['another rule is added', 3],
    ['the rule is given again', 2],
  ])('stays so, until %s', async (_name, top) => {
    const audit = await cancelled();
    expect(await audit()).toEqual([]);
    await track(top);
    expect(await audit()).toHaveLength(1);
  });

  test('stays so, however much of it becomes too old to be kept', async () => {
    const keep = { '24h': 800 * DAY };
    const audit = await cancelled(keep);
    expect(await audit()).toEqual([]);
    // As when a partition is dropped.
    await world.database.sql`
      update market.series set wanted = wanted - tstzmultirange(tstzrange(null, ${NOW - 700 * DAY}))`;
    expect(await audit()).toEqual([]);
    await track(2, keep);
    expect(await audit()).toHaveLength(1);
  });
});

describe.each([
  ['Postgres', {}],
  ...(testRedisUrl() === null
    ? []
    : [['Redis', { engine: { kind: 'redis', url: testRedisUrl()! } } as const] as const]),
] as const)('with two processes, on %s', (_name, engine) => {
  /** Ten candles a request: ninety chunks a coin. Each has two in hand. */
  const small = { candlesPerRequest: 10 };
  const IN_HAND = 2 * 2;
  const openTwo = (perSecond: number) =>
    open({
      ...engine,
      queueName: randomUUID(),
      limits: { perSecond },
      simulator: { seed: 5, coins: 12, latencyMs: 5 },
    });
  const spentOf = async (id: number) => (await stateOf(id)).spent;

  /** What the others spend while this one spends from 40 to 120: then it has chunks for everybody in the queue. */
  async function spentBeside(id: number, other: number): Promise<number> {
    await until(async () => expect(await spentOf(id)).toBeGreaterThan(40));
    const before = await spentOf(other);
    await until(async () => expect(await spentOf(id)).toBeGreaterThan(120));
    return (await spentOf(other)) - before;
  }

  test('one that runs already has nothing more of the budget once a more urgent one has begun, and all of it afterwards', async () => {
    await openTwo(40);
    const low = await record(COINS.slice(0, 2), -10);
    const services = [await service('a:1', small), await service('b:2', small)];
    await until(async () => expect(await spentOf(low)).toBeGreaterThan(5));
    const high = await record(await otherCoins(2), 100);
    expect(await spentBeside(high, low)).toBeLessThanOrEqual(IN_HAND);
    expect((await stateOf(low)).state).not.toBe('done');
    await become(low, 'done');
    expect((await stateOf(high)).state).toBe('done');
    expect(services.flatMap(({ errors }) => errors)).toEqual([]);
  });

  test('one that is given another priority is worked off by that, wherever its chunks are', async () => {
    await openTwo(40);
    const [one, two] = [await record(COINS.slice(0, 2), 5), await record(await otherCoins(2), 0)];
    const services = [await service('a:1', small), await service('b:2', small)];
    await until(() => expect(new Set(services.flatMap(({ begun }) => begun))).toEqual(new Set([one, two])));
    await until(async () => expect(await spentOf(one)).toBeGreaterThan(5));
    expect(await spentOf(two)).toBeLessThanOrEqual(IN_HAND);
    expect(await prioritizeBackfill(world.database.sql, two, 50)).toBe(true);
    expect(await spentBeside(two, one)).toBeLessThanOrEqual(IN_HAND);
    expect((await stateOf(one)).state).not.toBe('done');
  });

  test('one that waits for the next day stands in nobody’s way', async () => {
    await openTwo(40);
    const { sql } = world.database;
    const high = await record(['btc-bitcoin'], 100);
    await sql`update ops.backfill set wait_until = ${NOW + DAY} where id = ${high}`;
    const low = await record(['eth-ethereum'], -10);
    await service('a:1', small);
    await service('b:2', small);
    await become(low, 'done');
    expect(await stateOf(high)).toMatchObject({ state: 'queued', spent: 0 });
  });
});
