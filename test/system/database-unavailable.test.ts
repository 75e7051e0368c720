/** A Postgres that goes away in the middle of a run: really stopped, or really killed. */
import { describe, expect, test } from 'vitest';
import { findEmbedded } from '../../src/store/embedded/embedded.ts';
import { runCommand } from '../support/cli.ts';
import { startCli, untilSaid } from '../support/program.ts';
import {
  asked,
  home,
  plannedRequests,
  RUN,
  reportOf,
  settings,
  testStoppedAndStarted,
  untilAsked,
  useServer,
} from './database-unavailable.ts';

useServer();

describe('the database of DATABASE_URL', () => {
  testStoppedAndStarted(() => ({}), [0.3]);
});

describe('the embedded server', () => {
  test('killed with SIGKILL is started again by the run itself, which completes', { timeout: 120_000 }, async () => {
    const all = { ...settings(), CHANDLER_HOME: home };
    const requests = await plannedRequests();
    const run = await startCli(RUN, all);
    await untilAsked(run, requests * 0.3);
    const told = untilSaid(run, /the database recovered/);
    process.kill(findEmbedded(home)!.pid, 'SIGKILL');
    await told;
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests, gaps: [] });
    expect(asked()).toBe(requests);
    expect((await runCommand(['verify', '--json'], { env: all })).code).toBe(0);
    // The last one to leave has stopped it.
    expect(findEmbedded(home)).toBeNull();
  });
});
