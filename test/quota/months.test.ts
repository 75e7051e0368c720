import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Clock, Instant } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createQuota } from '../../src/quota/ledger.ts';
import { waitForPermit } from '../../src/quota/permit.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 8 });
});
afterAll(() => database.drop());

/** A clock for `sleepers` tasks. When all of them sleep, it moves to the time at which the first one wants to wake up. */
function createSharedClock(start: Instant, sleepers: number): Clock & { leave(): void } {
  let now = start;
  let present = sleepers;
  const waiting: { readonly at: Instant; readonly wake: () => void }[] = [];
  const wakeFirst = () => {
    if (waiting.length < present) return;
    waiting.sort((a, b) => a.at - b.at);
    const first = waiting.shift();
    if (!first) return;
    now = Math.max(now, first.at);
    first.wake();
  };
  return {
    now: () => now,
    sleep: (ms) =>
      new Promise((resolve) => {
        waiting.push({ at: now + Math.max(0, ms), wake: resolve });
        wakeFirst();
      }),
    leave: () => {
      present--;
      wakeFirst();
    },
  };
}

it('twelve takers in three processes use every day and month for three months exactly to its limit', async () => {
  const start = Date.parse('2024-01-30T23:59:40Z');
  const end = Date.parse('2024-04-02T00:00:00Z');
  const TAKERS = 12;
  const clock = createSharedClock(start, TAKERS);
  const limits = { perSecond: 10, perDay: 60, perMonth: 400 };
  const sent: Instant[] = [];
  let lost = 0;
  const processes = [0, 1, 2].map(() =>
    createQuota({
      sql: database.sql,
      clock,
      accountId: 'months',
      limits,
      reserved: () => ({ day: 0, month: 0 }),
      useDatabaseClock: false,
      random: () => 0.5,
    }),
  );
  const takers = Array.from({ length: TAKERS }, async (_, i) => {
    const quota = processes[i % processes.length]!;
    for (let n = 0; clock.now() < end; n++) {
      const turn = await waitForPermit({ quota, spender: { class: 'backfill', name: `taker ${i}` }, clock });
      if (turn.kind === 'denied') await clock.sleep(turn.until - clock.now());
      // Every seventh dies between taking and sending. Its request stays counted.
      else if (n % 7 === 3) lost++;
      else sent.push(turn.sendAt);
    }
    clock.leave();
  });
  await Promise.all(takers);

  sent.sort((a, b) => a - b);
  for (let i = 10; i < sent.length; i++) expect(sent[i]! - sent[i - 10]!).toBeGreaterThanOrEqual(1000);
  for (const at of sent) expect(Math.abs(at - Math.round(at / DAY) * DAY)).toBeGreaterThanOrEqual(2000);
  expect(most(sent, (at) => new Date(at).toISOString().slice(0, 10))).toBeLessThanOrEqual(60);
  expect(most(sent, (at) => new Date(at).toISOString().slice(0, 7))).toBeLessThanOrEqual(400);
  // One evening and one day of January, three months (February and March are whole), the first evening of April.
  expect(lost).toBeGreaterThan(100);
  const byMonth = await database.sql<{ spent: number }[]>`
    select sum(month_spent)::int as spent from ops.quota_spent where account_id = 'months'
    group by month_start order by month_start`;
  expect(byMonth.map((m) => m.spent)).toEqual([120, 400, 400, 60]);
  expect(sent.length + lost).toBe(120 + 400 + 400 + 60);
});

function most(instants: readonly Instant[], windowOf: (at: Instant) => string): number {
  const counts = new Map<string, number>();
  for (const at of instants) counts.set(windowOf(at), (counts.get(windowOf(at)) ?? 0) + 1);
  return Math.max(...counts.values());
}
