/**
 * Are the stored tables the same, whatever happens meanwhile? `npm test` runs one engine of the queue and a third of the slots, the deep
 * tests the other engine and all slots.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import type { QueueEngine } from '../../src/ingest/queue/queue-engine.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { testRedisUrl } from '../support/database.ts';
import { type FillTarget, fill } from '../support/fill.ts';
import { createWorld, type World, type WorldOptions } from '../support/world.ts';

const START = Date.UTC(2026, 9, 20, 7, 13);
const SEED = 11;
/** With this seed one slot is spoilt three times in a row, each time in another way, so it is not the final answer of the upstream. */
const FAULTS =
  '429:0.02,429-silent:0.01,500:0.02,502:0.02,reset:0.02,hang:0.01,truncated:0.02,empty:0.03,duplicates:0.03,conflict:0.02,' +
  'unsorted:0.03,impossible:0.02,stale:0.02,seed=4';

const target = (interval: Interval, slots: number, coins: readonly string[], quote: 'usd' | 'btc' = 'usd') => {
  const to = Math.floor((START - 3 * DAY) / DAY) * DAY;
  return { interval, quote, coins, from: to - slots * INTERVAL_MS[interval], to };
};

/** `size`: 1 for all slots, less for a share of them. */
async function targetsOf(world: World, size: number): Promise<FillTarget[]> {
  // Among them are coins that begin late, die, and have holes.
  const coins = (await world.simulator.data.coins()).map((coin) => coin.id);
  const of = (interval: Interval, slots: number, some: readonly string[], quote: 'usd' | 'btc' = 'usd') =>
    target(interval, Math.ceil(slots * size), some, quote);
  return [
    of('24h', 600, coins),
    of('24h', 300, coins.slice(0, 3), 'btc'),
    of('1h', 700, coins.slice(2, 6)),
    of('5m', 800, coins.slice(0, 2)),
    // Prices beside candles of the same coins.
    of('prices-1d', 300, coins),
    of('prices-1d', 100, coins.slice(0, 3), 'btc'),
    of('prices-1h', 300, coins.slice(2, 6)),
    of('prices-5m', 400, coins.slice(0, 2)),
    of('prices-7d', 40, coins),
  ];
}

/** Everything that an analyst can see of candles and prices, and everything that we claim about them. */
async function tablesOf({ database, clock }: World) {
  const proofs = [];
  // The number of a series differs between warehouses.
  for await (const { seriesId: _, ...proof } of verifySeries(database.sql, {}, clock.now())) proofs.push(proof);
  const coverage = await database.sql`
    select coin_id, quote, interval, covered::text, covered_candles from market.series order by 1, 2, 3`;
  const candles = await database.sql`
    select coin_id, quote, interval, open_time::text, close_time::text, open, high, low, close, volume, market_cap, is_final
    from market.candles order by 1, 2, 3, 4`;
  const prices = await database.sql`
    select coin_id, quote, interval, time::text, price, volume_24h, market_cap, is_final from market.prices order by 1, 2, 3, 4`;
  const gaps =
    await database.sql`select coin_id, quote, interval, gap_from::text, gap_to::text, reason from market.gaps order by 1, 2, 3, 4`;
  const plain = (rows: readonly object[]) => rows.map((row) => ({ ...row }));
  return { proofs, coverage: plain(coverage), candles: plain(candles), prices: plain(prices), gaps: plain(gaps) };
}
type Tables = Awaited<ReturnType<typeof tablesOf>>;

const rowsPerRequest = (rows: number) => ({ candlesPerRequest: rows, pricesPerRequest: rows });

const base: WorldOptions = { startAt: START, speed: 100, simulator: { seed: SEED, coins: 7, unlimited: true } };

export function testSameTables(name: 'Postgres' | 'Redis', size: number): void {
  let clean: Tables;
  let cleanRequests = 0;
  beforeAll(async () => {
    const world = await createWorld(base);
    try {
      const chandler = await world.open(rowsPerRequest(366));
      for (const work of await targetsOf(world, size)) await fill(world, chandler, { ...work, concurrency: 1 });
      clean = await tablesOf(world);
      cleanRequests = world.simulator.counters().requests.total;
    } finally {
      await world.close();
    }
  });

  describe.skipIf(name === 'Redis' && testRedisUrl() === null)(`with its queue in ${name}`, () => {
    let world: World;
    beforeAll(async () => {
      const faults = parseFaultSpec(FAULTS);
      if (!faults.ok) throw new Error(faults.problem);
      const queue: QueueEngine | null = name === 'Redis' ? { kind: 'redis', url: testRedisUrl()! } : null;
      world = await createWorld({
        ...base,
        faults: () => faults.spec,
        ...(queue ? { engine: queue, queueName: `same-tables-${process.pid}` } : {}),
      });
    });
    afterAll(() => world?.close());

    test('the tables are the same for any faults, order, restarts, workers and size of chunks', async () => {
      const targets = (await targetsOf(world, size)).reverse();
      for (const [i, work] of targets.entries()) {
        const other = { ...work, coins: [...work.coins].reverse(), concurrency: 6 };
        // Interrupted in the middle, and continued by another process.
        const stop = new AbortController();
        const first = await world.open(rowsPerRequest(20));
        const run = await first.backfill({
          ...other,
          signal: stop.signal,
          onProgress: ({ chunksDone, chunksPlanned }) => {
            if (chunksDone > chunksPlanned / 2) stop.abort();
          },
        });
        expect(run.end.kind, `run ${i}`).toBe('interrupted');
        await first.close();
        await fill(world, await world.open(rowsPerRequest(20)), other);
      }
      const { faults, requests } = world.simulator.counters();
      expect(Object.keys(faults).length).toBeGreaterThan(9);
      expect(requests.total).toBeGreaterThan(5 * cleanRequests);

      const tables = await tablesOf(world);
      expect(tables.proofs).toEqual(clean.proofs);
      expect(tables.coverage).toEqual(clean.coverage);
      expect(tables.gaps).toEqual(clean.gaps);
      expect(tables.candles).toEqual(clean.candles);
      expect(tables.prices).toEqual(clean.prices);
    });
  });

  test('the compared market has all kinds of oddities', () => {
    expect(clean.proofs.every((proof) => proof.differences.length === 0)).toBe(true);
    expect(clean.gaps).toEqual([]);
    expect(clean.candles.length).toBeGreaterThan(6_000 * size);
    expect(clean.prices.length).toBeGreaterThan(3_000 * size);
    expect(clean.proofs.some((proof) => proof.knownEmpty > 0)).toBe(true);
    expect(new Set(clean.coverage.map((row) => (row as unknown as { covered: string }).covered)).size).toBeGreaterThan(
      4,
    );
  });
}
