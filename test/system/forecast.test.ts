import { afterEach, describe, expect, test } from 'vitest';
import { stopwatch, systemClock } from '../../src/clock.ts';
import { forecastMs, make, WORK, world } from './forecast.ts';

afterEach(() => world?.close());

/** A timer that is later than this was held up by a busy machine. */
const HELD_UP_MS = 20;

/** What the work resolves to, and how long this process was held up meanwhile. */
async function measured<T>(work: Promise<T>): Promise<[T, number]> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  let heldUpMs = 0;
  while (!isOver) {
    const due = stopwatch() + 10;
    await systemClock.sleep(10);
    const late = stopwatch() - due;
    if (late > HELD_UP_MS) heldUpMs += late;
  }
  return [await over, heldUpMs];
}

// On a machine that is busy elsewhere a run may be late for once; a wrong forecast is wrong each time.
describe('a backfill with a pace of 5 requests per second', { retry: 2 }, () => {
  test('without faults ends within its forecast', async () => {
    // Not on a faster clock: a machine that is busy elsewhere must keep up, and what it is late would be as many times later.
    const chandler = await make({ speed: 1 });
    const expected = await forecastMs(chandler, 150);
    expect(expected).toBeGreaterThan(149 * 200);
    const [run, heldUpMs] = await measured(chandler.backfill(WORK));
    expect(run.planned).toBe(150);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.tookMs - heldUpMs).toBeLessThan(expected * 1.1);
  });
});
