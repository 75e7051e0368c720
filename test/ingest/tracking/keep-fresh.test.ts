/** The newest ends of tracked series, from the time they are due to the answer: the simulator, the real queue, virtual time. */
import { afterEach, expect, test, vi } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import type { Outcome } from '../../../src/ingest/outcome.ts';
import { createKeepFresh, withEndOfRefresh } from '../../../src/ingest/tracking/keep-fresh.ts';
import { refreshesToday } from '../../../src/quota/refresh-order.ts';
import { addTracks, removeTracks, type TrackRule } from '../../../src/store/tracking/track-rule.ts';
import { markEnded, readComingRefreshes } from '../../../src/store/tracking/tracked-series.ts';
import { createWorld, type World, type WorldOptions } from '../../support/world.ts';

const NOON = Date.UTC(2026, 10, 18, 12);
let world: World;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

const rule = (coinId: string, more: Partial<TrackRule> = {}): TrackRule => ({
  tier: 'list',
  coinId,
  interval: '1h',
  quote: 'usd',
  since: NOON - 5 * DAY,
  priority: 20,
  targetAgeMs: HOUR,
  ...(more as object),
});

async function open(options: WorldOptions = {}, perDay: number | null = null) {
  world = await createWorld({ startAt: NOON, simulator: { seed: 5, coins: 8 }, ...options });
  const { sql } = world.database;
  const { clock } = world;
  const { session, queue } = await world.open();
  const spent = async () => (await session.quota.spenders()).find(({ name }) => name === 'freshness')?.day ?? 0;
  const keep = createKeepFresh({
    sql,
    clock,
    queue,
    plan: session.plan,
    historyLimits: session.historyLimits,
    keep: { '5m': null, '15m': null, '30m': null, '1h': null, '6h': null, '12h': null, '24h': null },
    perSecond: null,
    budget: async () => {
      const coming = refreshesToday(await readComingRefreshes(sql, { now: clock.now() }), {
        now: clock.now(),
        nextAt: clock.now() + HOUR / 4,
      });
      const left = perDay === null ? null : perDay - (await spent());
      return { planned: perDay, most: perDay, mostPerDay: perDay, left, coming };
    },
    spentToday: spent,
    nextRun: (now) => now + HOUR / 4,
    tickMs: 0,
  });
  const outcomes: Outcome[] = [];
  const work = (concurrency = 2) => {
    const ingestChunk = withEndOfRefresh(session.circuitBreaker(session.ingestChunk), sql);
    const worker = queue.work({
      concurrency,
      handle: (job, attempt) => ingestChunk(job, { attempt }),
      snoozeMs: () => 50,
      events: {
        onOutcome: (_, outcome) => outcomes.push(outcome),
        onFailure: (job, _, final) => {
          if (final) void markEnded(sql, job.seriesId);
        },
      },
    });
    closers.push(() => worker.close());
    return worker;
  };
  const settled = () =>
    vi.waitFor(
      async () => {
        const [row] = await sql`select count(queued_at)::int as n from ops.tracked`;
        expect(row).toEqual({ n: 0 });
        // A job that is still ending would swallow the next job of its series (`recover` finds that one later).
        expect(await queue.size()).toBe(0);
      },
      { timeout: 60_000, interval: 20 },
    );
  const asked = () => world.simulator.counters().requests.ohlcv;
  return { sql, clock, queue, keep, work, settled, asked, spent, outcomes };
}

const newest = async () =>
  (
    await world.database.sql<{ coin: string; at: number; final: boolean }[]>`
      select s.coin_id as coin, max(c.open_time) as at, bool_or(not c.is_final) as final
      from market.candles c join market.series s using (coin_id, quote, interval) group by 1 order by 1`
  ).map(({ coin, at }) => [coin, at]);

test('each series is requested once its age is reached, as scheduled work, and its provisional tail again', async () => {
  const { sql, keep, work, settled, asked, spent, clock } = await open();
  await addTracks(sql, [rule('btc-bitcoin'), rule('eth-ethereum')], NOON);
  work();
  expect(await keep.run()).toEqual({ kind: 'done' });
  await settled();
  expect(asked()).toBe(2);
  expect(await newest()).toEqual([
    ['btc-bitcoin', NOON],
    ['eth-ethereum', NOON],
  ]);
  // Nothing is due before its time.
  await keep.run();
  await settled();
  expect(asked()).toBe(2);

  clock.advanceTo(NOON + 2 * HOUR);
  await keep.run();
  await settled();
  expect(asked()).toBe(4);
  expect(await newest()).toEqual([
    ['btc-bitcoin', NOON + 2 * HOUR],
    ['eth-ethereum', NOON + 2 * HOUR],
  ]);
  expect(await spent()).toBe(4);
  // The provisional slots have their final answer now.
  const [row] = await sql<{ until: number }[]>`select min(upper(covered)) as until from market.series`;
  expect(row!.until).toBe(NOON + HOUR);
});

test('chunks that the queue has lost are requested within a minute, once', async () => {
  const { sql, keep, work, settled, asked, queue, clock } = await open();
  await addTracks(sql, [rule('btc-bitcoin'), rule('eth-ethereum')], NOON);
  await keep.run();
  expect(await queue.size()).toBe(2);
  expect(await keep.recover()).toBe(0);
  await queue.wipe();
  clock.advanceTo(clock.now() + 30_000);
  // Recovered twice: the end of one may have been reported only just now.
  expect(await keep.recover()).toBe(0);
  expect(await keep.recover()).toBe(2);
  expect(await keep.recover()).toBe(0);
  work();
  await settled();
  expect(asked()).toBe(2);
});

test('a refresh that was queued twice is one request', async () => {
  const { sql, keep, work, settled, asked } = await open();
  await addTracks(sql, [rule('btc-bitcoin')], NOON);
  await keep.run();
  await sql`update ops.tracked set asked_at = null, refresh_at = null`;
  await keep.run();
  work();
  await settled();
  expect(asked()).toBe(1);
});

test('a series that is not tracked any more is not requested, although it is in the queue', async () => {
  const { sql, keep, work, settled, asked, outcomes } = await open();
  await addTracks(sql, [rule('btc-bitcoin'), rule('eth-ethereum')], NOON);
  await keep.run();
  await removeTracks(sql, { coins: [{ tier: 'list', coinId: 'btc-bitcoin' }] });
  await sql`delete from ops.tracked where series_id in (select id from market.series where coin_id = 'btc-bitcoin')`;
  work();
  await settled();
  await vi.waitFor(() => expect(outcomes).toHaveLength(2), { timeout: 60_000 });
  expect(asked()).toBe(1);
  expect(outcomes.filter((outcome) => outcome.kind === 'stored' && outcome.requests === 0)).toHaveLength(1);
});

test('no more than the daily budget is requested, including what waits in the queue', async () => {
  const { sql, keep, queue } = await open({}, 4);
  await addTracks(
    sql,
    ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'].flatMap((id) => [
      rule(id),
      rule(id, { interval: '24h', targetAgeMs: DAY }),
    ]),
    NOON,
  );
  await keep.run();
  expect(await queue.size()).toBe(4);
  await keep.run();
  expect(await queue.size()).toBe(4);
});

test('a series that upstream always fails on costs a refresh no more requests than a chunk has attempts, and the others continue', async () => {
  const { sql, keep, work, settled, clock, asked } = await open({
    fetch: (simulated) => async (request) =>
      new URL(request.url).pathname.includes('/btc-bitcoin/')
        ? new Response('oops', { status: 200, headers: { 'content-type': 'application/json' } })
        : simulated(request),
    speed: 100,
  });
  await addTracks(sql, [rule('btc-bitcoin'), rule('eth-ethereum'), rule('ltc-litecoin')], NOON);
  work();
  await keep.run();
  await settled();
  const requestsOf = async (coins: readonly string[]) => {
    const [row] = await sql<{ n: number }[]>`
      select count(*)::int as n from ops.fetch f join market.series s on s.id = f.series_id where s.coin_id = any(${coins as string[]}::text[])`;
    return row!.n;
  };
  const HEALTHY = ['eth-ethereum', 'ltc-litecoin'];
  expect(await requestsOf(['btc-bitcoin'])).toBeLessThanOrEqual(8);
  expect(await requestsOf(HEALTHY)).toBe(2);
  // Besides these, two for another coin: nothing else was requested while this one failed.
  expect(asked()).toBe(4);
  clock.advanceTo(NOON + 2 * HOUR);
  await keep.run();
  await vi.waitFor(async () => expect(await requestsOf(HEALTHY)).toBe(4), { timeout: 60_000 });
});

test('a refresh whose chunk began before a history limit of the plan is due again: the next one asks for what lies within the history limit', async () => {
  // The documents promise ten years of these candles, and the upstream gives a day.
  const historyDepthMs = DAY;
  const { sql, keep, work, settled, outcomes } = await open({
    simulator: { seed: 5, coins: 8, unlimited: false, limits: { plan: 'enterprise', overrides: { historyDepthMs } } },
  });
  await addTracks(sql, [rule('btc-bitcoin'), rule('eth-ethereum')], NOON);
  // One after the other: of two refusals that were under way at the same time, the second would not count.
  work(1);
  const unseen = async () => {
    const [row] = await sql<
      { n: number }[]
    >`select count(*) filter (where seen_until is null)::int as n from ops.tracked`;
    return row!.n;
  };
  for (let runs = 0; runs < 6 && (runs === 0 || (await unseen()) > 0); runs++) {
    await keep.run();
    await settled();
  }
  expect(outcomes.some(({ kind }) => kind === 'refused')).toBe(true);
  // All of it at the same instant: nothing waits for another age.
  expect(await unseen()).toBe(0);
});
