import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../src/clock.ts';

const DAY = 86_400_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('sleeps longer than a timer of Node.js can wait', async () => {
  let isOver = false;
  const sleeping = systemClock.sleep(30 * DAY).then(() => {
    isOver = true;
  });
  await vi.advanceTimersByTimeAsync(30 * DAY - 1);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await sleeping;
});

it('ends a sleep early with the reason of its signal, also after the first timer', async () => {
  const stop = new AbortController();
  const sleeping = systemClock.sleep(60 * DAY, stop.signal);
  await vi.advanceTimersByTimeAsync(40 * DAY);
  stop.abort(new Error('stopped'));
  await expect(sleeping).rejects.toThrow('stopped');
  expect(vi.getTimerCount()).toBe(0);
});
