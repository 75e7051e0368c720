/** `chandler db`: the embedded server for other programs. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createClient } from '../../../src/store/connection/connect.ts';
import { findEmbedded, startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { runCommand } from '../../support/cli.ts';
import { db, home, status, useHome } from './db.ts';

useHome();

test('a server started by db start keeps running without commands, at an address for other programs, until db stop', async () => {
  expect(await db('url')).toEqual({
    code: 1,
    out: '',
    err: `error: the embedded server in ${home} does not run; chandler db start starts it, and it keeps running\n`,
  });
  expect(await status()).toEqual({ home, running: false });
  const { code, out } = await db('start');
  expect(code).toBe(0);
  expect(out).toContain('It runs until chandler db stop');
  const [url] = out.split('\n');
  expect((await db('url')).out).toBe(`${url}\n`);
  expect(url).toMatch(/^postgresql:\/\/chandler:[^@]+@127\.0\.0\.1:\d+\/chandler$/);
  // A command comes and goes, and the server still runs.
  expect((await runCommand(['sql', 'select 1'], { env: { CHANDLER_HOME: home } })).code).toBe(0);
  const sql = createClient({ url: url!, max: 1, applicationName: 'a notebook' });
  expect(await sql`select count(*)::int as n from market.candles`).toEqual([{ n: 0 }]);
  expect(await status()).toMatchObject({
    running: true,
    stays: true,
    usedBy: [],
    sessions: [{ application: 'a notebook', count: 1 }],
    version: expect.stringMatching(/^18\./),
    startedAt: expect.stringMatching(/Z$/),
  });
  const shown = await db('status');
  expect(shown.out).toContain('chandler:***@');
  expect(shown.out).toContain('a notebook (1)');
  await sql.end();
  expect((await db('stop')).out).toBe('The embedded server is stopped.\n');
  expect(findEmbedded(home)).toBeNull();
  expect((await db('stop')).out).toBe(`The embedded server in ${home} does not run.\n`);
  // It kept running because it was told to. Now it is not told to any more.
  const later = await startEmbedded({ home, clock: systemClock });
  await later.stop();
  expect(findEmbedded(home)).toBeNull();
});

test('db start and db stop refuse other servers; db url prints the address of any server', async () => {
  const env = { CHANDLER_HOME: home, DATABASE_URL: 'postgres://ana:secret@db.test/warehouse' };
  expect((await runCommand(['db', 'url'], { env })).out).toBe('postgresql://ana:secret@db.test/warehouse\n');
  for (const what of ['start', 'stop', 'status']) {
    const { code, err } = await runCommand(['db', what], { env });
    expect([what, code]).toEqual([what, 2]);
    expect(err).toMatch(/^error: DATABASE_URL is set, and Chandler does not start or stop that server/);
  }
});
