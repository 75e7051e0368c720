import { expect, test } from 'vitest';
import { QueueUnavailable } from '../../../src/ingest/queue/redis.ts';
import { createOutageRetry } from '../../../src/ingest/request/outage-retry.ts';
import { until } from '../../support/until.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

test('work that was under way when other work found the end of an outage, and fails afterwards, is no second outage', async () => {
  const clock = createVirtualClock(0);
  const said: string[] = [];
  const retry = createOutageRetry({
    clock,
    signal: new AbortController().signal,
    onOutage: () => said.push('away'),
    onRecovery: () => said.push('back'),
  });
  const away = () => Promise.reject(new QueueUnavailable(new Error('away'), 'redis://127.0.0.1:1'));
  const first = retry((again) => (again ? Promise.resolve('done') : away()));
  await until(() => clock.sleepers() === 1);
  let fail: () => void;
  const answer = new Promise<never>((_, reject) => {
    fail = () => reject(new QueueUnavailable(new Error('away'), 'redis://127.0.0.1:1'));
  });
  const second = retry((again) => (again ? Promise.resolve('done') : answer));
  clock.advance(500);
  expect(await first).toBe('done');
  fail!();
  await until(() => clock.sleepers() === 1);
  clock.advance(500);
  expect(await second).toBe('done');
  expect(said).toEqual(['away', 'back']);
  // Work that begins afterwards and fails is a second outage.
  const third = retry((again) => (again ? Promise.resolve('done') : away()));
  await until(() => clock.sleepers() === 1);
  clock.advance(500);
  await third;
  expect(said).toEqual(['away', 'back', 'away', 'back']);
});
