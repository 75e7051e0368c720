/** A run on its own Postgres, which can be stopped and killed. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createClient } from '../../src/store/connection/connect.ts';
import { startEmbedded, stopEmbedded } from '../../src/store/embedded/embedded.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, testRedisUrl } from '../support/database.ts';
import { type RunningCli, startCli } from '../support/program.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';
import { until } from '../support/until.ts';

export const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
export const FROM = TO - 400 * DAY;
export const day = (at: number) => new Date(at).toISOString().slice(0, 10);
export const TARGET = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin', '--start', day(FROM), '--end', day(TO)];
export const RUN = ['backfill', ...TARGET, '--yes', '--json', '--concurrency', '4'];

export let home: string;
export let upstream: SimulatedUpstream;

export const settings = () => ({
  CHANDLER_BASE_URL: upstream.baseUrl,
  CHANDLER_PLAN: 'enterprise',
  CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
  CHANDLER_CANDLES_PER_REQUEST: '10',
});
export const asked = () => upstream.asked();

/** The number of requests that an empty warehouse plans for the run. It uses another database, because the test's server would be started for it. */
export async function plannedRequests(): Promise<number> {
  const empty = await createTestDatabase();
  try {
    const env = { ...settings(), DATABASE_URL: empty.url };
    const { out } = await runCommand(['plan', ...TARGET, '--json'], { env });
    return (JSON.parse(out) as { requests: number }).requests;
  } finally {
    await empty.drop();
  }
}

/** Resolves when so many requests have arrived, or the run has ended. */
export async function untilAsked(run: RunningCli, requests: number): Promise<void> {
  while (asked() < requests && run.process.exitCode === null) await systemClock.sleep(5);
}

/** The requests of the run as the ledger, the records and the upstream have them. */
export async function spentOf(url: string) {
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

export type Report = {
  backfill: { end: string; reason?: string; requests: number; stored: number; gaps: unknown[] | null };
};
export const reportOf = (out: string) => (JSON.parse(out) as Report).backfill;

export const engines = [
  ['Postgres', () => ({})],
  ...(testRedisUrl() === null ? [] : [['Redis', () => ({ REDIS_URL: testRedisUrl()! })] as const]),
] as const;

/** Each test has a folder for its own server, and an upstream. */
export function useServer(): void {
  beforeEach(async () => {
    home = mkdtempSync(path.join(os.tmpdir(), 'chandler-away-'));
    // As root, the server runs as another user, who must be able to enter the folder.
    chmodSync(home, 0o755);
    upstream = await startUpstream({ seed: 5, coins: 20, latencyMs: 15 });
  });
  afterEach(async () => {
    await upstream.close();
    await stopEmbedded({ home, clock: systemClock });
    rmSync(home, { recursive: true, force: true });
  });
}

/** Resolves when standard error has printed this so many times since the start of the run, or the run has ended. */
function untilSaidTimes({ process: child }: RunningCli, what: RegExp): (times: number) => Promise<void> {
  let said = '';
  child.stderr!.on('data', (part: Buffer) => (said += part));
  return (times) => until(() => (said.match(what) ?? []).length >= times || child.exitCode !== null);
}

/** `shares` of the requests after which the database is stopped and started again. */
export function testStoppedAndStarted(env: () => Record<string, string>, shares: readonly number[]): void {
  test('is waited for when stopped and started again: the run says so, goes on, and requests nothing twice', async () => {
    const { url } = await startEmbedded({ home, clock: systemClock });
    const all = { ...settings(), ...env(), DATABASE_URL: url };
    const requests = await plannedRequests();
    const most = shares.map((share) => Math.round(requests * share));
    upstream.answerOnly(most[0]!);
    const run = await startCli(RUN, all);
    const untilOutage = untilSaidTimes(run, /the database is unavailable; waiting up to/g);
    const untilRecovery = untilSaidTimes(run, /the database recovered/g);
    for (const [i, asked] of most.entries()) {
      await untilAsked(run, asked);
      await stopEmbedded({ home, clock: systemClock });
      // The requests in flight are answered, and cannot be stored.
      upstream.answerOnly(most[i + 1] ?? Number.POSITIVE_INFINITY);
      await untilOutage(i + 1);
      expect((await startEmbedded({ home, clock: systemClock })).url).toBe(url);
      await untilRecovery(i + 1);
    }
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    // Once for each stop: the error that ended a session is not taken for another outage when its connection is used again.
    expect(err.match(/the database is unavailable; waiting up to/g), err).toHaveLength(shares.length);
    expect(err).not.toMatch(/ECONN|error:/);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests, gaps: [] });
    expect(asked()).toBe(requests);
    const { ledger, recorded, stored } = await spentOf(url);
    expect([recorded, stored]).toEqual([requests, requests]);
    // A permit whose grant reached no caller stays counted.
    expect(ledger).toBeGreaterThanOrEqual(requests);
    expect(ledger).toBeLessThanOrEqual(requests + shares.length * 4);
    expect((await runCommand(['verify', '--json'], { env: all })).code).toBe(0);
  });
}
