/** While another session holds a lock, every command that says why nothing happens names that session, and no wrong cause. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { DEFAULT_RETENTION } from '../../../src/core/settings/retention-settings.ts';
import { claimBackfill, queueBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { removeOld } from '../../../src/store/upkeep/retention.ts';
import { renewInstance } from '../../../src/store/work/instance.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const DAY = 86_400_000;
const SPAN = { from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 2, 1) };
/** On another machine, so that nobody can check whether its process lives. */
const OWNER = 'elsewhere:1';

let database: TestDatabase;
/** A connection like that of a service. */
let service: Sql;
let holder: { readonly pid: number; release(): Promise<void> };

async function hold(lock: string): Promise<typeof holder> {
  const sql = createClient({ url: database.url, max: 1, applicationName: 'chandler test' });
  const [me] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  await sql.unsafe('begin');
  await sql.unsafe(lock);
  return { pid: me!.pid, release: () => sql.end({ timeout: 0 }) };
}

const run = (...argv: string[]) =>
  runCommand(argv, { env: { DATABASE_URL: database.url, CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1' } });

async function chandler(...argv: string[]): Promise<string> {
  const { code, out, err } = await run(...argv);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

beforeAll(async () => {
  database = await createTestDatabase();
  service = createClient({ url: database.url, max: 1 });
  const { sql } = database;
  await sql`
    insert into market.coin (id, name, symbol, rank, is_new, is_active, type, first_seen_at, last_seen_at, rank_seen_at)
    values ('btc-bitcoin', 'Bitcoin', 'BTC', 1, false, true, 'coin', now(), now(), now())`;
  const target = { coinIds: ['btc-bitcoin'], interval: '24h', quote: 'usd', span: SPAN } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  const now = Date.now();
  const requested = { requestedAt: now - DAY, requestedBy: 'ann@desk', plannedRequests: 90, spec: {}, priority: 0 };
  await queueBackfill(sql, { ...target, ...requested });
  await queueBackfill(sql, { ...target, ...requested });
  // A service that has not renewed its leases recently.
  const silentSince = now - 60_000;
  await renewInstance(sql, { owner: OWNER, startedAt: now - DAY, heartbeatAt: silentSince, roles: ['worker'] });
  await claimBackfill(sql, { owner: OWNER, now: silentSince });
  await sql`
    insert into ops.backfill (requested_at, state, is_detached, spec, coin_ids, span, interval, quote, planned_requests, owner, heartbeat_at, started_at)
    values (now(), 'running', false, '{}', '{btc-bitcoin}', '[2024-01-01, 2024-02-01)', '1h', 'usd', 3, 'elsewhere:2',
      now() - interval '1 minute', now() - interval '1 hour')`;
});
afterAll(async () => {
  await service.end({ timeout: 5 });
  await database.drop();
});

const WRONG = /a running service takes it over|was killed|No service is running|It advances|is ready/;

describe.each([
  {
    what: 'that keeps readers out, and nobody waits for it',
    lock: 'lock table market.candle in access exclusive mode',
    waits: null,
  },
  {
    what: 'that lets readers in, and a service waits for it',
    lock: 'lock table ops.backfill in share mode',
    waits: (sql: Sql) => sql.unsafe('set lock_timeout = 0; update ops.backfill set priority = priority where id = 1'),
  },
])('while another session holds a lock $what', ({ lock, waits }) => {
  let said: RegExp;
  let waiting: Promise<unknown> = Promise.resolve();
  beforeAll(async () => {
    holder = await hold(lock);
    if (waits !== null) waiting = Promise.resolve(waits(service)).catch((error: unknown) => error);
    said = new RegExp(
      `[Ss]ession ${holder.pid} \\(user '\\w+', chandler test\\) holds a lock that Chandler needs, in a transaction since .*Z.*select pg_terminate_backend\\(${holder.pid}\\)`,
    );
    // Chandler does not report a lock that is held for a moment.
    await vi.waitFor(async () => expect(await chandler('status')).toMatch(said), { timeout: 60_000, interval: 250 });
  });
  afterAll(async () => {
    await holder.release();
    expect(await waiting).not.toBeInstanceOf(Error);
  });

  test('status lists it among the problems, and calls no process dead', async () => {
    const out = await chandler('status');
    const problems = out.slice(out.indexOf('Problems, the oldest first'));
    expect(problems).toMatch(new RegExp(`ago +lock +1 +${said.source}`));
    expect(problems).toMatch(/ backfill 1 +1 +its process elsewhere:1 sends no heartbeat; it may wait for the lock$/m);
    expect(problems).toMatch(/ service elsewhere:1 +1 +it sends no heartbeat; it may wait for the lock$/m);
    expect(out).toMatch(/^No service sends a heartbeat: none runs, or it waits for the lock\.$/m);
    expect(out).toMatch(/^Backfill 1 .*: no heartbeat since .*\nIts process elsewhere:1 may wait for the lock\.$/m);
    expect(out).not.toMatch(WRONG);
    const { now } = JSON.parse(await chandler('status', '--json'));
    expect(now.problems).toContainEqual({
      what: 'lock',
      times: 1,
      since: expect.stringMatching(/Z$/),
      message: expect.stringMatching(said),
    });
  });

  test.each([1, 2])('backfills show gives it as the first reason: backfill %i', async (id) => {
    const { reasons } = JSON.parse(await chandler('backfills', 'show', String(id), '--json'));
    expect(reasons[0]).toMatch(said);
    const out = await chandler('backfills', 'show', String(id));
    expect(out).toMatch(said);
    expect(out).not.toMatch(WRONG);
    if (id === 1) expect(reasons).toContain('Its process elsewhere:1 sends no heartbeat; it may wait for the lock.');
  });

  test('backfills list shows it below the table', async () => {
    const out = await chandler('backfills', 'list');
    expect(out).toMatch(new RegExp(`^${said.source}\\.$`, 'm'));
    expect(out).not.toMatch(WRONG);
  });

  test('doctor fails, because the service is not ready', async () => {
    const { code, out } = await run('doctor');
    expect(code).toBe(1);
    expect(out).toMatch(new RegExp(`^FAIL {2}lock +session ${holder.pid} .* that Chandler needs`, 'm'));
    expect(out).toMatch(/^ +→ let it end its transaction, or end the session: select pg_terminate_backend/m);
    expect(out).toMatch(/^warn {2}backfill 3 .*\n +→ it may wait for the lock\. /m);
    expect(out).not.toMatch(WRONG);
    const checks = JSON.parse((await run('doctor', '--json')).out);
    expect(checks).toContainEqual(expect.objectContaining({ name: 'lock', state: 'fail' }));
  });

  test('schedule shows it beside what comes next', async () => {
    const out = await chandler('schedule');
    expect(out).toMatch(/^Next: .*; backfill 1, 3 continues, or waits for the lock/m);
    expect(out).toMatch(new RegExp(`^${said.source}\\.$`, 'm'));
  });
});

test('no command mentions a lock while retention waits for a reader like pg_dump: it waits until the next run, and holds up nobody', async () => {
  await ensurePartitionsOf(database.sql, TICKER_HISTORY, SPAN);
  holder = await hold('select from market.ticker_history');
  const keep = { ...DEFAULT_RETENTION, tickers: 30 * DAY };
  const removing = removeOld(database, { keep, now: Date.now() });
  const waits = () => database.sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like '%detach partition%' and query_start < clock_timestamp() - interval '4 seconds'`;
  await vi.waitFor(async () => expect(await waits()).toHaveLength(1), { timeout: 60_000, interval: 250 });
  const status = await chandler('status');
  const { out } = await run('doctor');
  expect(await waits()).toHaveLength(1);
  await holder.release();
  expect((await removing).partitions).toContain('ticker_history_2024m01');
  expect(status).not.toMatch(/\block\b/);
  expect(out).not.toMatch(/\block\b/);
});

test('the reader for which retention waits is named if other work waits behind retention', async () => {
  await ensurePartitionsOf(database.sql, TICKER_HISTORY, SPAN);
  holder = await hold('select from market.ticker_history');
  // An earlier run stopped waiting.
  const partition = 'market.ticker_history detach partition market.ticker_history_2024m01';
  await service.unsafe('set statement_timeout = 1000');
  await expect(service.unsafe(`alter table ${partition} concurrently`)).rejects.toThrow();
  await service.unsafe('reset statement_timeout');
  const removing = removeOld(database, { keep: { ...DEFAULT_RETENTION, tickers: 30 * DAY }, now: Date.now() });
  const waits = (what: string) => database.sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like ${`%${what}%`} and query_start < clock_timestamp() - interval '4 seconds'`;
  const waiting = (what: string) =>
    vi.waitFor(async () => expect(await waits(what)).toHaveLength(1), { timeout: 60_000 });
  await waiting('finalize');
  const later = { from: Date.UTC(2025, 0, 1), to: Date.UTC(2025, 1, 1) };
  const attaching = ensurePartitionsOf(service, TICKER_HISTORY, later);
  await waiting('attach partition');
  const status = await chandler('status');
  await holder.release();
  // Postgres may end one of the two as a deadlock, and it then tries again later.
  await Promise.allSettled([removing, attaching]);
  expect(status).toContain(`session ${holder.pid} (`);
});

test('no command mentions a lock when no lock is held', async () => {
  for (const argv of [['status'], ['backfills', 'show', '1'], ['backfills', 'list']])
    expect(await chandler(...argv)).not.toMatch(/\block\b/);
  expect((await run('doctor')).out).not.toMatch(/\block\b/);
});
