/** `chandler db stop` while another command of Chandler uses the server. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { findEmbedded, startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { db, home, status, useHome } from './db.ts';

useHome();

test('db stop refuses to stop the server under a running command, unless it is told to', async () => {
  const used = await startEmbedded({ home, clock: systemClock });
  const refused = await db('stop');
  expect(refused).toEqual({
    code: 1,
    out: '',
    err: `error: Chandler itself uses the embedded server in ${home} (process ${process.pid}); let that end first, or give --force\n`,
  });
  expect(findEmbedded(home)?.pid).toBe(used.pid);
  expect(await status()).toMatchObject({ stays: false, usedBy: [process.pid] });
  expect(JSON.parse((await db('stop', '--force', '--json')).out)).toEqual({ home, stopped: true });
  await used.stop();
});
