/** The questions of the night, each answered on one screen: why is nothing sent, what was spent, what comes next, what failed first. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { UNKNOWN_FINISH } from '../../../src/store/backfill/backfill-finish.ts';
import {
  changeBackfill,
  claimBackfill,
  queueBackfill,
  renewClaim,
} from '../../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordFetch } from '../../../src/store/work/fetch.ts';
import { renewInstance } from '../../../src/store/work/instance.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createJumpingClock } from '../../support/jumping-clock.ts';

const NOON = Date.UTC(2026, 10, 3, 12);
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const ACCOUNT = 'anonymous@127.0.0.1:9';
const SPAN = { from: NOON - 100 * DAY, to: NOON - 10 * DAY };

let database: TestDatabase;
let clock: ReturnType<typeof createJumpingClock>;
beforeEach(async () => {
  database = await createTestDatabase();
  clock = createJumpingClock({ speed: 0, startAt: NOON });
  await database.sql`
    insert into market.coin (id, name, symbol, rank, is_new, is_active, type, first_seen_at, last_seen_at, rank_seen_at)
    values ('btc-bitcoin', 'Bitcoin', 'BTC', 1, false, true, 'coin', ${NOON}, ${NOON}, ${NOON})`;
});
afterEach(() => database.drop());

async function chandler(...argv: string[]): Promise<string> {
  const env = {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1',
    CHANDLER_DAILY_REQUESTS: '100',
  };
  const { code, out, err } = await runCommand(argv, { env, clock });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

async function record(priority = 0): Promise<number> {
  const target = { coinIds: ['btc-bitcoin'], interval: '24h', quote: 'usd', span: SPAN } as const;
  await wantSeries(database.sql, { ...target, priority: 0 });
  const requested = { requestedAt: NOON - HOUR, requestedBy: 'ann@desk', plannedRequests: 90 };
  return queueBackfill(database.sql, { ...target, ...requested, spec: {}, priority });
}

const beService = () =>
  renewInstance(database.sql, { owner: 'a:1', startedAt: NOON - HOUR, heartbeatAt: NOON, roles: ['worker'] });

/** The service a:1 runs the backfill and reports its progress. */
async function run(left: number, retrying = 0): Promise<number> {
  const { sql } = database;
  await beService();
  const { id } = (await claimBackfill(sql, { owner: 'a:1', now: NOON }))!;
  const iso = (at: number) => new Date(at).toISOString();
  const wait = { coinId: 'btc-bitcoin', from: iso(SPAN.from), to: iso(SPAN.from + DAY), attempts: 2 };
  const waits = [{ ...wait, until: iso(NOON + 12 * SECOND), reason: 'btc-bitcoin 24h: status 500' }];
  const chunks = {
    inProgress: 4,
    queued: 20,
    retrying,
    retryFrom: retrying > 0 ? iso(NOON + 12 * SECOND) : null,
    retryTo: retrying > 0 ? iso(NOON + 2 * MINUTE) : null,
    waits: retrying > 0 ? waits : [],
  };
  const finish = { ...UNKNOWN_FINISH, at: NOON + HOUR, from: NOON + HOUR / 2, to: NOON + 2 * HOUR };
  await renewClaim(sql, {
    id,
    owner: 'a:1',
    now: NOON,
    claimedAt: NOON,
    known: { leftRequests: left, finish, chunks },
  });
  return id;
}

async function answer(backfillId: number | null, outcome: string, sentAt: number, endpoint = 'ohlcv'): Promise<void> {
  const [series] = await database.sql<{ id: number }[]>`select id from market.series limit 1`;
  await recordFetch(database.sql, {
    sentAt,
    asOf: sentAt,
    accountId: ACCOUNT,
    endpoint,
    seriesId: backfillId === null ? null : series!.id,
    span: backfillId === null ? null : { from: SPAN.from, to: SPAN.from + DAY },
    backfillId,
    attempt: 2,
    status: outcome === 'stored' ? 200 : 500,
    outcome,
    durationMs: 20,
    rows: 0,
    stored: 0,
    revised: 0,
    quarantined: 0,
    bytes: 0,
    bodySha256: null,
    message: outcome === 'stored' ? null : `${endpoint} answered 500`,
  });
}

describe('backfills show says why a backfill does not advance', () => {
  test.each([
    ['no service runs', async () => record(), 'No service is running. Start one with: chandler service'],
    [
      'it is paused',
      async () => {
        const id = await record();
        await changeBackfill(database.sql, id, 'pause', NOON);
        return id;
      },
      'It is paused. Continue it with: chandler backfills resume 1',
    ],
    [
      'another one is more urgent',
      async () => {
        const id = await record();
        await record(5);
        await run(90);
        return id;
      },
      'Backfill 2 goes before it.',
    ],
    [
      "the day's requests are used up",
      async () => {
        await record();
        await database.sql`insert into ops.quota (account_id, day_start, day_spent) values (${ACCOUNT}, ${NOON - DAY / 2}, 100)`;
        return run(90);
      },
      'Of the requests of the day 100 of 100 are sent: backfills wait until 2026-11-04 00:00Z (in 12h).',
    ],
    [
      'upstream is away',
      async () => {
        await record();
        await database.sql`insert into ops.quota (account_id, down_until, down_message) values (${ACCOUNT}, ${NOON + MINUTE}, 'status 502')`;
        return run(90);
      },
      'All requests wait until 2026-11-03 12:01Z (in 1m): the upstream gives no valid answers. It said: status 502',
    ],
    [
      'all that is left waits for a retry',
      async () => {
        await record();
        return run(2, 2);
      },
      'All remaining chunks wait for a retry, the first until 2026-11-03 12:00:12Z (in 12 s).',
    ],
    [
      'its process has died',
      async () => {
        await record();
        const id = await run(90);
        clock.advanceTo(NOON + MINUTE);
        return id;
      },
      'Its process a:1 sends no heartbeat; a running service takes it over.',
    ],
  ])('%s', async (_why, make, reason) => {
    const id = await make();
    expect(await chandler('backfills', 'show', String(id))).toContain(`\n${reason}\n`);
    const json = JSON.parse(await chandler('backfills', 'show', String(id), '--json'));
    expect(json).toMatchObject({ id, reasons: expect.arrayContaining([reason]) });
  });

  test('where its chunks wait, when it will be done, and its last failures', async () => {
    await record();
    const id = await run(30, 3);
    await answer(id, 'stored', NOON - 9 * SECOND);
    await answer(id, 'unavailable', NOON - 5 * SECOND);
    const out = await chandler('backfills', 'show', String(id));
    expect(out).toMatch(/^Backfill 1: 24h usd, .* 1 coin$/m);
    expect(out).toMatch(/^ {2}state +running by a:1, last heartbeat now$/m);
    expect(out).toMatch(/^ {2}requested +1h ago by ann@desk$/m);
    expect(out).toMatch(/^ {2}progress +66.7%, 30 requests left of 90$/m);
    expect(out).toMatch(/^ {2}done +between 12:30Z and 14:00Z$/m);
    expect(out).toMatch(/^ {2}chunks +4 in progress, 20 queued, 3 waiting for a retry$/m);
    expect(out).toContain('It advances: its last request was sent 5 s ago.');
    expect(out).toContain('Chunks that wait for a retry (1 of 3)');
    expect(out).toMatch(
      /^btc-bitcoin +2026-07-26 12:00Z … .* 2026-11-03 12:00:12Z \(in 12 s\) +2 +btc-bitcoin 24h: status 500$/m,
    );
    expect(out).toMatch(/^5 s ago +btc-bitcoin .* 2 +500 +unavailable +ohlcv answered 500$/m);
  });

  test('or that there is no backfill of this number', async () => {
    const { code, err } = await runCommand(['backfills', 'show', '7'], {
      env: { DATABASE_URL: database.url, CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1' },
      clock,
    });
    expect({ code, err }).toEqual({
      code: 2,
      err: 'error: There is no backfill 7; chandler backfills list --all shows all.\n',
    });
  });
});

test('backfills list shows how many chunks wait for a retry and until when, the range of the end, and progress that never falls', async () => {
  await record();
  const id = await run(30, 3);
  const list = await chandler('backfills', 'list');
  expect(list).toMatch(/ 66\.7% .* between 12:30Z and 14:00Z$/m);
  expect(list).toContain(
    '1: 3 chunks wait for a retry until 2026-11-03 12:00:12Z (in 12 s), the last one until 2026-11-03 12:02Z (in 2m)\n',
  );
  // After a pause it was planned again: more is left than before.
  await changeBackfill(database.sql, id, 'pause', NOON);
  await changeBackfill(database.sql, id, 'resume', NOON);
  await run(60);
  const [row] = JSON.parse(await chandler('backfills', 'list', '--json'));
  expect(row).toMatchObject({ leftRequests: 60, retrying: 0, retryFrom: null });
  expect(row.progress).toBeCloseTo(2 / 3, 3);
});

describe('status', () => {
  test('says why nothing happens, what failed first, and what comes next', async () => {
    expect(await chandler('status')).toMatch(
      /^No service is running, so no schedule runs\. Start one with: chandler service$/m,
    );
    await record();
    await run(30, 3);
    await record(-1);
    await database.sql`update ops.quota set down_until = ${NOON + MINUTE}, down_message = 'status 502'`;
    await answer(null, 'unavailable', NOON - 40 * MINUTE, 'tickers');
    await answer(null, 'stored', NOON - 30 * MINUTE, 'tickers');
    await answer(null, 'unavailable', NOON - 20 * MINUTE, 'global');
    await answer(1, 'unavailable', NOON - 10 * MINUTE);
    await answer(null, 'unavailable', NOON - 5 * MINUTE, 'global');
    const out = await chandler('status');
    expect(out).toMatch(/^1 service runs: a:1\.$/m);
    expect(out).toMatch(/^All requests wait until 2026-11-03 12:01Z \(in 1m\): the upstream gives no valid answers\./m);
    expect(out).toMatch(/^Backfills: 1 running, 1 queued; 3 chunks wait for a retry /m);
    expect(out).toMatch(/^Next: .*; backfill 1 continues; the next backfill to begin is 2\.$/m);
    const problems = out.slice(out.indexOf('Problems, the oldest first'));
    expect(problems).toMatch(
      /20m ago +requests for global +2 +global answered 500\n10m ago +requests for ohlcv +1 +ohlcv answered 500\n/,
    );
    // It was answered since.
    expect(problems).not.toContain('tickers');
  });
});

test('schedule says what runs next', async () => {
  await record();
  await beService();
  expect(await chandler('schedule')).toMatch(/^Next: \S+ in .*; the next backfill to begin is 1\.$/m);
});

test('quota says who spent what today, and for what', async () => {
  await record();
  const today = { month: Date.UTC(2026, 10, 1), day: NOON - DAY / 2 };
  await database.sql`
    insert into ops.quota_spent (account_id, month_start, class, name, month_spent, day_start, day_spent) values
      (${ACCOUNT}, ${today.month}, 'scheduled', 'tickers', 70, ${today.day}, 3),
      (${ACCOUNT}, ${today.month}, 'backfill', 'backfill 1', 9, ${today.day}, 9)`;
  const out = await chandler('quota');
  expect(out).toMatch(/^backfill 1 +backfill +9 +9 +24h usd, 1 coin, ann@desk\ntickers +scheduled +3 +70/m);
});
