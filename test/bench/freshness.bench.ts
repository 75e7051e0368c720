/** What keeping 50,000 tracked series fresh costs the database: applying the rules, planning the ages, choosing the next series. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR, type Interval } from '../../src/core/interval.ts';
import type { HistoryLimit } from '../../src/ingest/limits/history-limit.ts';
import { planTracked, readDueSeries, takeDueChunks } from '../../src/ingest/tracking/freshness.ts';
import { recordCoins, recordTickers } from '../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../src/store/tracking/apply-track-rules.ts';
import { addTracks, type TrackRule } from '../../src/store/tracking/track-rule.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { backendSeconds } from './backend-time.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const SERIES = 50_000;
const LIMIT = 1_000;
const ROUNDS = 5;
const NOW = Date.UTC(2025, 6, 1, 12);
const SINCE = Date.UTC(2025, 0, 1);
const open: HistoryLimit = { kind: 'open' };
const historyLimits = { of: (_: Interval): HistoryLimit => open };
const plan = { name: 'enterprise', candlesPerRequest: 366 };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
  // A thousand of the best-ranked coins also have hours, so that many coins have two series.
  const ids = Array.from({ length: SERIES - 1_000 }, (_, i) => `c${i}-coin`);
  const coins = ids.map((id, i) => ({
    id,
    name: id,
    symbol: `C${i}`,
    rank: i + 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  }));
  await recordCoins(database.sql, coins, NOW);
  await recordTickers(
    database.sql,
    { coinId: ids, rank: ids.map((_, i) => i + 1), firstDataAt: ids.map((_, i) => SINCE - i * HOUR) },
    NOW,
  );
  const rule = { quote: 'usd', since: SINCE } as const;
  const rules: TrackRule[] = [
    { ...rule, tier: 'all', interval: '24h', priority: 0, targetAgeMs: 2 * DAY },
    { ...rule, tier: 'top', top: 1_000, interval: '1h', priority: 10, targetAgeMs: 2 * HOUR },
    { ...rule, tier: 'top', top: 200, interval: '24h', priority: 10, targetAgeMs: DAY },
    ...ids.slice(0, 50).map((coinId) => ({
      ...rule,
      tier: 'list' as const,
      coinId,
      interval: '24h' as const,
      priority: 20,
      targetAgeMs: DAY,
    })),
  ];
  await addTracks(database.sql, rules, NOW);
});
afterAll(() => database?.drop());

const applied = () => applyTracks(database.sql, NOW);
const planned = () =>
  planTracked({
    sql: database.sql,
    now: NOW,
    requestsPerDay: 30_000,
    candlesPerRequest: 366,
    historyLimits,
    tickMs: 0,
  });
const chosen = (now: number) =>
  readDueSeries(database.sql, { now, room: { all: LIMIT, late: LIMIT }, tickMs: 0, plan, historyLimits });

async function rounds(work: () => Promise<unknown>): Promise<number[]> {
  const ms: number[] = [];
  for (let i = 0; i < ROUNDS; i++) ms.push((await timed(work)) / 1000);
  return ms;
}

/** Processor seconds of the database for one run of each, several times. */
async function cycles(work: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  const seconds: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const before = await backendSeconds(database.sql);
    for (const one of work) await one();
    const after = await backendSeconds(database.sql);
    if (before !== null && after !== null) seconds.push(after - before);
  }
  return seconds;
}

it(`keeps ${thousands(SERIES)} tracked series in turn in under two seconds a look`, async () => {
  const { sql } = database;
  const first = await timed(applied);
  await sql`analyze`;
  const again = await rounds(applied);
  const planning = await rounds(planned);
  const fresh = await rounds(() => chosen(NOW));
  // Every series was requested within the last two days and has half a year, except for its newest end.
  await sql`
    update market.series s set covered = tstzmultirange(tstzrange('2025-01-01', '2025-06-27'), tstzrange('2025-06-28', '2025-06-29'))`;
  await sql`
    update ops.tracked set asked_at = ${NOW}::timestamptz - interval '4 seconds' * (series_id % 43200),
      refresh_at = ${NOW}::timestamptz - interval '4 seconds' * (series_id % 43200),
      seen_until = ${NOW}::timestamptz - interval '4 seconds' * (series_id % 43200)`;
  await sql`vacuum analyze ops.tracked, market.series`;
  const steady = await rounds(() => chosen(NOW));
  const late = await rounds(() => chosen(NOW + 10 * DAY));
  const taking = await rounds(() =>
    takeDueChunks(sql, { now: NOW + 10 * DAY, room: { all: LIMIT, late: LIMIT }, tickMs: 0, plan, historyLimits }),
  );
  const cycle = await cycles([
    applied,
    planned,
    () =>
      takeDueChunks(sql, { now: NOW + 11 * DAY, room: { all: LIMIT, late: LIMIT }, tickMs: 0, plan, historyLimits }),
  ]);
  const status = await rounds(() => readTierStatus(sql, NOW));
  const look = median(steady) + median(planning) + median(again);
  console.info(
    table(`${thousands(SERIES)} tracked series, the next ${thousands(LIMIT)} of them, seconds, median of ${ROUNDS}`, [
      ['rules applied, everything new', (first / 1000).toFixed(2)],
      ['rules applied, nothing changed', spread(again)],
      ['ages planned', spread(planning, 3)],
      ['next ones chosen, none asked yet', spread(fresh, 3)],
      ['next ones chosen, all asked by turns (< 2)', `${spread(steady, 3)} ${verdict(median(steady) < 2)}`],
      ['next ones chosen, all late (< 2)', `${spread(late, 3)} ${verdict(median(late) < 2)}`],
      ['next ones taken, all late', spread(taking, 3)],
      ['rules, plan and choice together (< 2)', `${look.toFixed(2)} ${verdict(look < 2)}`],
      [
        'processor time of the database for one whole run of the schedule (< 2)',
        cycle.length === 0 ? 'not told here' : `${spread(cycle)} ${verdict(median(cycle) < 2)}`,
      ],
      ['status by tier', spread(status, 3)],
    ]),
  );
  expect((await chosen(NOW + 10 * DAY)).length).toBe(LIMIT);
  const explained = await sql.unsafe(`
    explain select series_id from ops.tracked where tier_id = 1 and asked_at <= '2025-06-30' order by asked_at limit 100`);
  expect(explained.map((row) => row['QUERY PLAN']).join('\n')).toContain('tracked_by_age');
});
