/** A forecast while faults happen. */
import { afterEach, describe, expect, test } from 'vitest';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { forecastMs, make, WORK, world } from './forecast.ts';

afterEach(() => world?.close());

// On a busy machine a run may be late sometimes. A wrong forecast is wrong each time.
describe('a backfill at 5 requests per second', { retry: 2 }, () => {
  test('ends within its forecast once faults stop, whatever faults there were', async () => {
    let troubled = true;
    const parsed = parseFaultSpec('429:0.08,429-silent:0.05,500:0.1,502:0.05,reset:0.1,truncated:0.05,seed=9');
    if (!parsed.ok) throw new Error(parsed.problem);
    const chandler = await make({
      // At a higher speed a busy machine would send fewer requests than the rate allows.
      speed: 8,
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
    // The forecast includes the rate that the 429s left.
    expect(expected).toBeGreaterThan(left * 200);
    expect(run.tookMs).toBeLessThan(expected * 1.1);
    expect(run.tookMs).toBeGreaterThan(expected * 0.8);
  });
});
