import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY, HOUR, type Interval } from '../../../src/core/interval.ts';
import type { HistoryLimit } from '../../../src/ingest/limits/history-limit.ts';
import { planTracked, readDueSeries, refreshTracks, takeDueChunks } from '../../../src/ingest/tracking/freshness.ts';
import { recordRefusal } from '../../../src/store/candle/refusal.ts';
import { markSeen } from '../../../src/store/candle/series.ts';
import { recordCoins, recordTickers } from '../../../src/store/snapshot/coin.ts';
import { addTracks, removeTracks, type TrackRule } from '../../../src/store/tracking/track-rule.ts';
import { countQueued, markEnded, readQueued, undoRefreshes } from '../../../src/store/tracking/tracked-series.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.sql`truncate market.coin, ops.track, ops.tier, ops.tracked cascade`;
  await recordCoins(
    database.sql,
    ['a-a', 'b-b', 'c-c'].map((id, i) => ({
      id,
      name: id,
      symbol: id,
      rank: i + 1,
      is_new: false,
      is_active: true,
      type: 'coin',
    })),
    NOON,
  );
});

const NOON = Date.UTC(2024, 0, 10, 12);
const MIDNIGHT = NOON - 12 * HOUR;
const open: HistoryLimit = { kind: 'open' };
const historyLimits = { of: (_: Interval): HistoryLimit => open };
const plan = { name: 'free', candlesPerRequest: 366 };
const rule = (tier: 'top' | 'all', rest: Partial<TrackRule> = {}): TrackRule =>
  ({
    tier,
    ...(tier === 'top' ? { top: 2 } : {}),
    interval: '24h',
    quote: 'usd',
    since: MIDNIGHT - 10 * DAY,
    priority: tier === 'top' ? 10 : 0,
    targetAgeMs: DAY,
    ...rest,
  }) as TrackRule;
const keep = (now: number, requestsPerDay: number | null = null) =>
  refreshTracks({ sql: database.sql, now, requestsPerDay, candlesPerRequest: 366, historyLimits, tickMs: 0 });
const take = (now: number, limit = 10) =>
  takeDueChunks(database.sql, { now, room: { all: limit, late: limit }, tickMs: 0, plan, historyLimits });
const coins = async (now: number, limit?: number) => (await take(now, limit)).map((c) => c.coinId);
const idOf = async (coinId: string) => {
  const [row] = await database.sql<{ id: number }[]>`select id from market.series where coin_id = ${coinId}`;
  return row!.id;
};

test('each series is requested at once, then at its refresh times, the one that waits longest first', async () => {
  await addTracks(database.sql, [rule('top')], NOON);
  await keep(NOON);
  expect(await coins(NOON, 1)).toEqual(['a-a']);
  expect(await coins(NOON + HOUR, 1)).toEqual(['b-b']);
  expect(await coins(NOON + HOUR)).toEqual([]);
  expect(await coins(NOON + DAY)).toContain('a-a');
  // Their refresh times are spread over the day, and stay where they are although both came late together.
  await coins(NOON + 2 * DAY);
  const refreshTimes = async (from: number) => {
    const seen: string[] = [];
    for (let at = from; at < from + DAY; at += HOUR)
      for (const coin of await coins(at)) seen.push(`${coin} ${at - from}`);
    return seen;
  };
  const first = await refreshTimes(NOON + 2 * DAY + HOUR);
  expect(first).toHaveLength(2);
  expect(first[0]!.split(' ')[1]).not.toBe(first[1]!.split(' ')[1]);
  expect(await refreshTimes(NOON + 3 * DAY + HOUR)).toEqual(first);
});

test('a chunk is the newest end with what is missing before it, and no more than a request holds', async () => {
  await addTracks(database.sql, [rule('top', { interval: '1h', targetAgeMs: HOUR })], NOON);
  await keep(NOON);
  const id = await idOf('a-a');
  const covered = [
    { from: MIDNIGHT - 10 * DAY, to: MIDNIGHT - 3 * HOUR },
    { from: MIDNIGHT, to: NOON - 2 * HOUR },
  ];
  await database.sql`update market.series set covered = ${covered}::tstzmultirange where id = ${id}`;
  const [first, second] = await readDueSeries(database.sql, {
    now: NOON + 60_000,
    room: { all: 2, late: 2 },
    tickMs: 0,
    plan,
    historyLimits,
  });
  expect(first?.chunk).toEqual({
    seriesId: id,
    coinId: 'a-a',
    quote: 'usd',
    interval: '1h',
    from: MIDNIGHT - 3 * HOUR,
    to: NOON + HOUR,
    slots: 6,
  });
  // Ten days and a half of hours: as many as one request holds.
  expect(second?.chunk).toMatchObject({ to: NOON + HOUR, from: MIDNIGHT - 10 * DAY, slots: 253 });
  const small = { name: 'free', candlesPerRequest: 24 };
  const [limited] = await readDueSeries(database.sql, {
    now: NOON + 60_000,
    room: { all: 1, late: 1 },
    tickMs: 0,
    plan: small,
    historyLimits,
  });
  expect(limited?.chunk).toMatchObject({ from: MIDNIGHT - 3 * HOUR, to: NOON + HOUR });
  // Looking refreshes nothing.
  expect(await coins(NOON + 60_000)).toEqual(['a-a', 'b-b']);
});

test('nothing is requested before the coin began, or beyond a history limit or a refusal; the refresh counts as done all the same', async () => {
  await addTracks(database.sql, [rule('all')], NOON);
  await keep(NOON);
  await recordTickers(database.sql, { coinId: ['a-a'], rank: [1], firstDataAt: [MIDNIGHT - DAY + HOUR] }, NOON);
  await recordRefusal(database.sql, {
    plan: 'free',
    seriesId: await idOf('b-b'),
    span: { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY },
    reason: 'unknown coin',
    message: 'no',
    refusedAt: NOON,
    fetchId: null,
  });
  const met: HistoryLimit = { kind: 'met', depthMs: 3 * DAY, skewMs: 0, message: 'no' };
  const chunks = await takeDueChunks(database.sql, {
    now: NOON,
    room: { all: 10, late: 10 },
    tickMs: 0,
    plan,
    historyLimits: { of: () => met },
  });
  expect(chunks).toMatchObject([
    { coinId: 'a-a', from: MIDNIGHT - DAY, to: MIDNIGHT + DAY },
    { coinId: 'c-c', from: MIDNIGHT - 2 * DAY, to: MIDNIGHT + DAY },
  ]);
  expect(await coins(NOON + HOUR)).toEqual([]);
});

test('a refresh that sent no request is due again', async () => {
  await addTracks(database.sql, [rule('top')], NOON);
  await keep(NOON);
  await take(NOON);
  const [a, b] = [await idOf('a-a'), await idOf('b-b')];
  await markSeen(database.sql, a, NOON - 60_000);
  expect(await readQueued(database.sql, NOON + 60_000, 10)).toEqual([a, b]);
  expect(await readQueued(database.sql, NOON, 10)).toEqual([]);
  await markEnded(database.sql, a);
  expect(await readQueued(database.sql, NOON + 60_000, 10)).toEqual([b]);
  expect(await countQueued(database.sql)).toBe(1);
  expect(await undoRefreshes(database.sql, [a, b])).toBe(1);
  expect(await countQueued(database.sql)).toBe(0);
  expect(await coins(NOON + 60_000)).toEqual(['b-b']);
});

test('what the budget allows is planned by tier, and shown', async () => {
  await addTracks(database.sql, [rule('top'), rule('all', { interval: '1h', targetAgeMs: 6 * HOUR })], NOON);
  const { applied, plan: planned } = await keep(NOON, 4);
  expect(applied).toMatchObject({ series: 5, added: 5 });
  expect(planned).toMatchObject({ wantedPerDay: 14, requestsPerDay: 4 });
  expect(planned.tiers).toMatchObject([
    { tier: 'top', targetAgeMs: DAY, achievableAgeMs: DAY, series: 2, requestsPerDay: 2 },
    { tier: 'all', targetAgeMs: 6 * HOUR, achievableAgeMs: 36 * HOUR, series: 3, requestsPerDay: 2 },
  ]);
  await take(NOON);
  await markSeen(database.sql, await idOf('c-c'), NOON - HOUR);
  const shown = await database.sql`
    select coin_id, tier, target_age::text, achievable_age::text, asked_at, seen_until, is_tracked
    from market.freshness where coin_id = 'c-c'`;
  expect([...shown]).toEqual([
    {
      coinId: 'c-c',
      tier: 'all',
      targetAge: '06:00:00',
      achievableAge: '36:00:00',
      askedAt: NOON,
      seenUntil: NOON - HOUR,
      isTracked: true,
    },
  ]);
});

test('a shorter age is reported from the start of a day on which no series is late for it', async () => {
  await addTracks(database.sql, [rule('all', { interval: '1h', targetAgeMs: 6 * HOUR })], NOON);
  const told = async () => {
    const [row] = await database.sql<{ age: string }[]>`select achievable_age::text as age from ops.tier`;
    return row!.age;
  };
  const refreshed = (coin: string, at: number) => database.sql`
    update ops.tracked t set asked_at = ${at}, refresh_at = ${at} from market.series s where s.id = t.series_id and s.coin_id = ${coin}`;
  await keep(NOON, 2);
  await take(NOON);
  expect(await told()).toBe('36:00:00');
  // There is more quota: each series is to be requested every six hours.
  const next = MIDNIGHT + DAY;
  for (const coin of ['a-a', 'b-b', 'c-c']) await refreshed(coin, next - HOUR);
  await refreshed('a-a', next - 7 * HOUR);
  await keep(next, 12);
  expect(await told()).toBe('36:00:00');
  // In the course of a day nothing changes: that day was planned without the additional requests.
  await refreshed('a-a', next);
  await keep(next + HOUR, 12);
  expect(await told()).toBe('36:00:00');
  for (const coin of ['a-a', 'b-b', 'c-c']) await refreshed(coin, next + DAY - HOUR);
  await keep(next + DAY, 12);
  expect(await told()).toBe('06:00:00');
  // A longer age is reported at once.
  await keep(next + DAY + HOUR, 2);
  expect(await told()).toBe('36:00:00');
});

test('an interval that the plan does not have costs nothing and promises nothing; neither does an empty budget', async () => {
  await addTracks(database.sql, [rule('top'), rule('all', { interval: '1h' })], NOON);
  await keep(NOON);
  const noHours = {
    of: (i: Interval): HistoryLimit => (i === '1h' ? { kind: 'met', depthMs: 0, skewMs: 0, message: 'no' } : open),
  };
  const options = { sql: database.sql, now: NOON, candlesPerRequest: 366, tickMs: 0 };
  const { tiers, requestsPerDay } = await planTracked({ ...options, requestsPerDay: 2, historyLimits: noHours });
  expect(requestsPerDay).toBe(2);
  expect(tiers).toMatchObject([{ isRefused: false }, { isRefused: true, achievableAgeMs: null, requestsPerDay: 0 }]);
  expect(await coins(NOON)).toEqual(['a-a', 'b-b']);
  await planTracked({ ...options, requestsPerDay: 0, historyLimits });
  expect(await coins(NOON + 10 * DAY)).toEqual([]);
});

test('a series that ends is requested once its last candle can be final, and leaves when it is complete', async () => {
  await addTracks(database.sql, [rule('top')], NOON);
  await keep(NOON);
  await take(NOON);
  await removeTracks(database.sql, {});
  await keep(NOON + HOUR);
  // Its last candle closes at midnight, and settles a day later.
  expect(await coins(MIDNIGHT + 2 * DAY - 1)).toEqual([]);
  // A slot without a final answer waits until that answer is due.
  const id = await idOf('b-b');
  await database.sql`insert into ops.second_opinion (series_id, span, claim, requested_at, retry_at)
    values (${id}, tstzrange(null, ${MIDNIGHT + DAY}), 'unconfirmed', now(), ${MIDNIGHT + 3 * DAY})`;
  const early = await readDueSeries(database.sql, {
    now: MIDNIGHT + 2 * DAY,
    room: { all: 10, late: 10 },
    tickMs: 0,
    plan,
    historyLimits,
  });
  expect(early.map(({ chunk }) => chunk === null)).toEqual(early.map(({ seriesId }) => seriesId === id));
  await database.sql`delete from ops.second_opinion`;
  const chunks = await take(MIDNIGHT + 2 * DAY);
  expect(chunks).toMatchObject([{ to: MIDNIGHT + DAY }, { to: MIDNIGHT + DAY }]);
  await database.sql`update market.series set covered = wanted`;
  expect((await keep(MIDNIGHT + 3 * DAY)).applied).toMatchObject({ series: 0, completed: 2 });
  expect(await coins(MIDNIGHT + 9 * DAY)).toEqual([]);
});
