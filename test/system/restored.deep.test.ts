/**
 * A restored backup is the same warehouse, even if it is older than what was fetched and spent since: by `chandler backup` and `chandler
 * restore`, and by the copied folder of the stopped embedded server. It runs as a user would: the built program, in processes of its own.
 */
import { chmodSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { scheduleVariable } from '../../src/ingest/schedule/schedule-plan.ts';
import { SCHEDULE_NAMES } from '../../src/ingest/schedule/schedules.ts';
import { openDatabase } from '../../src/store/connection/connect.ts';
import { startEmbedded, stopEmbedded } from '../../src/store/embedded/embedded.ts';
import type { TestDatabase } from '../support/database.ts';
import { findTestClient } from '../support/postgres-client.ts';
import { type CliResult, runCli, startCli } from '../support/program.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';
import { checkStored } from './oracle.ts';

const KEY = 'the-key';
/** Requests in the month of the account. */
const LIMIT = 100;
/** Concurrent requests without --concurrency. */
const IN_FLIGHT = 8;
const TO = Math.floor(systemClock.now() / DAY) * DAY - 5 * DAY;
/** Requests for one coin. */
const REQUESTS = 20;
const FROM = TO - REQUESTS * 10 * DAY;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const backfill = (...coins: string[]) => ['backfill', ...coins, '--start', day(FROM), '--end', day(TO), '--yes'];

const client = await findTestClient();
const LISTEN = { CHANDLER_LISTEN: '127.0.0.1:0' };
const WAIT = { timeout: 120_000, interval: 200 };

let folder: string;
let upstream: SimulatedUpstream;
/** Coins that begin before the requested span. */
let coins: string[];
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'chandler-restored-'));
  // As root, the embedded server runs as another user, who must be able to enter the folder.
  chmodSync(folder, 0o755);
  upstream = await startUpstream({
    seed: 5,
    coins: 20,
    limits: { keys: { [KEY]: 'business' }, overrides: { requestsPerMonth: LIMIT } },
  });
  const { data } = upstream.simulator;
  coins = [];
  for (const { id } of await data.coins()) {
    const first = await data.ohlcv({
      coinId: id,
      quote: 'usd',
      interval: '24h',
      from: FROM - DAY,
      to: FROM - 1,
      limit: 1,
    });
    if (first?.length === 1) coins.push(id);
  }
});
afterEach(async () => {
  await upstream.close();
  for (const name of ['home', 'copy']) {
    const home = path.join(folder, name);
    if (existsSync(home)) await stopEmbedded({ home, clock: systemClock });
  }
  rmSync(folder, { recursive: true, force: true });
});

type Warehouse = { readonly CHANDLER_HOME: string } | { readonly DATABASE_URL: string };
const home = (name: string): Warehouse => ({ CHANDLER_HOME: path.join(folder, name) });
const attestation = () => path.join(folder, 'attestation.jsonl');

/** A command with this warehouse. Schedules would reserve requests. */
const run = (warehouse: Warehouse, ...args: string[]): Promise<CliResult> => runCli(args, envOf(warehouse));

function envOf(settings: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...Object.fromEntries(SCHEDULE_NAMES.map((name) => [scheduleVariable(name), 'off'])),
    CHANDLER_BASE_URL: upstream.baseUrl,
    CHANDLER_API_KEY: KEY,
    CHANDLER_CANDLES_PER_REQUEST: '10',
    CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
    LOG_LEVEL: 'error',
    ...(client === null ? {} : { PATH: client.path }),
    ...settings,
  };
}

async function done(warehouse: Warehouse, ...args: string[]): Promise<string> {
  const { code, out, err } = await run(warehouse, ...args);
  expect({ code, err: code === 0 ? '' : err }, args.join(' ')).toEqual({ code: 0, err: '' });
  return out;
}

/** The hash of each series. */
async function hashes(warehouse: Warehouse): Promise<Record<string, string>> {
  const proofs = JSON.parse(await done(warehouse, 'verify', '--json')) as { coinId: string; hash: string }[];
  return Object.fromEntries(proofs.map(({ coinId, hash }) => [coinId, hash]));
}

async function counts(warehouse: Warehouse) {
  return (JSON.parse(await done(warehouse, 'verify', '--against', attestation(), '--json')) as { counts: object })
    .counts;
}

/** What the account endpoint says. */
function account() {
  const [told] = upstream.simulator.counters().accounts;
  return { spent: told!.thisMonth, refused: told!.rejected.month };
}

const spentIn = async (warehouse: Warehouse) =>
  (JSON.parse(await done(warehouse, 'quota', '--json')) as { month: { spent: number } }).month.spent;

/** Checks that each candle is the market's, and that each slot has one. */
async function checkCandles(database: Pick<TestDatabase, 'sql'>): Promise<void> {
  await checkStored(
    { clock: systemClock, database: database as TestDatabase, simulator: upstream.simulator },
    'restored',
  );
  const [row] = await database.sql<{ rows: number; slots: number }[]>`
    select count(*)::int as rows, count(distinct (series_id, open_time))::int as slots from market.candle`;
  expect(row!.rows).toBe(row!.slots);
}

async function checkCandlesIn(name: string): Promise<void> {
  const server = await startEmbedded({ home: path.join(folder, name), clock: systemClock });
  const database = await openDatabase({ url: server.url, max: 2 });
  try {
    await checkCandles(database);
  } finally {
    await database.close();
    await server.stop();
  }
}

/** Checks what follows when `restored` is a copy of `original` from before the original fetched another coin. */
async function checkRestored(
  original: Warehouse,
  restored: Warehouse,
  before: Record<string, string>,
  { asksByItself = false } = {},
): Promise<void> {
  expect(await hashes(restored)).toEqual(before);
  expect(await counts(restored)).toMatchObject({ tampered: 0, grown: 0, revised: 0, mended: 0, removed: 0 });
  expect(await spentIn(restored)).toBeLessThan(account().spent);
  // One request, which costs nothing of the month, and the ledger knows what was spent since the backup.
  if (!asksByItself) {
    await done(restored, 'doctor', '--online');
    expect(await spentIn(restored)).toBeGreaterThanOrEqual(account().spent);
  }

  // What the original fetched since the backup is fetched again, with the same values.
  const spent = account().spent;
  await done(restored, ...backfill(coins[0]!, coins[1]!));
  expect(account().spent - spent).toBe(REQUESTS);
  expect(await spentIn(restored)).toBeGreaterThanOrEqual(account().spent);
  expect(await hashes(restored)).toEqual(await hashes(original));
  expect(await counts(restored)).toMatchObject({ tampered: 0, revised: 0, mended: 0, removed: 0 });

  // More than the month has left. It stops before the upstream has to refuse a request.
  const { code } = await run(restored, ...backfill(...coins.slice(2, 5)), '--max-wait', '1s');
  expect(code).toBe(75);
  expect(account().refused).toBe(0);
  expect(account().spent).toBeGreaterThanOrEqual(LIMIT - IN_FLIGHT);
  expect(account().spent).toBeLessThanOrEqual(LIMIT);
  await done(restored, 'verify');
}

describe('a backup that is older than what was spent', () => {
  test('as the copied folder of the stopped embedded server goes on from the time of the copy', async () => {
    const original = home('home');
    await done(original, ...backfill(coins[0]!));
    await done(original, 'attest', '--out', attestation());
    const before = await hashes(original);
    // The last command has stopped the server. The copy keeps neither owners nor times, like `cp -r`.
    expect(existsSync(path.join(folder, 'home/data/postmaster.pid'))).toBe(false);
    cpSync(path.join(folder, 'home'), path.join(folder, 'copy'), { recursive: true });
    await done(original, ...backfill(coins[1]!));
    const restored = home('copy');
    await checkRestored(original, restored, before);
    await checkCandlesIn('copy');
  });

  test('without a request for the account first, has a few requests refused, and then sends none until the next month', async () => {
    const original = home('home');
    await done(original, ...backfill(coins[0]!));
    cpSync(path.join(folder, 'home'), path.join(folder, 'copy'), { recursive: true });
    await done(original, ...backfill(coins[1]!, coins[2]!));
    const restored = home('copy');
    const more = [...backfill(...coins.slice(3, 6)), '--max-wait', '1s'];
    expect((await run(restored, ...more)).code).toBe(75);
    const { spent, refused } = account();
    expect(spent).toBe(LIMIT);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThanOrEqual(IN_FLIGHT);
    expect(await spentIn(restored)).toBeGreaterThanOrEqual(LIMIT);
    expect((await run(restored, ...more)).code).toBe(75);
    expect(account()).toEqual({ spent, refused });
    await done(restored, 'verify');
  });
});

describe.skipIf(client === null)('chandler backup, and chandler restore into a fresh cluster', () => {
  const file = () => path.join(folder, 'backup.dump');

  test('goes on from the time of the backup, and requests the account to learn what was spent since', async () => {
    const original = home('home');
    await done(original, ...backfill(coins[0]!));
    await done(original, 'backup', file());
    cpSync(`${file()}.attestation.jsonl`, attestation());
    const before = await hashes(original);
    await done(original, ...backfill(coins[1]!));
    const restored = home('copy');
    const said = await done(restored, 'restore', file());
    expect(said).toMatch(/^made 2 roles without a login: analyst, chandler_server$/m);
    expect(said).toContain('Nothing that was attested was tampered with.');
    await checkRestored(original, restored, before, { asksByItself: true });
    await checkCandlesIn('copy');
  });

  test('includes the backfill of a killed service, which the restored service completes', async () => {
    const original = home('home');
    await done(original, ...backfill(coins[0]!, coins[1]!), '--detach');
    const slowly = await startCli(['service'], envOf({ ...original, CHANDLER_REQUESTS_PER_SECOND: '5', ...LISTEN }));
    await vi.waitFor(() => expect(account().spent).toBeGreaterThan(4), WAIT);
    slowly.process.kill('SIGKILL');
    await slowly.ended;
    await done(original, 'backup', file());
    expect(account().spent).toBeLessThan(2 * REQUESTS);

    const restored = home('copy');
    await done(restored, 'restore', file());
    const service = await startCli(['service'], envOf({ ...restored, ...LISTEN }));
    await vi.waitFor(async () => {
      const list = JSON.parse(await done(restored, 'backfills', 'list', '--all', '--json')) as { state: string }[];
      expect(list.map(({ state }) => state)).toEqual(['done']);
    }, WAIT);
    service.process.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0 });
    await done(restored, 'verify');
    // At most the requests in flight when the service was killed were sent twice.
    expect(account().spent).toBeLessThanOrEqual(2 * REQUESTS + IN_FLIGHT);
    await checkCandlesIn('copy');
  });
});
