/**
 * Services in this process look ten times as often: most of the time of a test in which something is lost and comes back is the sleep
 * between two looks. Every other sleep lasts as long as ever: a pace, a deadline, a patience.
 */
import { afterAll, beforeAll, type MockInstance, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';

const TIMES = 10;
/** Who sleeps less waits for a turn; who sleeps longer counts something. Neither looks. */
const LOOK_MS = { least: 2_000, most: 20_000 };

/**
 * For the rest of the file. Returns what marks a service by the signal that stops it: a loop that goes on until then sleeps on that
 * signal, or on one that the service combines with it, and a deadline on one of its own. On the machine's own clock, by which services
 * know that they are no test.
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
