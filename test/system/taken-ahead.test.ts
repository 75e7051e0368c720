/** Where nothing limits the account the requests of a batch are taken together: what is counted is still exactly what is asked. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { parseFaultSpec } from '../../src/simulator/fault-spec.ts';
import { fill } from '../support/fill.ts';
import { countLedgerWrites } from '../support/ledger-writes.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

const WORK = { coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'], from: TODAY - 2_003 * DAY, to: TODAY - 3 * DAY };
const SLOTS = 20;
const CHUNKS = 100;
/** Of some hundred turns; without giving back it would be more than there are pauses and failures. */
const MOST_LATE = 10;

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

test('one statement of the ledger for several requests', async () => {
  await make();
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  const writes = await countLedgerWrites(world.database.sql);
  await chandler.backfill({ ...WORK, concurrency: 4 });
  expect(upstream.ohlcv()).toHaveLength(3 * CHUNKS);
  // Eight at a time, but for the first of each worker and what is left at the end.
  expect(await writes()).toBeLessThan(CHUNKS);
  expect(await counted()).toBe(upstream.log.length);
});

test('a coin that upstream does not know is asked about once, however many of its chunks were taken ahead', async () => {
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

test.each([1, 5, 40])('what an interrupted run has not sent is not counted (after %i requests)', async (requests) => {
  await make();
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  const stop = new AbortController();
  upstream.script = () => {
    if (upstream.ohlcv().length >= requests) stop.abort();
    return null;
  };
  const run = await chandler.backfill({ ...WORK, concurrency: 4, signal: stop.signal });
  expect(run.end).toEqual({ kind: 'interrupted' });
  expect(upstream.ohlcv().length).toBeLessThan(requests + 8);
  expect(await counted()).toBe(upstream.log.length);
});

test('nor what was taken before upstream asked for a pause, failed, or answered late', async () => {
  const faults = parseFaultSpec('429:0.02,500:0.02,reset:0.02,truncated:0.02,seed=5');
  if (!faults.ok) throw new Error(faults.problem);
  await make({ speed: 8, faults: () => faults.spec });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  await fill(world, chandler, { ...WORK, concurrency: 4 });
  const { faults: injected } = world.simulator.counters();
  expect(injected['429']).toBeGreaterThan(0);
  expect(injected['500']).toBeGreaterThan(0);
  // At this speed a turn is late after a fraction of a second; one that was taken for itself is lost then, and stays counted.
  const lost = (await counted()) - upstream.log.length;
  expect(lost).toBeGreaterThanOrEqual(0);
  expect(lost).toBeLessThanOrEqual(MOST_LATE);
});
