/**
 * The clocks of machines are set by a day while services run. Real time goes on, only its name changes. No schedule pauses longer than its
 * interval, nothing is lost, and the quota holds. This includes a host that stops while its clock is a day ahead.
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
  'the clock of %s jumps a day %s: no schedule pauses longer than its interval, and nothing is lost',
  { timeout: 420_000 },
  (whose, _how, offs) => jump(whose, offs),
);

test('another service takes over at once from a host that stops while its clock is a day ahead', {
  timeout: 420_000,
}, async () => {
  await begin({ CHANDLER_CANDLES_PER_REQUEST: '20' });
  await live(30 * MINUTE);
  const [a, b] = world.services();
  await b!.stop();
  a!.clock.setOff(DAY);
  // It has a backfill, schedule runs and chunks in progress that do not end.
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
