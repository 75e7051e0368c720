/** Services that claim recorded backfills, on a world of their own. */
import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { type BackfillRunnerDeps, createBackfillRunner } from '../../../src/ingest/runner/backfill-runner.ts';
import type { BackfillEndTold } from '../../../src/ingest/runner/claim.ts';
import { UNKNOWN_FINISH } from '../../../src/store/backfill/backfill-finish.ts';
import { queueBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { readBackfills } from '../../../src/views/backfills/backfills.ts';
import { testRedisUrl } from '../../support/database.ts';
import { createWorld, type World, type WorldOptions } from '../../support/world.ts';

export const NOW = Date.UTC(2026, 10, 18, 12);
export const SPAN = { from: NOW - 900.5 * DAY, to: NOW - 0.5 * DAY };
export let world: World;
export const closers: (() => Promise<unknown>)[] = [];

export async function open(options: WorldOptions = {}) {
  world = await createWorld({ startAt: NOW, simulator: { seed: 5, coins: 12, latencyMs: 20 }, ...options });
  // Reads the list of coins.
  return world.open();
}

export async function record(coinIds: readonly string[], priority = 0): Promise<number> {
  const { sql } = world.database;
  const target = { coinIds, interval: '24h', quote: 'usd', span: SPAN } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  return queueBackfill(sql, { ...target, requestedAt: NOW, spec: { coinIds }, plannedRequests: 3, priority });
}

export async function service(
  owner: string,
  {
    candlesPerRequest = null,
    apiKey = null,
    ...more
  }: Partial<Pick<BackfillRunnerDeps, 'lookMs' | 'finishOf' | 'keep' | 'realMs'>> & {
    readonly candlesPerRequest?: number | null;
    readonly apiKey?: string | null;
  } = {},
) {
  const { session, queue } = await world.open({ candlesPerRequest, apiKey });
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
    finishOf: async () => ({ ...UNKNOWN_FINISH, at: NOW + DAY }),
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

export const stateOf = async (id: number) => (await readBackfills(world.database.sql, { all: true, id }))[0]!;
export const until = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 60_000, interval: 20 });
export const become = (id: number, state: string) => until(async () => expect((await stateOf(id)).state).toBe(state));
export const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
export async function otherCoins(count: number): Promise<string[]> {
  const rows = await world.database.sql<{ id: string }[]>`
    select id from market.coin where is_active and id <> all(${COINS}::text[]) order by rank limit ${count}`;
  return rows.map(({ id }) => id);
}

/** Twenty candles a request: 45 chunks a coin. Each of two processes has two in hand. */
export const SMALL = { candlesPerRequest: 20 };
export const IN_HAND = 2 * 2;

export const openTwo = (engine: 'Postgres' | 'Redis') =>
  open({
    ...(engine === 'Redis' ? { engine: { kind: 'redis', url: testRedisUrl()! } } : {}),
    queueName: randomUUID(),
    limits: { perSecond: 40 },
    simulator: { seed: 5, coins: 12, latencyMs: 5 },
  });
export const spentOf = async (id: number) => (await stateOf(id)).spent;

/** What the others spend while this one spends from 20 to 60: then it has chunks for everybody in the queue. */
export async function spentBeside(id: number, other: number): Promise<number> {
  await until(async () => expect(await spentOf(id)).toBeGreaterThan(20));
  const before = await spentOf(other);
  await until(async () => expect(await spentOf(id)).toBeGreaterThan(60));
  return (await spentOf(other)) - before;
}

export function testMoreUrgent(engine: 'Postgres' | 'Redis'): void {
  test('one that runs already has nothing more of the budget once a more urgent one has begun, and all of it afterwards', async () => {
    await openTwo(engine);
    const low = await record(COINS.slice(0, 2), -10);
    const services = [await service('a:1', SMALL), await service('b:2', SMALL)];
    await until(async () => expect(await spentOf(low)).toBeGreaterThan(5));
    const high = await record(await otherCoins(2), 100);
    expect(await spentBeside(high, low)).toBeLessThanOrEqual(IN_HAND);
    expect((await stateOf(low)).state).not.toBe('done');
    await become(low, 'done');
    // One of its coins began later than the span: its empty slots are asked about again in an hour.
    expect(await stateOf(high)).toMatchObject({ state: 'queued', message: 'not final yet', leftRequests: 0 });
    expect(services.flatMap(({ errors }) => errors)).toEqual([]);
  });
}
