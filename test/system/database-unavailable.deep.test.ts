/** A Postgres that stops for good or during Ctrl-C, and the embedded one, killed. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { findEmbedded, startEmbedded, stopEmbedded } from '../../src/store/embedded/embedded.ts';
import { runCommand } from '../support/cli.ts';
import { runCli, startCli, untilSaid } from '../support/program.ts';
import {
  asked,
  engines,
  home,
  plannedRequests,
  RUN,
  reportOf,
  settings,
  TARGET,
  testStoppedAndStarted,
  untilAsked,
  upstream,
  useServer,
} from './database-unavailable.ts';

useServer();

describe.each(engines)('the database of DATABASE_URL, with the queue on %s', (engine, env) => {
  // The stops of the other one are in `database-unavailable.test.ts`.
  if (engine === 'Redis') testStoppedAndStarted(env, [0.2, 0.5]);

  test('that does not come back ends the run after --max-wait, with a report and code 75; the next run completes it', async () => {
    const { url } = await startEmbedded({ home, clock: systemClock });
    const all = { ...settings(), ...env(), DATABASE_URL: url };
    const requests = await plannedRequests();
    const some = Math.round(requests * 0.3);
    upstream.answerOnly(some);
    const run = await startCli([...RUN, '--max-wait', '3s'], all);
    await untilAsked(run, some);
    await stopEmbedded({ home, clock: systemClock });
    upstream.answerOnly(Number.POSITIVE_INFINITY);
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(75);
    expect(err).not.toMatch(/ECONN|error:/);
    const report = reportOf(out);
    expect(report).toMatchObject({ end: 'stopped', reason: 'the database is unavailable', gaps: null });
    expect(report.stored).toBeGreaterThan(0);
    await startEmbedded({ home, clock: systemClock });
    const next = await runCli(RUN, all);
    expect(next.code, next.err).toBe(0);
    // Only the requests in flight are sent again.
    expect(asked()).toBeLessThanOrEqual(requests + 4);
    expect(reportOf(next.out)).toMatchObject({ end: 'done', gaps: [] });
  });

  test('that is unavailable during Ctrl-C does not delay the end of the run', async () => {
    const { url } = await startEmbedded({ home, clock: systemClock });
    upstream.answerOnly(40);
    const run = await startCli(['backfill', ...TARGET, '--yes'], { ...settings(), ...env(), DATABASE_URL: url });
    await untilAsked(run, 40);
    const told = untilSaid(run, /the database is unavailable/);
    await stopEmbedded({ home, clock: systemClock });
    upstream.answerOnly(Number.POSITIVE_INFINITY);
    await told;
    run.process.kill('SIGINT');
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(130);
    expect(out).toMatch(
      /Interrupted\b[\s\S]*stored +[\d,]+ candles[\s\S]*gaps left +unknown while the database is unavailable/,
    );
  });
});

describe('the embedded server', () => {
  test('killed with SIGKILL is started again by the run, which completes', async () => {
    const all = { ...settings(), CHANDLER_HOME: home };
    const requests = await plannedRequests();
    const some = Math.round(requests * 0.3);
    upstream.answerOnly(some);
    const run = await startCli(RUN, all);
    await untilAsked(run, some);
    const told = untilSaid(run, /the database recovered/);
    process.kill(findEmbedded(home)!.pid, 'SIGKILL');
    upstream.answerOnly(Number.POSITIVE_INFINITY);
    await told;
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests, gaps: [] });
    expect(asked()).toBe(requests);
    expect((await runCommand(['verify', '--json'], { env: all })).code).toBe(0);
    // The last command to leave has stopped it.
    expect(findEmbedded(home)).toBeNull();
  });
});
