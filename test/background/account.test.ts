/** A service that does not know the plan of its key yet, on a clock that the test moves. */
import { expect, test } from 'vitest';
import { expectAlive } from '../support/service-world.ts';
import { asked, create, KEY, MINUTE, said, testFirstStart, useWorld, world } from './account.ts';

useWorld();

testFirstStart('down');

test('a refused key: the service waits, however often it is started, and tries another key at once', async () => {
  await create({ CHANDLER_API_KEY: 'wrong' });
  for (let i = 0; i < 3; i++) {
    const service = await world.start(`start ${i}`);
    await said(/"the account: the upstream refused the key \(.*403.*set CHANDLER_API_KEY/);
    expectAlive(world);
    if (i < 2) await service.stop();
  }
  expect(asked()).toEqual(['/users/me', '/users/me']);
  // Several services that wait send no more requests than one.
  await world.start('another');
  for (let i = 0; i < 24; i++) await world.advance(60 * MINUTE);
  expectAlive(world);
  expect(asked().length).toBeGreaterThan(6);
  expect(asked().length).toBeLessThanOrEqual(2 * (1 + 5 + 4));
  const before = asked().length;
  await world.start('corrected', { env: { CHANDLER_API_KEY: KEY } });
  await world.untilListed();
  // The other two may send one more request each meanwhile, with the refused key.
  const byCorrected = world.asked.slice(before).filter(({ by }) => by === 'corrected');
  expect(byCorrected[0]).toMatchObject({ path: '/users/me' });
});
