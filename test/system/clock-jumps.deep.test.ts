/**
 * Clocks of the machines that are set by a day while services run: time goes on as before, only what they call it changes. Nothing
 * falls silent for longer than its interval, nothing is lost, and the quota holds; also when a host dies a day ahead.
 */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import {
  begin,
  expectComplete,
  JUMPS,
  jump,
  live,
  MINUTE,
  record,
  START,
  silences,
  stateOf,
  world,
} from './clock-jumps.ts';

afterEach(() => world?.close());

test.each(JUMPS)(
  'the clock of %s jumps a day %s: nothing is silent for longer than its interval, nothing is lost',
  { timeout: 420_000 },
  (whose, _how, offs) => jump(whose, offs),
);

test('what a host that was a day ahead leaves behind when it dies is taken over at once', {
  timeout: 420_000,
}, async () => {
  await begin({ CHANDLER_CANDLES_PER_REQUEST: '20' });
  await live(30 * MINUTE);
  const [a, b] = world.services();
  await b!.stop();
  a!.clock.setOff(DAY);
  // It has a backfill, runs and chunks in hand that do not end.
  world.upstream = 'down';
  const id = await record(['ltc-litecoin'], START - 10 * DAY);
  await live(20 * MINUTE);
  expect(await stateOf(id)).toMatchObject({ state: expect.stringMatching(/running|queued/) });
  a!.kill();
  world.upstream = 'up';
  const since = world.clock.now();
  await world.start('c');
  await live(90 * MINUTE);
  expect(silences(since)).toEqual([]);
  expect(await stateOf(id)).toMatchObject({ state: 'done' });
  await expectComplete();
});
