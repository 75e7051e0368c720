import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  abandonExpired,
  backfillTotals,
  finishBackfill,
  renewRun,
  startBackfill,
} from '../../src/store/backfill/backfill.ts';
import {
  readHistoryLimits,
  recordHistoryLimit,
  recordLiftedLimit,
  recordRefusal,
} from '../../src/store/candle/refusal.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import {
  currentAccount,
  makeCurrentAccount,
  readAccount,
  type SavedAccount,
  saveAccount,
} from '../../src/store/quota/account.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { type FetchRow, findFetch, recordFetch } from '../../src/store/work/fetch.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ANONYMOUS } from '../support/sample-records.ts';

const NOON = Date.UTC(2024, 0, 1, 12, 0, 0, 123);
const MINUTE = 60_000;
const span = { from: NOON, to: NOON + 60 * MINUTE };

let database: TestDatabase;
let seriesId: number;
beforeAll(async () => {
  database = await createTestDatabase();
  const coin = { id: 'a-a', name: 'A', symbol: 'A', rank: 1, is_new: false, is_active: true, type: 'coin' };
  await recordCoins(database.sql, [coin], NOON);
  [seriesId = 0] = await wantSeries(database.sql, {
    coinIds: ['a-a'],
    quote: 'usd',
    interval: '1h',
    span,
    priority: 0,
  });
});
afterAll(() => database.drop());

const fetchRow: FetchRow = {
  sentAt: NOON,
  asOf: NOON - 1,
  accountId: 'anonymous@example',
  endpoint: 'ohlcv',
  seriesId: null,
  span: null,
  backfillId: null,
  attempt: 1,
  status: 200,
  outcome: 'stored',
  durationMs: 12.6,
  rows: 366,
  stored: 300,
  revised: 2,
  quarantined: 1,
  bytes: 79_000,
  bodySha256: new Uint8Array(32).fill(7),
  message: null,
};

describe('recordFetch', () => {
  test('stores what was observed, to the millisecond', async () => {
    const id = await recordFetch(database.sql, { ...fetchRow, seriesId, span });
    const [row] = await database.sql`
      select sent_at as sent, as_of, duration_ms, encode(body_sha256, 'hex') as hash, lower(span) as from, rows, quarantined
      from ops.fetch where id = ${id}`;
    expect(row).toEqual({
      sent: NOON,
      asOf: NOON - 1,
      durationMs: 13,
      hash: '07'.repeat(32),
      from: NOON,
      rows: 366,
      quarantined: 1,
    });
  });

  test('finds a request again without reading the whole table', async () => {
    await database.sql`insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, attempt, outcome, duration_ms, rows,
        stored, revised, quarantined, bytes)
      select at, at, 'anonymous@example', 'ohlcv', case when n % 4 > 0 then ${seriesId} + n % 100 end, 1, 'stored', 1, 1, 1, 0, 0, 1
      from (select n, ${NOON}::timestamptz + n * interval '1 second' as at from generate_series(1, 20000) n) rows`;
    const of = { ...fetchRow, seriesId, span, sentAt: NOON + 30_000, asOf: NOON + 30_000 };
    const list = { ...fetchRow, endpoint: 'coins', sentAt: NOON + 40_000, asOf: NOON + 40_000 };
    const ids = [await recordFetch(database.sql, of), await recordFetch(database.sql, list)];
    await database.sql`vacuum analyze ops.fetch`;
    await database.sql.begin(async (tx) => {
      // Postgres may not have counted the earlier reads of this connection yet.
      const scans = async () => {
        const [row] = await tx<
          { n: number }[]
        >`select seq_scan::int as n from pg_stat_xact_user_tables where relid = 'ops.fetch'::regclass`;
        return row!.n;
      };
      const before = await scans();
      expect([(await findFetch(tx, of))?.id, (await findFetch(tx, list))?.id]).toEqual(ids);
      expect(await findFetch(tx, { ...of, seriesId: null })).toBeNull();
      expect(await findFetch(tx, { ...list, seriesId })).toBeNull();
      // In a table with millions of rows, no look-up may read all of them.
      expect((await scans()) - before).toBe(0);
    });
  });

  test('accepts any text as a message of the upstream', async () => {
    const message = `\0<html>\ud800${'x'.repeat(10_000)}`;
    const id = await recordFetch(database.sql, { ...fetchRow, status: null, bodySha256: null, message });
    const [row] = await database.sql<{ length: number }[]>`select length(message) from ops.fetch where id = ${id}`;
    expect(row?.length).toBe(2_000);
  });
});

describe('refusals', () => {
  test('a history limit is stored once per plan and interval, and the latest one counts', async () => {
    const limit = { plan: 'free', interval: '24h', message: 'one day', refusedAt: NOON } as const;
    await recordHistoryLimit(database.sql, { ...limit, depthMs: 86_400_000 });
    await recordHistoryLimit(database.sql, { ...limit, depthMs: 30 * 86_400_000, message: '30 days' });
    await recordHistoryLimit(database.sql, { ...limit, interval: '1h', depthMs: null, message: 'not in plan' });
    await recordHistoryLimit(database.sql, { ...limit, plan: 'pro', depthMs: 1000 });
    expect([...(await readHistoryLimits(database.sql, 'free'))]).toEqual([
      { interval: '1h', open: false, depthMs: null, message: 'not in plan', learnedAt: NOON },
      { interval: '24h', open: false, depthMs: 30 * 86_400_000, message: '30 days', learnedAt: NOON },
    ]);
    await recordLiftedLimit(database.sql, { plan: 'free', interval: '24h', liftedAt: NOON });
    expect((await readHistoryLimits(database.sql, 'free'))[1]).toEqual({
      interval: '24h',
      open: true,
      depthMs: null,
      message: '',
      learnedAt: NOON,
    });
    await recordHistoryLimit(database.sql, { ...limit, depthMs: 5_000 });
    expect((await readHistoryLimits(database.sql, 'free'))[1]).toMatchObject({ open: false, depthMs: 5_000 });
  });

  test('of one series are stored with span and plan, and renewed instead of repeated', async () => {
    const refusal = { plan: 'free', seriesId, span, reason: 'bad request', message: 'first', refusedAt: NOON } as const;
    await recordRefusal(database.sql, refusal);
    await recordRefusal(database.sql, { ...refusal, reason: 'forbidden', message: 'second', refusedAt: NOON + 1 });
    const forever = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
    await recordRefusal(database.sql, { ...refusal, plan: 'pro', span: forever, reason: 'unknown coin' });
    const rows = await database.sql`
      select account_plan, span, reason, message, refused_at
      from market.refusal where series_id = ${seriesId} order by account_plan`;
    expect([...rows]).toEqual([
      { accountPlan: 'free', span, reason: 'forbidden', message: 'second', refusedAt: NOON + 1 },
      { accountPlan: 'pro', span: forever, reason: 'unknown coin', message: 'first', refusedAt: NOON },
    ]);
  });
});

describe('accounts', () => {
  const keyed: SavedAccount = {
    ...ANONYMOUS,
    id: 'key-0123456789ab@example',
    plan: 'business',
    authScheme: 'bare',
    accountPath: '/key/info',
    checkedAt: NOON,
    monthLimit: 5_000_000_000,
  };

  test('are read back as they were saved; one of them is the current one', async () => {
    expect(await currentAccount(database.sql)).toBeNull();
    await saveAccount(database.sql, ANONYMOUS);
    await saveAccount(database.sql, { ...keyed, plan: 'free', authScheme: null });
    await saveAccount(database.sql, keyed);
    await makeCurrentAccount(database.sql, ANONYMOUS.id);
    await makeCurrentAccount(database.sql, keyed.id);
    expect(await currentAccount(database.sql)).toEqual(keyed);
    expect(await readAccount(database.sql, ANONYMOUS.id)).toEqual(ANONYMOUS);
    expect(await readAccount(database.sql, 'nobody')).toBeNull();
  });

  test('when several commands choose an account at once, exactly one is current', async () => {
    await saveAccount(database.sql, ANONYMOUS);
    await saveAccount(database.sql, keyed);
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => makeCurrentAccount(database.sql, i % 2 ? ANONYMOUS.id : keyed.id)),
    );
    expect(await database.sql`select from ops.account where is_current`).toHaveLength(1);
  });
});

async function readBackfill(id: number) {
  const [row] = await database.sql`
    select id, state, spec, span, interval, quote, planned_requests, owner, requested_at, started_at, finished_at, heartbeat_at
    from ops.backfill where id = ${id}`;
  return row;
}

describe('backfills', () => {
  const started = {
    requestedAt: NOON - 1,
    startedAt: NOON,
    spec: { coins: ['a-a'], start: '-30d' },
    span,
    interval: '1h',
    quote: 'usd',
    plannedRequests: 12,
    owner: 'host:1',
  } as const;

  test('the figures of a backfill are counted from the requests it sent', async () => {
    const id = await startBackfill(database.sql, started);
    expect(await readBackfill(id)).toEqual({ id, ...started, state: 'running', finishedAt: null, heartbeatAt: NOON });
    await recordFetch(database.sql, { ...fetchRow, backfillId: id });
    await recordFetch(database.sql, { ...fetchRow, backfillId: id });
    await recordFetch(database.sql, {
      ...fetchRow,
      backfillId: id,
      outcome: 'unavailable',
      rows: 0,
      stored: 0,
      revised: 0,
      quarantined: 0,
    });
    expect(await backfillTotals(database.sql, id)).toEqual({
      requests: 3,
      rows: 732,
      stored: 600,
      revised: 4,
      quarantined: 2,
      byOutcome: { stored: 2, unavailable: 1 },
    });
    expect(await backfillTotals(database.sql, 999_999)).toMatchObject({ requests: 0, stored: 0, byOutcome: {} });

    await finishBackfill(database.sql, id, 'done', NOON + MINUTE);
    await finishBackfill(database.sql, id, 'failed', NOON + 2 * MINUTE);
    expect(await readBackfill(id)).toMatchObject({ state: 'done', finishedAt: NOON + MINUTE });
    expect(await renewRun(database.sql, id, NOON)).toBe(false);
  });

  test('a backfill whose owner stopped sending heartbeats is interrupted; one whose owner sends them is not', async () => {
    const silent = await startBackfill(database.sql, started);
    const alive = await startBackfill(database.sql, started);
    expect(await renewRun(database.sql, alive, NOON + 10 * MINUTE)).toBe(true);
    expect(await abandonExpired(database.sql, NOON + 10 * MINUTE)).toEqual([silent]);
    expect(await readBackfill(silent)).toMatchObject({ state: 'interrupted', finishedAt: NOON });
    expect(await readBackfill(alive)).toMatchObject({ state: 'running' });
  });
});
