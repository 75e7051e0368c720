import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { forecast } from '../../src/quota/forecast.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { type Chandler, createWorld, type World, type WorldOptions } from '../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const TODAY = Math.floor(NOW / DAY) * DAY;
const PER_SECOND = 5;
const WORK = {
  coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
  from: TODAY - 1_003 * DAY,
  to: TODAY - 3 * DAY,
  concurrency: 8,
};

let world: World;
afterEach(() => world?.close());
async function make(options: WorldOptions = {}): Promise<Chandler> {
  world = await createWorld({
    startAt: NOW,
    speed: 4,
    limits: { perMonth: null, perSecond: PER_SECOND },
    ...options,
    simulator: { seed: 3, coins: 12, unlimited: true, latencyMs: 100, ...options.simulator },
  });
  return world.open({ candlesPerRequest: 20 });
}

/** What `plan` and `--dry-run` print: when so many requests will have been sent under what the ledger says now. */
async function forecastMs({ session }: Chandler, requests: number): Promise<number> {
  const { now, day, month, pace, hold } = await session.quota.state();
  const start = Math.max(now, pace.nextFree, hold?.until ?? 0);
  const { finishAt } = forecast({
    requests,
    limits: session.limits,
    spent: { day: day.spent, month: month.spent },
    now: start,
    slowdown: pace.limit! / pace.now!,
    setAside: () => ({ day: 0, month: 0 }),
  });
  return finishAt! - now;
}

// On a machine that is busy elsewhere a run may be late for once; a wrong forecast is wrong each time.
describe('a backfill with a pace of 5 requests per second', { retry: 2 }, () => {
  test('without faults ends within its forecast', async () => {
    const chandler = await make();
    const expected = await forecastMs(chandler, 150);
    expect(expected).toBeGreaterThan(149 * 200);
    const run = await chandler.backfill(WORK);
    expect(run.planned).toBe(150);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.tookMs).toBeLessThan(expected * 1.1);
  });

  test('ends within its forecast once faults stop, whatever they were', async () => {
    let troubled = true;
    const parsed = parseFaultSpec('429:0.08,429-silent:0.05,500:0.1,502:0.05,reset:0.1,truncated:0.05,seed=9');
    if (!parsed.ok) throw new Error(parsed.problem);
    const chandler = await make({
      speed: 20,
      faults: () => ({
        ...parsed.spec,
        rates: Object.defineProperties(
          {},
          Object.fromEntries(
            Object.entries(parsed.spec.rates).map(([name, rate]) => [
              name,
              { get: () => (troubled ? rate : 0), enumerable: true },
            ]),
          ),
        ),
      }),
    });
    const stop = new AbortController();
    const first = await chandler.backfill({
      ...WORK,
      signal: stop.signal,
      onProgress: ({ chunksDone }) => {
        if (chunksDone >= 30) stop.abort();
      },
    });
    expect(first.end).toEqual({ kind: 'interrupted' });
    expect(Object.keys(world.simulator.counters().faults).length).toBeGreaterThan(3);
    troubled = false;
    const [row] = await world.database.sql<
      { n: number }[]
    >`select count(*)::int as n from ops.fetch where outcome = 'stored' and endpoint = 'ohlcv'`;
    const left = 150 - row!.n;
    expect(left).toBeGreaterThan(60);
    const expected = await forecastMs(chandler, left);
    const run = await chandler.backfill(WORK);
    expect(run.planned).toBe(left);
    expect(run.end).toEqual({ kind: 'done' });
    // What the 429s left of the pace is part of the forecast.
    expect(expected).toBeGreaterThan(left * 200);
    expect(run.tookMs).toBeLessThan(expected * 1.1);
    expect(run.tookMs).toBeGreaterThan(expected * 0.8);
  });
});
