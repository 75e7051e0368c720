/** Backfills that wait for a service, the rarer cases: slow processes, forecasts that fail, changed priorities on both engines. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { auditGaps, refreshedFrom } from '../../../src/ingest/tracking/audit.ts';
import { changeBackfill, prioritizeBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../../src/store/tracking/track-rule.ts';
import { LEASE_EXPIRES_AFTER_MS } from '../../../src/store/work/lease.ts';
import { verifySeries } from '../../../src/views/operations/verify.ts';
import { testRedisUrl } from '../../support/database.ts';
import {
  answering,
  become,
  COINS,
  closers,
  IN_HAND,
  NOW,
  open,
  openTwo,
  otherCoins,
  record,
  SMALL,
  SPAN,
  service,
  spentBeside,
  spentOf,
  stateOf,
  testMoreUrgent,
  until,
  withdrawn,
  world,
} from './backfill-runner.ts';

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

test('a backfill shows what is left of it from the time it is planned, and never shows nothing left before that', async () => {
  const { fetch, answerAll } = answering(0);
  await open({ fetch });
  const id = await record(COINS);
  const left: (number | null)[] = [];
  const finishOf = async () => {
    left.push((await stateOf(id)).leftRequests);
    return null;
  };
  await service('a:1', { finishOf, lookMs: 1 });
  await until(() => expect(left).toContain(9));
  answerAll();
  await become(id, 'done');
  // As recorded, as planned, and then decreasing.
  expect(left[0]).toBe(3);
  expect(Math.max(...left.map(Number))).toBe(9);
  expect(left.slice(0, left.indexOf(9))).not.toContain(0);
});

test('a cancelled backfill ends, and the candles it has brought stay', async () => {
  const { fetch, answerAll } = answering(2);
  await open({ fetch });
  const { sql } = world.database;
  const id = await record(COINS);
  const { ends } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  await changeBackfill(sql, id, 'cancel', NOW);
  await withdrawn();
  answerAll();
  await until(() => expect(ends).toHaveLength(1));
  const { spent, stored, state, finishedAt } = await stateOf(id);
  expect({ state, finishedAt }).toEqual({ state: 'cancelled', finishedAt: NOW });
  expect(spent).toBeLessThan(9);
  expect(stored).toBeGreaterThan(0);
});

test('a backfill of a slow process may have two owners for a while: only the chunks in progress are requested twice', async () => {
  const { fetch, answerAll } = answering(2);
  await open({ fetch });
  const id = await record(COINS);
  // It renews its claim once, and never again.
  const slow = await service('a:1', { lookMs: 3_600_000 });
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  world.clock.advanceTo(world.clock.now() + LEASE_EXPIRES_AFTER_MS + 1_000);
  const second = await service('b:2');
  await until(() => expect(second.begun).toEqual([id]));
  answerAll();
  await become(id, 'done');
  await until(() => expect(slow.ends).toHaveLength(1));
  const { owner, state, spent } = await stateOf(id);
  expect({ owner, state }).toEqual({ owner: 'b:2', state: 'done' });
  // Two chunks are in progress at once.
  expect(spent).toBeLessThanOrEqual(9 + 2);
  for await (const { differences } of verifySeries(world.database.sql, {}, world.clock.now()))
    expect(differences).toEqual([]);
  expect([...slow.errors, ...second.errors]).toEqual([]);
});

test('a backfill whose forecast fails stays with its owner', async () => {
  const { fetch, answerAll } = answering(2);
  await open({ fetch });
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
  answerAll();
  await become(id, 'done');
  expect(begun).toEqual([id]);
  expect(errors.map(({ message }) => message)).toContain('no forecast');
});

test('the backfill of a stopped service is continued by the next service', async () => {
  const { fetch, answerAll } = answering(2);
  await open({ fetch });
  const id = await record(COINS);
  const first = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  const stopped = first.runner.stop();
  answerAll();
  await stopped;
  expect((await stateOf(id)).state).toBe('queued');
  await service('b:2');
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ owner: 'b:2', spent: 9 });
});

test('a backfill of a coin that the upstream always fails on fails in the end, although each run waits a minute at most', async () => {
  const speed = 100;
  const asked: string[] = [];
  await open({
    speed,
    fetch: (simulated) => async (request) => {
      const { pathname } = new URL(request.url);
      if (!pathname.includes('/btc-bitcoin/ohlcv')) return simulated(request);
      asked.push(pathname);
      return Response.json({ error: 'An unexpected server error' }, { status: 500 });
    },
  });
  const id = await record(['btc-bitcoin']);
  // As after an outage: from the first failure on, every request waits for minutes.
  await world.database.sql`update ops.quota set down_streak = 12`;
  const { ends } = await service('a:1', { lookMs: 2_000, realMs: (ms) => ms / speed });
  await until(async () => {
    world.clock.advanceTo(ends.at(-1)?.waitUntil ?? 0);
    expect((await stateOf(id)).state).toBe('failed');
  });
  expect(ends.length).toBeGreaterThan(1);
  expect(ends.slice(0, -1).map(({ state, message }) => [state, message])).toEqual(
    ends.slice(1).map(() => ['queued', 'unavailable']),
  );
  // Two workers may each have one request under way when the eighth fails.
  expect(asked.length).toBeLessThanOrEqual(8 + 2);
});

test('a backfill whose slots a more urgent one takes over has nothing left of its own meanwhile', async () => {
  const { fetch, answer, answerAll } = answering(1);
  await open({ fetch });
  const { sql } = world.database;
  const id = await record(COINS);
  const { begun } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(0));
  const urgent = await record(COINS);
  expect(await prioritizeBackfill(sql, urgent, 50)).toBe(true);
  await withdrawn();
  answer(2);
  await until(() => expect(begun).toEqual([id, urgent]));
  expect(await stateOf(id)).toMatchObject({ state: 'queued', leftRequests: 0, message: 'another backfill' });
  answerAll();
  await become(id, 'done');
  await become(urgent, 'done');
  expect((await stateOf(id)).spent + (await stateOf(urgent)).spent).toBe(9);
});

describe('a cancelled backfill of the past of tracked series', () => {
  const term = { interval: '24h', quote: 'usd', since: SPAN.from, priority: 10, targetAgeMs: DAY } as const;
  const track = async (top: number, keep = {}) => {
    const now = world.clock.now();
    await addTracks(world.database.sql, [{ tier: 'top', top, ...term }], now);
    await applyTracks(world.database.sql, now, keep);
  };
  async function cancelled(keep = {}) {
    const { session, backfill } = await open();
    const { clock, database } = world;
    await track(2, keep);
    const { plan, historyLimits } = session;
    const audit = () => auditGaps({ sql: database.sql, clock, plan, historyLimits, keep });
    const [id] = (await audit()).map((one) => one.id);
    await changeBackfill(database.sql, id!, 'cancel', clock.now());
    // The same as the first refresh.
    await backfill({ coins: COINS.slice(0, 2), interval: '24h', from: refreshedFrom(plan, '24h', NOW), to: NOW });
    clock.advanceTo(NOW + 3 * DAY);
    return audit;
  }

  test('stays cancelled, however many of its slots become too old to be kept', async () => {
    const keep = { '24h': 800 * DAY };
    const audit = await cancelled(keep);
    expect(await audit()).toEqual([]);
    // The same as when a partition is dropped.
    await world.database.sql`
      update market.series set wanted = wanted - tstzmultirange(tstzrange(null, ${NOW - 700 * DAY}))`;
    expect(await audit()).toEqual([]);
    await track(2, keep);
    expect(await audit()).toHaveLength(1);
  });
});

describe.each(['Postgres', ...(testRedisUrl() === null ? [] : ['Redis' as const])] as const)(
  'with two processes, on %s',
  (engine) => {
    test('a backfill whose priority changes is worked off by the new priority, wherever its chunks are', async () => {
      await openTwo(engine);
      const [one, two] = [await record(COINS.slice(0, 2), 5), await record(await otherCoins(2), 0)];
      const services = [await service('a:1', SMALL), await service('b:2', SMALL)];
      await until(() => expect(new Set(services.flatMap(({ begun }) => begun))).toEqual(new Set([one, two])));
      await until(async () => expect(await spentOf(one)).toBeGreaterThan(5));
      expect(await spentOf(two)).toBeLessThanOrEqual(IN_HAND);
      expect(await prioritizeBackfill(world.database.sql, two, 50)).toBe(true);
      expect(await spentBeside(two, one)).toBeLessThanOrEqual(IN_HAND);
      expect((await stateOf(one)).state).not.toBe('done');
    });

    test('a backfill that waits for the next day blocks no other', async () => {
      await openTwo(engine);
      const { sql } = world.database;
      const high = await record(['btc-bitcoin'], 100);
      await sql`update ops.backfill set wait_until = ${NOW + DAY} where id = ${high}`;
      const low = await record(['eth-ethereum'], -10);
      await service('a:1', SMALL);
      await service('b:2', SMALL);
      await become(low, 'done');
      expect(await stateOf(high)).toMatchObject({ state: 'queued', spent: 0 });
    });

    // The other engine runs this in `backfill-runner.test.ts`.
    if (engine === 'Redis') testMoreUrgent(engine);
  },
);
