/** What `track add` does and prints about the past, against the simulator. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { planOf } from '../../../src/contract/plan/plans.ts';
import { readLearnedLimits } from '../../../src/ingest/limits/learned-limits.ts';
import { auditGaps } from '../../../src/ingest/tracking/audit.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { renewInstance } from '../../../src/store/work/instance.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createJumpingClock } from '../../support/jumping-clock.ts';

const DAY = 86_400_000;
const NOON = Date.UTC(2026, 10, 3, 12);
const clock = createJumpingClock({ speed: 1, startAt: NOON });
let server: Listening;
let database: TestDatabase;
let env: Record<string, string>;

async function chandler(...argv: string[]): Promise<string> {
  const { code, out, err } = await runCommand(argv, { env, clock });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}
const json = async (...argv: string[]) => JSON.parse(await chandler(...argv, '--json'));

beforeAll(async () => {
  const onError = (error: unknown) => {
    throw error;
  };
  server = await listen(createSimulator({ market: 'made-up', coins: 20, clock, unlimited: true, onError }).fetch, {
    host: '127.0.0.1',
    port: 0,
  });
});
afterAll(() => server.close());
beforeEach(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${server.url}/v1`, CHANDLER_PLAN: 'enterprise' };
});
afterEach(() => database.drop());

test('track add queues the past at once, and says which service fetches it', async () => {
  const said = await chandler('track', 'add', 'btc-bitcoin', 'eth-ethereum', '--since', '2022-01-01');
  expect(said).toContain(
    [
      '',
      'Backfill 1 fetches the past of 2 coins, 24h candles in usd, from 2022-01-01 to 2025-11-03: 8 requests, priority -10.',
      'No service is running: start one with chandler service to run it. chandler backfills list shows its progress.',
      '',
    ].join('\n'),
  );
  expect(await json('backfills', 'list')).toMatchObject([
    { id: 1, state: 'queued', priority: -10, coins: 2, leftRequests: 8, requestedBy: 'the audit of gaps' },
  ]);
  // The schedule finds nothing more to queue.
  const plan = planOf('enterprise');
  const historyLimits = await readLearnedLimits(database.sql, clock, plan);
  expect(await auditGaps({ sql: database.sql, clock, plan, historyLimits })).toEqual([]);
  // Another coin with the same start does not wait until the first ones are done.
  await renewInstance(database.sql, { owner: 'h:1', startedAt: NOON, heartbeatAt: clock.now(), roles: ['worker'] });
  const { past } = await json('track', 'add', 'ltc-litecoin', '--since', '2022-01-01');
  expect(past).toMatchObject({ backfills: [{ id: 2, coins: 1, requests: 4 }], isServed: true, beyondPlan: [] });
  expect(await chandler('track', 'add', 'ltc-litecoin', '--since', '2022-01-01')).not.toContain('Backfill');
});

test('track add queues nothing that open backfills already fetch, and says so', async () => {
  await chandler('backfill', 'btc-bitcoin', '--start', '2022-01-01', '--detach');
  const said = await chandler('track', 'add', 'btc-bitcoin', '--since', '2022-01-01');
  expect(said).toMatch(/\nOpen backfills fetch 1,7\d\d slots of the past already \(chandler backfills list\)\.\n/);
  expect(await json('backfills', 'list')).toHaveLength(1);
  // A second backfill counts only its own slots.
  const again = await chandler('backfill', 'btc-bitcoin', 'eth-ethereum', '--start', '2022-01-01', '--detach');
  expect(again).toMatch(
    /\nBackfills that go before it fetch 1,7\d\d slots of it already; it sends the 5 requests for the rest\.\n$/,
  );
  expect(await json('backfills', 'list')).toMatchObject([
    { id: 1, leftRequests: 5 },
    { id: 2, leftRequests: 5, plannedRequests: 5 },
  ]);
});

test('track add queues nothing when the schedule of gaps is off, and says so', async () => {
  env.CHANDLER_SCHEDULE_GAPS = 'off';
  const said = await chandler('track', 'add', 'btc-bitcoin', '--since', '2022-01-01');
  expect(said).toMatch(/\nThe schedule gaps is off, so nothing fetches the past of tracked series\.\n$/);
  expect(await json('backfills', 'list')).toEqual([]);
});

test('track add says what lies beyond the plan, and which prices there are in its place', async () => {
  env.CHANDLER_PLAN = 'free';
  expect(await chandler('track', 'add', 'btc-bitcoin', '--since', '-90d')).toMatch(
    /\n\d\d slots lie beyond the documented limit: plan free shows only the last 1d\. Of daily candles, only the last full day becomes final; older ones stay gaps\.\nPrices instead of candles, daily: the last 365d, 1 request for up to 9\d rows:\nchandler track add btc-bitcoin --since -90d --series prices --interval 1d\n$/,
  );
  env.CHANDLER_PLAN = 'starter';
  expect(await chandler('track', 'add', 'eth-ethereum', '--since', '2010-01-01')).toMatch(
    /\n[\d,]+ slots lie beyond the documented limit: plan starter shows only the last \d+d\.\n$/,
  );
});

test('track add does not call series that a backfill has just filled not refreshed', async () => {
  const filled = ['backfill', 'btc-bitcoin', '--start', '-90d', '--series', 'prices'];
  expect(await runCommand(filled, { env, clock })).toMatchObject({ code: 0 });
  const said = await chandler('track', 'add', 'btc-bitcoin', 'eth-ethereum', '--series', 'prices');
  expect(said).toMatch(/^list prices-1d +20 +2 +1d +1d +\d+m?s? .*1 series not refreshed yet$/m);
  const { tiers } = await json('track', 'list');
  expect(tiers).toMatchObject([{ series: 2, unseen: 1 }]);
  expect(tiers[0].oldestAgeMs).toBeLessThan(600_000);
});

test('track remove makes the past not wanted any more, and cancels its backfill', async () => {
  await chandler('track', 'add', 'btc-bitcoin', '--since', '2022-01-01');
  expect(await chandler('track', 'remove', 'btc-bitcoin')).toContain('\nBackfill 1, of their past, is cancelled.\n');
  expect(await json('backfills', 'list')).toEqual([]);
  const gaps: { from: string }[] = await json('gaps');
  expect(gaps.filter(({ from }) => Date.parse(from) < Date.UTC(2025, 10, 3))).toEqual([]);
  // A new rule makes the past wanted again.
  const { past } = await json('track', 'add', 'btc-bitcoin', '--since', '2022-01-01');
  expect(past.backfills).toMatchObject([{ id: 2, coins: 1 }]);
});

test('track remove that fails in the middle removes nothing, and can be given again', async () => {
  await chandler('track', 'add', 'btc-bitcoin', '--since', '2022-01-01');
  const { sql } = database;
  await sql.unsafe(`
    create function ops.fail() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
    create trigger fail before update on ops.backfill for each row execute function ops.fail()`);
  const { code, err } = await runCommand(['track', 'remove', 'btc-bitcoin'], { env, clock });
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('the disk is full') });
  await sql.unsafe('drop trigger fail on ops.backfill; drop function ops.fail()');
  expect(await json('track', 'list')).toMatchObject({ rules: [{ coinId: 'btc-bitcoin' }] });
  expect(await chandler('track', 'remove', 'btc-bitcoin')).toContain('\nBackfill 1, of their past, is cancelled.\n');
});

test('track remove takes the past of one coin out of a backfill, whatever rules the other coins have', async () => {
  await chandler('track', 'add', 'btc-bitcoin', 'eth-ethereum', 'ltc-litecoin', '--since', '2022-01-01');
  expect(await chandler('track', 'remove', 'eth-ethereum')).toContain(
    '\nBackfill 1, of the past, leaves out 1 coin that no rule wants any more.\n',
  );
  expect(await json('backfills', 'list')).toMatchObject([{ id: 1, coins: 2, leftRequests: 8, plannedRequests: 12 }]);
  const coins = async () => {
    const gaps: { from: string; coinId: string }[] = await json('gaps');
    const past = gaps.filter(({ from }) => Date.parse(from) < Date.UTC(2025, 10, 3));
    return [...new Set(past.map(({ coinId }) => coinId))].sort();
  };
  expect(await coins()).toEqual(['btc-bitcoin', 'ltc-litecoin']);
  // Two rules want one coin, and the other one from an earlier day.
  await chandler('track', 'add', '--top', '2', '--since', '2024-01-01');
  const { cancelled, shortened } = await json('track', 'remove', 'btc-bitcoin', 'ltc-litecoin');
  expect({ cancelled, shortened }).toEqual({ cancelled: [], shortened: [{ id: 1, coins: 1 }] });
  expect(await database.sql`select coin_ids from ops.backfill where id = 1`).toEqual([{ coinIds: ['btc-bitcoin'] }]);
  // A new rule makes the past wanted again.
  const { past } = await json('track', 'add', 'eth-ethereum', '--since', '2022-01-01');
  expect(past.backfills).toMatchObject([{ coins: 1 }]);
});

test('an inactive coin keeps its past when the rule of another coin is removed', async () => {
  await chandler('track', 'add', 'btc-bitcoin', 'eth-ethereum', '--since', '2022-01-01');
  await database.sql`update market.coin set is_active = false where id = 'btc-bitcoin'`;
  const { cancelled, shortened } = await json('track', 'remove', 'eth-ethereum');
  expect({ cancelled, shortened }).toEqual({ cancelled: [], shortened: [{ id: 1, coins: 1 }] });
  expect(await database.sql`select coin_ids from ops.backfill`).toEqual([{ coinIds: ['btc-bitcoin'] }]);
  expect((await json('track', 'remove', 'btc-bitcoin')).cancelled).toEqual([1]);
});

test('track add counts the catalogue requests of the new coins, so that a second track add shows the same', async () => {
  env.CHANDLER_PLAN = 'free';
  // Today's requests differ from run to run: the second one has read the list of coins.
  await chandler('plan', 'btc-bitcoin', '--start', '-2d');
  const [first, again] = [await json('track', 'add', '--all'), await json('track', 'add', '--all')];
  expect(first.requestsPerDay.available).toBeGreaterThan(0);
  expect(again.requestsPerDay).toEqual(first.requestsPerDay);
});

test('a past that one request holds comes with the first refresh, as track add says, for prices and for candles', async () => {
  const said = await chandler(
    'track',
    'add',
    'btc-bitcoin',
    'eth-ethereum',
    '--since',
    '2026-01-01',
    '--series',
    'prices',
  );
  // 307 days for each of the two coins, up to the end of this one.
  expect(said).toContain(
    '\nThe next refreshes fetch the past of 2 coins, 1d prices in usd, from 2026-01-01 on: up to 614 rows.\n',
  );
  expect(await json('backfills', 'list')).toEqual([]);
  const from = '2026-01-01T00:00:00.000Z';
  const { past } = await json('track', 'add', 'btc-bitcoin', '--since', '2026-01-01');
  expect(past.withFirstRefresh).toEqual([{ interval: '24h', quote: 'usd', coins: 1, from, slots: 307 }]);
  expect(await chandler('track', 'add', 'ltc-litecoin')).not.toContain('The first refresh');
  env.CHANDLER_PLAN = 'free';
  const limited = await chandler('track', 'add', 'ltc-litecoin', '--since', '2020-01-01', '--series', 'prices');
  expect(limited).toContain('fetch the past of 1 coin, 1d prices in usd, from 2025-11-04 on: up to 365 rows');
  expect(await chandler('track', 'add', 'ltc-litecoin', '--since', '2020-01-01')).not.toContain('The first refresh');
});

test('a cancelled backfill of the past does not hold back gaps that appear after its span', async () => {
  await chandler('track', 'add', 'btc-bitcoin', '--interval', '5m', '--since', '2026-10-20');
  await chandler('backfills', 'cancel', '1');
  const { sql } = database;
  const [cancelled] = await sql<{ span: { from: number; to: number } }[]>`select span from ops.backfill`;
  const plan = planOf('enterprise');
  const historyLimits = await readLearnedLimits(sql, clock, plan);
  expect(await auditGaps({ sql, clock, plan, historyLimits })).toEqual([]);
  // No service runs for ten days.
  clock.advanceTo(clock.now() + 10 * DAY);
  const queued = await auditGaps({ sql, clock, plan, historyLimits });
  expect(queued.map(({ span, slots }) => [span.from, slots])).toEqual([[cancelled!.span.to, 2_880]]);
});
