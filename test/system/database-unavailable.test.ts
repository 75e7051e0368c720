/** A Postgres that goes away in the middle of a run: really stopped, or really killed. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { findEmbedded, startEmbedded, stopEmbedded } from '../../src/store/embedded/embedded.ts';
import { runCli, startCli, untilSaid } from '../support/program.ts';
import {
  asked,
  engines,
  home,
  plannedRequests,
  RUN,
  reportOf,
  settings,
  spentOf,
  untilAsked,
  useServer,
} from './database-unavailable.ts';

useServer();

describe.each(engines)('the database of DATABASE_URL, with the queue on %s', (_engine, env) => {
  test('stopped and started again is waited for: the run says so, goes on, and asks nothing twice', {
    timeout: 120_000,
  }, async () => {
    const { url } = await startEmbedded({ home, clock: systemClock });
    const all = { ...settings(), ...env(), DATABASE_URL: url };
    const requests = await plannedRequests(all);
    const run = await startCli(RUN, all);
    for (const share of [0.2, 0.5]) {
      await untilAsked(run, requests * share);
      const told = untilSaid(run, /the database is unavailable; waiting up to/);
      await stopEmbedded({ home, clock: systemClock });
      await told;
      const back = untilSaid(run, /the database recovered/);
      expect((await startEmbedded({ home, clock: systemClock })).url).toBe(url);
      await back;
    }
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(err.match(/the database is unavailable/g)!.length).toBeGreaterThanOrEqual(2);
    expect(err).not.toMatch(/ECONN|error:/);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests, gaps: [] });
    expect(asked()).toBe(requests);
    const { ledger, recorded, stored } = await spentOf(url);
    expect([recorded, stored]).toEqual([requests, requests]);
    // A unit whose grant nobody heard of stays counted.
    expect(ledger).toBeGreaterThanOrEqual(requests);
    expect(ledger).toBeLessThanOrEqual(requests + 2 * 4);
    expect((await runCli(['verify', '--json'], all)).code).toBe(0);
  });
});

describe('the embedded server', () => {
  test('killed with SIGKILL is started again by the run itself, which completes', { timeout: 120_000 }, async () => {
    const all = { ...settings(), CHANDLER_HOME: home };
    const requests = await plannedRequests(all);
    const run = await startCli(RUN, all);
    await untilAsked(run, requests * 0.3);
    const told = untilSaid(run, /the database recovered/);
    process.kill(findEmbedded(home)!.pid, 'SIGKILL');
    await told;
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests, gaps: [] });
    expect(asked()).toBe(requests);
    expect((await runCli(['verify', '--json'], all)).code).toBe(0);
    // The last one to leave has stopped it.
    expect(findEmbedded(home)).toBeNull();
  });
});
