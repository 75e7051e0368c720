/** A Postgres that goes away in the middle of a run: really stopped, or really killed. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createClient } from '../../src/store/connection/connect.ts';
import { findEmbedded, startEmbedded, stopEmbedded } from '../../src/store/embedded/embedded.ts';
import { testRedisUrl } from '../support/database.ts';
import { type RunningCli, runCli, startCli, untilSaid } from '../support/program.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
const FROM = TO - 900 * DAY;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const TARGET = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin', '--start', day(FROM), '--end', day(TO)];
const RUN = ['backfill', ...TARGET, '--yes', '--json', '--concurrency', '4'];

let home: string;
let upstream: SimulatedUpstream;
beforeEach(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), 'chandler-away-'));
  // As root, the server's user must be able to walk through.
  chmodSync(home, 0o755);
  upstream = await startUpstream({ seed: 5, coins: 20, latencyMs: 15 });
});
afterEach(async () => {
  await upstream.close();
  await stopEmbedded({ home, clock: systemClock });
  rmSync(home, { recursive: true, force: true });
});

const settings = () => ({
  CHANDLER_BASE_URL: upstream.baseUrl,
  CHANDLER_PLAN: 'enterprise',
  CHANDLER_REQUESTS_PER_SECOND: '60',
  CHANDLER_CANDLES_PER_REQUEST: '10',
});
const asked = () => upstream.asked();

async function plannedRequests(env: Record<string, string>): Promise<number> {
  const { out } = await runCli(['plan', ...TARGET, '--json'], env);
  return (JSON.parse(out) as { requests: number }).requests;
}

/** Until so many requests have arrived, or the run has ended. */
async function untilAsked(run: RunningCli, requests: number): Promise<void> {
  while (asked() < requests && run.process.exitCode === null) await systemClock.sleep(5);
}

/** What the ledger, the records and the upstream have of the run's requests. */
async function spentOf(url: string) {
  const sql = createClient({ url, max: 1 });
  try {
    const [row] = await sql<{ ledger: number; recorded: number; stored: number }[]>`
      select (select coalesce(sum(month_spent), 0)::int from ops.quota_spent where class = 'backfill') as ledger,
        count(*)::int as recorded, count(*) filter (where outcome = 'stored')::int as stored
      from ops.fetch where backfill_id is not null`;
    return row!;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

type Report = { backfill: { end: string; reason?: string; requests: number; stored: number; gaps: unknown[] | null } };
const reportOf = (out: string) => (JSON.parse(out) as Report).backfill;

const engines = [
  ['Postgres', () => ({})],
  ...(testRedisUrl() === null ? [] : [['Redis', () => ({ REDIS_URL: testRedisUrl()! })] as const]),
] as const;

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
      const told = untilSaid(run, /waits .*: the database is away/);
      await stopEmbedded({ home, clock: systemClock });
      await told;
      const back = untilSaid(run, /the database is back/);
      expect((await startEmbedded({ home, clock: systemClock })).url).toBe(url);
      await back;
    }
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(err.match(/the database is away/g)!.length).toBeGreaterThanOrEqual(2);
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

  test('that does not come back ends the run after --max-wait, with a report and code 75; the next run completes it', {
    timeout: 120_000,
  }, async () => {
    const { url } = await startEmbedded({ home, clock: systemClock });
    const all = { ...settings(), ...env(), DATABASE_URL: url };
    const requests = await plannedRequests(all);
    const run = await startCli([...RUN, '--max-wait', '3s'], all);
    await untilAsked(run, requests * 0.3);
    await stopEmbedded({ home, clock: systemClock });
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(75);
    expect(err).not.toMatch(/ECONN|error:/);
    const report = reportOf(out);
    expect(report).toMatchObject({ end: 'stopped', reason: 'the database is away', gaps: null });
    expect(report.stored).toBeGreaterThan(0);
    await startEmbedded({ home, clock: systemClock });
    const next = await runCli(RUN, all);
    expect(next.code, next.err).toBe(0);
    // Only what was in hand is asked again.
    expect(asked()).toBeLessThanOrEqual(requests + 4);
    expect(reportOf(next.out)).toMatchObject({ end: 'done', gaps: [] });
  });

  test('away when Ctrl-C comes does not hold the run up', { timeout: 120_000 }, async () => {
    const { url } = await startEmbedded({ home, clock: systemClock });
    const run = await startCli(['backfill', ...TARGET, '--yes'], { ...settings(), ...env(), DATABASE_URL: url });
    await untilAsked(run, 40);
    const told = untilSaid(run, /the database is away/);
    await stopEmbedded({ home, clock: systemClock });
    await told;
    run.process.kill('SIGINT');
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(130);
    expect(out).toMatch(
      /Interrupted:[\s\S]*stored +[\d,]+ candles[\s\S]*gaps left +not known while the database is away/,
    );
  });
});

describe('the embedded server', () => {
  test('killed with SIGKILL is started again by the run itself, which completes', { timeout: 120_000 }, async () => {
    const all = { ...settings(), CHANDLER_HOME: home };
    const requests = await plannedRequests(all);
    const run = await startCli(RUN, all);
    await untilAsked(run, requests * 0.3);
    const told = untilSaid(run, /the database is back/);
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
