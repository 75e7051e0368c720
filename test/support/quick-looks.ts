/**
 * Makes services in this process poll ten times as often. In a test in which something is lost and comes back, most of the time is the
 * sleep between two polls. Every other sleep keeps its length: a pace, a deadline, a timeout.
 */
import { afterAll, beforeAll, type MockInstance, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';

const TIMES = 10;
/** A shorter sleep waits for a permit, and a longer one measures something: neither polls. */
const LOOK_MS = { least: 2_000, most: 20_000 };

/**
 * Lasts for the rest of the file. Returns a function that marks a service by the signal that stops it: a loop of the service sleeps on that
 * signal or on one combined with it, and a deadline has a signal of its own. The clock stays that of the machine, by which services know
 * that they are not in a test.
 */
export function lookOften(): (stop: AbortSignal) => void {
  const stops = new WeakSet<AbortSignal>();
  let spies: MockInstance[];
  beforeAll(() => {
    const { sleep } = systemClock;
    const any = AbortSignal.any.bind(AbortSignal);
    const combining = vi.spyOn(AbortSignal, 'any').mockImplementation((signals) => {
      const combined = any(signals);
      if ([...signals].some((signal) => stops.has(signal))) stops.add(combined);
      return combined;
    });
    const sleeping = vi.spyOn(systemClock, 'sleep').mockImplementation((ms, signal) => {
      const isLook = signal !== undefined && stops.has(signal) && ms >= LOOK_MS.least && ms <= LOOK_MS.most;
      return sleep(isLook ? ms / TIMES : ms, signal);
    });
    spies = [combining, sleeping];
  });
  afterAll(() => {
    for (const spy of spies) spy.mockRestore();
  });
  return (stop) => void stops.add(stop);
}
