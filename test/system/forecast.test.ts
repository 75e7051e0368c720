import { afterEach, describe, expect, test } from 'vitest';
import { forecastMs, make, WORK, world } from './forecast.ts';

afterEach(() => world?.close());

// On a busy machine a run may be late sometimes. A wrong forecast is wrong each time.
describe('a backfill at 5 requests per second', { retry: 2 }, () => {
  test('without faults ends within its forecast', async () => {
    const chandler = await make({ speed: 2 });
    const expected = await forecastMs(chandler, 150);
    expect(expected).toBeGreaterThan(149 * 200);
    const run = await chandler.backfill(WORK);
    expect(run.planned).toBe(150);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.tookMs).toBeLessThan(expected * 1.1);
  });
});
