/** Several processes share a quota of a hundred requests a second, and one process has a blocked event loop. The rest is in `processes.test.ts`. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { waitForPermit } from '../../src/quota/permit.ts';
import type { Limits } from '../../src/quota/quota.ts';
import { atMost, mostInAnySecond, quotaOf, race, testOverruns, useDatabase } from './processes.ts';

useDatabase();

let races = 0;

it('processes at a hundred requests a second keep the quota too', { retry: 2 }, async () => {
  const { sendAts, sent } = await race(`fast ${++races}`, { perSecond: 100, perDay: null, perMonth: null }, 4000);
  atMost('granted in a second', mostInAnySecond(sendAts), 100);
  const seconds = (sendAts.at(-1)! - sendAts[0]!) / 1000;
  expect((sendAts.length - 1) / seconds).toBeGreaterThanOrEqual(98);
  const late = sent.map((s) => s.now - s.sendAt).sort((a, b) => a - b);
  console.info(
    `quota: 4 × 8 takers at 100/s: ${((sendAts.length - 1) / seconds).toFixed(2)}/s, ${mostInAnySecond(sendAts)} in the fullest second, sent late by p50 ${late[late.length >> 1]} ms, p99 ${late[Math.floor(late.length * 0.99)]} ms`,
  );
});

testOverruns();

/** Takers in this process, like those that `taker.mjs` has in a process of its own. */
async function takeTurns(accountId: string, limits: Limits, until: (sent: readonly number[]) => boolean) {
  const quota = quotaOf(accountId, limits);
  const sent: number[] = [];
  const take = async () => {
    while (!until(sent)) {
      await waitForPermit({ quota, spender: { class: 'backfill', name: 'stalled' }, clock: systemClock });
      sent.push(systemClock.now());
    }
  };
  await Promise.all(Array.from({ length: 8 }, take));
  return { sent, spent: (await quota.state()).month.spent };
}

it('a process whose event loop was blocked does not catch up with a burst afterwards', async () => {
  let stalls = 0;
  const { sent, spent } = await takeTurns('stalled', { perSecond: 10, perDay: null, perMonth: null }, (soFar) => {
    if (soFar.length === 10 * (stalls + 1) && stalls < 2) {
      stalls++;
      const until = systemClock.now() + [1200, 300][stalls - 1]!;
      while (systemClock.now() < until);
    }
    return soFar.length >= 35;
  });
  expect(stalls).toBe(2);
  expect(mostInAnySecond(sent)).toBeLessThanOrEqual(10);
  // The permits that it lost stay counted.
  expect(spent).toBeGreaterThan(sent.length);
});
