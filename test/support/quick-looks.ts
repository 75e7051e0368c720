/**
 * Services in this process look ten times as often: most of the time of a test in which something is lost and comes back is the sleep
 * between two looks. Every other sleep lasts as long as ever: a pace, a patience, a pause before something is tried again.
 */
import { afterAll, beforeAll, type MockInstance, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';

const TIMES = 10;

/**
 * For the rest of the file. `isLook`: does a loop that looks sleep so long? On the machine's own clock, by which services know that they
 * are no test.
 */
export function lookOften(isLook: (ms: number) => boolean): void {
  let spy: MockInstance<typeof systemClock.sleep>;
  beforeAll(() => {
    const { sleep } = systemClock;
    // Every loop ends on a signal. What has none is somebody's patience.
    const shortened = (ms: number, signal?: AbortSignal) => (signal !== undefined && isLook(ms) ? ms / TIMES : ms);
    spy = vi.spyOn(systemClock, 'sleep').mockImplementation((ms, signal) => sleep(shortened(ms, signal), signal));
  });
  afterAll(() => spy.mockRestore());
}
