/** Services that claim recorded backfills, on a world of their own. */
import { expect, vi } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { type BackfillRunnerDeps, createBackfillRunner } from '../../../src/ingest/runner/backfill-runner.ts';
import type { BackfillEndTold } from '../../../src/ingest/runner/claim.ts';
import { UNKNOWN_FINISH } from '../../../src/store/backfill/backfill-finish.ts';
import { queueBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { readBackfills } from '../../../src/views/backfills/backfills.ts';
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
    ...more
  }: Partial<Pick<BackfillRunnerDeps, 'lookMs' | 'finishOf' | 'keep' | 'realMs'>> & {
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
