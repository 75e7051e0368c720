/** Services that claim recorded backfills, each test in a world of its own. */
import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { type BackfillRunnerDeps, createBackfillRunner } from '../../../src/ingest/runner/backfill-runner.ts';
import type { BackfillEndReport } from '../../../src/ingest/runner/claim.ts';
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

/** An upstream that answers the first requests for candles, and the others when the test tells it to. */
export function answering(first: number) {
  let left = first;
  const waiting: (() => void)[] = [];
  const fetch: WorldOptions['fetch'] = (simulated) => async (request) => {
    if (request.url.includes('/ohlcv') && left-- <= 0) await new Promise<void>((resolve) => waiting.push(resolve));
    return simulated(request);
  };
  const answer = (more: number) => {
    left = Math.max(0, left) + more;
    for (const go of waiting.splice(0, left)) {
      left--;
      go();
    }
  };
  return { fetch, answer, answerAll: () => answer(Number.POSITIVE_INFINITY) };
}

/** Only the chunks in progress are still in the queue. */
export const withdrawn = () =>
  until(async () => expect(await world.database.sql`select from bullmq.job where state <> 'active'`).toHaveLength(0));

let answer: () => void = () => undefined;
/** The same for `open`: the others wait for `answerAll`, so that on a busy machine, too, a backfill is not done before. */
export function holdingAfter(count: number): Pick<WorldOptions, 'fetch'> {
  const { fetch, answerAll } = answering(count);
  answer = answerAll;
  return { fetch };
}
export const answerAll = () => answer();

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
  const ends: BackfillEndReport[] = [];
  const begun: number[] = [];
  const errors: Error[] = [];
  let change: (() => Promise<void>) | null = null;
  const runner = createBackfillRunner({
    sql: world.database.sql,
    clock: world.clock,
    queue,
    session,
    owner,
    concurrency: 2,
    finishOf: async () => {
      const due = change;
      change = null;
      await due?.();
      return { ...UNKNOWN_FINISH, at: NOW + DAY };
    },
    onBegin: ({ id }) => begun.push(id),
    onEnd: (end) => ends.push(end),
    onChunk: () => undefined,
    onFailure: () => undefined,
    onError: (error) => errors.push(error),
    lookMs: 30,
    ...more,
  });
  closers.push(() => {
    const stopped = runner.stop();
    answerAll();
    return stopped;
  });
  runner.start();
  /** Changes something just before the service reads its claim again: the service notices the change before many chunks come and go. */
  const beforeItLooks = <T>(make: () => Promise<T>) =>
    new Promise<T>((resolve, reject) => {
      change = () => make().then(resolve, reject);
    });
  return { runner, ends, begun, errors, beforeItLooks };
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

/** Twenty candles a request: 45 chunks a coin. Each of two processes has two chunks in progress. */
export const SMALL = { candlesPerRequest: 20 };
export const IN_HAND = 2 * 2;

export const openTwo = (engine: 'Postgres' | 'Redis', options: WorldOptions = {}) =>
  open({
    ...(engine === 'Redis' ? { engine: { kind: 'redis', url: testRedisUrl()! } } : {}),
    queueName: randomUUID(),
    limits: { perSecond: 40 },
    simulator: { seed: 5, coins: 12, latencyMs: 5 },
    ...options,
  });
export const spentOf = async (id: number) => (await stateOf(id)).spent;

/** What the other backfill spends while this one spends from 20 to 60. By then both have chunks in the queue. Counted from the records. */
export async function spentBeside(id: number, other: number): Promise<number> {
  await until(async () => expect(await spentOf(id)).toBeGreaterThan(60));
  const [row] = await world.database.sql<{ n: number }[]>`
    with mine as (select id, row_number() over (order by id) as n from ops.fetch where backfill_id = ${id})
    select count(*)::int as n from ops.fetch
    where backfill_id = ${other} and id between (select id from mine where n = 20) and (select id from mine where n = 60)`;
  return row!.n;
}

export function testMoreUrgent(engine: 'Postgres' | 'Redis'): void {
  test('a running backfill gets nothing more of the budget once a more urgent one has begun, and all of it afterwards', async () => {
    await openTwo(engine, holdingAfter(10));
    const low = await record(COINS.slice(0, 2), -10);
    const services = [await service('a:1', SMALL), await service('b:2', SMALL)];
    await until(async () => expect(await spentOf(low)).toBeGreaterThan(5));
    const high = await record(await otherCoins(2), 100);
    answerAll();
    expect(await spentBeside(high, low)).toBeLessThanOrEqual(IN_HAND);
    expect((await stateOf(low)).state).not.toBe('done');
    await become(low, 'done');
    // One of its coins began later than the span, so its empty slots are requested again in an hour.
    expect(await stateOf(high)).toMatchObject({ state: 'queued', message: 'not final yet', leftRequests: 0 });
    expect(services.flatMap(({ errors }) => errors)).toEqual([]);
  });
}
