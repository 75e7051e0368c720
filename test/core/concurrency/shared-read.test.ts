import { expect, test } from 'vitest';
import { createSharedRead } from '../../../src/core/concurrency/shared-read.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

function open(sharesFailure?: (error: unknown) => boolean) {
  const clock = createVirtualClock(Date.UTC(2030, 4, 15, 10));
  const answers: (number | Error)[] = [];
  let reads = 0;
  const read = createSharedRead({
    clock,
    ms: 1_000,
    read: async () => {
      reads++;
      const answer = answers.shift() ?? reads;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    ...(sharesFailure ? { sharesFailure } : {}),
  });
  return { clock, answers, read, reads: () => reads };
}

test('callers share a read for the given time, and a clock that was set back ends it', async () => {
  const { clock, read, reads } = open();
  expect(await Promise.all([read(), read()])).toEqual([1, 1]);
  clock.advance(1_000);
  expect(await read()).toBe(1);
  clock.advance(1);
  expect(await read()).toBe(2);
  clock.set(clock.now() - 1_001);
  expect(await read()).toBe(3);
  expect(reads()).toBe(3);
});

test('a failure is shared only where that is wanted', async () => {
  const lost = open();
  lost.answers.push(new Error('lost'));
  await expect(Promise.all([lost.read(), lost.read()])).rejects.toThrow('lost');
  expect(await lost.read()).toBe(2);
  const refused = open((error) => (error as Error).message === 'refused');
  refused.answers.push(new Error('refused'));
  await expect(refused.read()).rejects.toThrow('refused');
  await expect(refused.read()).rejects.toThrow('refused');
  expect(refused.reads()).toBe(1);
});
