/** What `chandler quota` and `chandler schedule` print about holes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { queueBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { recordHistoryLimit } from '../../../src/store/candle/refusal.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { createManualClock } from '../../quota/manual-clock.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';

/** The middle of a month of thirty days. */
const NOW = Date.UTC(2024, 3, 16);
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(400) });
});
afterAll(() => database.drop());

const chandler = (argv: readonly string[], env: Record<string, string> = {}) =>
  runCommand(argv, {
    clock: createManualClock(NOW),
    env: { DATABASE_URL: database.url, CHANDLER_PLAN: 'enterprise', CHANDLER_MONTHLY_REQUESTS: '20000', ...env },
  });
const said = async (argv: readonly string[], env?: Record<string, string>) =>
  /^Holes: .*$/m.exec((await chandler(argv, env)).out)?.[0];

test('quota and schedule say how many holes wait, what they cost, when the next run is, and why no request is sent', async () => {
  const { sql } = database;
  for (const command of ['quota', 'schedule'])
    expect(await said([command])).toBe('Holes: no slot waits for a second answer that it is empty.');

  const id = await newDailySeries(sql, 'a-coin');
  await storeAnswer(sql, id, [0, 90], 92, { without: [5, 6, 80] });
  const all = 'Holes: 3 slots without a candle or price wait for a second answer, about 1 request; next run in 27m.';
  for (const command of ['quota', 'schedule'])
    expect(await said([command])).toBe(`${all} Requests left over for them: 500, 0 of 1,000 sent this month.`);
  expect(await said(['quota'], { CHANDLER_SCHEDULE_CONFIRM_HOLES: 'off' })).toContain(
    '; the schedule confirm_holes is off.',
  );
  expect(await said(['quota'], { CHANDLER_MONTHLY_REQUESTS: 'unlimited' })).toContain('left over for them: unlimited.');
  expect(await said(['quota'], { CHANDLER_CANDLES_PER_REQUEST: '10' })).toContain(' about 2 requests;');

  const terms = { coinIds: ['a-coin'], interval: '24h', quote: 'usd', span: { from: day(0), to: day(9) } } as const;
  await queueBackfill(sql, { ...terms, requestedAt: NOW, spec: {}, plannedRequests: 1, priority: 0 });
  expect(await said(['quota'])).toContain('left over for them: none now, because backfills go first, 0 of');
  await sql`update ops.backfill set state = 'done'`;

  const limit = {
    plan: 'enterprise',
    interval: '24h',
    depthMs: NOW - day(70),
    message: 'no further',
    refusedAt: NOW,
  } as const;
  await recordHistoryLimit(sql, limit);
  expect(await said(['quota'])).toContain(
    '(2 of them are out of reach: older than the history limit of the plan, or longer than one request), about 1 request;',
  );
  await recordHistoryLimit(sql, { ...limit, depthMs: null });
  expect(await said(['quota'])).toBe(
    'Holes: 3 slots without a candle or price have one answer only. Chandler requests no second answer: out of reach (older than the history limit of the plan, or longer than one request).',
  );
  await recordHistoryLimit(sql, limit);
  for (const command of ['quota', 'schedule']) {
    expect(JSON.parse((await chandler([command, '--json'])).out).holes).toEqual({
      slots: 3,
      outOfReach: 2,
      requests: 1,
      monthlyShare: 1_000,
      spentThisMonth: 0,
      allowedNow: 500,
      waitsFor: null,
      nextRun: '2024-04-16T00:27:00.000Z',
    });
  }
});
