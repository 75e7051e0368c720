/** Backfills that wait for a service: claimed, given back, taken over, against the simulator. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { auditGaps, refreshedFrom } from '../../../src/ingest/tracking/audit.ts';
import { changeBackfill, claimBackfill, prioritizeBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../../src/store/tracking/track-rule.ts';
import { LEASE_EXPIRES_AFTER_MS } from '../../../src/store/work/lease.ts';
import {
  answerAll,
  become,
  COINS,
  closers,
  holdingAfter,
  NOW,
  open,
  otherCoins,
  record,
  SPAN,
  service,
  stateOf,
  testMoreUrgent,
  until,
  world,
} from './backfill-runner.ts';

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

test('backfills are worked off, the most urgent first, and their cost and candles are recorded', async () => {
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

test('a backfill keeps the range it reported, and why it left the range before, while no new forecast can be made', async () => {
  await open(holdingAfter(0));
  const id = await record(COINS);
  const told = { at: NOW + DAY, from: NOW, to: NOW + 2 * DAY, change: 'requests fail', changedAt: NOW, basis: null };
  let looks = 0;
  const finishOf = async () => {
    if (looks++ > 0) throw new Error('no forecast');
    return told;
  };
  const { errors } = await service('a:1', { finishOf });
  await until(() => expect(errors.length).toBeGreaterThan(1));
  expect(await stateOf(id)).toMatchObject({
    state: 'running',
    finishAt: told.at,
    finishFrom: told.from,
    finishTo: told.to,
    finishChange: told.change,
    finishChangedAt: told.changedAt,
  });
});

test('a paused backfill sends no more requests, and continues where it was when it is resumed', async () => {
  await open(holdingAfter(2));
  const { sql } = world.database;
  const id = await record(COINS);
  const { ends, beforeItLooks } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  expect(await beforeItLooks(() => changeBackfill(sql, id, 'pause', NOW))).toBe('running');
  answerAll();
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

test('a backfill gives way to a more urgent one, and is continued afterwards', async () => {
  await open(holdingAfter(2));
  const { sql } = world.database;
  const id = await record(COINS);
  const { begun, beforeItLooks } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(0));
  const urgent = await record(await otherCoins(1));
  expect(await beforeItLooks(() => prioritizeBackfill(sql, urgent, 50))).toBe(true);
  answerAll();
  await become(id, 'done');
  expect(begun).toEqual([id, urgent, id]);
  expect(await stateOf(id)).toMatchObject({ spent: 9 });
});

test('a backfill whose process died is taken over by another process, and nothing is requested twice', async () => {
  await open();
  const { sql } = world.database;
  const id = await record(COINS);
  // Its owner claims it and never renews the claim.
  expect(await claimBackfill(sql, { owner: 'dead:1', now: world.clock.now() })).toMatchObject({ id, coinIds: COINS });
  const { begun } = await service('b:2');
  await world.clock.sleep(200);
  expect(begun).toEqual([]);
  world.clock.advanceTo(world.clock.now() + LEASE_EXPIRES_AFTER_MS + 1_000);
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ owner: 'b:2', spent: 9 });
});

test('a backfill that the budget holds waits with the reason, and lets other backfills go first', async () => {
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

test('a backfill that waits because the key was refused continues with the next session: none begins before the key is accepted', async () => {
  await open();
  const id = await record(['btc-bitcoin']);
  const waitUntil = world.clock.now() + DAY;
  await world.database.sql`update ops.backfill set message = 'key refused', wait_until = ${waitUntil}`;
  await service('a:1');
  await become(id, 'done');
  expect(world.clock.now()).toBeLessThan(waitUntil);
});

test('a backfill whose session ends because the key was refused says so, and nobody claims it meanwhile', async () => {
  await open(holdingAfter(0));
  const id = await record(COINS);
  const { runner } = await service('a:1');
  await become(id, 'running');
  const stopped = runner.stop({ isKeyRefused: true });
  answerAll();
  await stopped;
  const waiting = await stateOf(id);
  expect(waiting).toMatchObject({ state: 'queued', message: 'key refused' });
  expect(waiting.waitUntil).toBeGreaterThan(world.clock.now());
});

test('a backfill with slots that have become too old to be kept requests the rest', async () => {
  await open();
  const id = await record(['btc-bitcoin']);
  await service('a:1', { keep: { '24h': 100 * DAY } });
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ spent: 1 });
  const [row] = await world.database.sql<{ oldest: number }[]>`select min(open_time) as oldest from market.candle`;
  expect(row!.oldest).toBeGreaterThanOrEqual(NOW - 101 * DAY);
});

test('the audit queues one backfill for the past that tracked series miss, and only one', async () => {
  const { session } = await open();
  const { sql } = world.database;
  const term = { interval: '24h', quote: 'usd', since: SPAN.from, priority: 10, targetAgeMs: DAY } as const;
  await addTracks(sql, [{ tier: 'top', top: 3, ...term }], NOW);
  await applyTracks(sql, NOW);
  const { plan, historyLimits } = session;
  const audit = () => auditGaps({ sql, clock: world.clock, plan, historyLimits });
  const [id] = (await audit()).map((one) => one.id);
  expect(id).toBeDefined();
  expect(await audit()).toEqual([]);
  await service('b:2');
  await become(id!, 'done');
  // Freshness keeps what is younger than one request can hold.
  expect(await stateOf(id!)).toMatchObject({ priority: -10, coins: 3, spent: 6, requestedBy: 'the audit of gaps' });
  expect(await audit()).toEqual([]);
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

  test.each([
    ['another rule is added', 3],
    ['the rule is given again', 2],
  ])('stays cancelled, until %s', async (_name, top) => {
    const audit = await cancelled();
    expect(await audit()).toEqual([]);
    await track(top);
    expect(await audit()).toHaveLength(1);
  });
});

describe('with two processes, on Postgres', () => testMoreUrgent('Postgres'));
