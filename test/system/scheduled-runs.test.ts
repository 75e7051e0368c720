/** The schedules send requests like a backfill does, against the simulator: what two processes spend on them, request by request. */
import { afterEach, expect, test, vi } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { averageNeeds } from '../../src/ingest/schedule/needs.ts';
import { schedulePlan } from '../../src/ingest/schedule/schedule-plan.ts';
import { createScheduleWorker } from '../../src/ingest/schedule/schedule-worker.ts';
import { createScheduler } from '../../src/ingest/schedule/scheduler.ts';
import type { Run } from '../../src/ingest/schedule-run.ts';
import { reservedAt } from '../../src/quota/reservation.ts';
import { latestRuns } from '../../src/store/work/schedule-run.ts';
import { everyKind } from '../support/every-kind.ts';
import { openTickQueue } from '../support/queues.ts';
import { seedSeries } from '../support/warehouse.ts';
import { createWorld, type World } from '../support/world.ts';

const TODAY = Date.UTC(2026, 10, 18);
let world: World;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

test('a day of coins, account, renames and partitions costs what was reserved for it, with any number of processes', async () => {
  world = await createWorld({
    startAt: TODAY - HOUR,
    apiKey: 'right',
    plan: 'pro',
    simulator: { seed: 3, coins: 12, limits: { keys: { right: 'pro' } } },
  });
  const { clock, database } = world;
  const { sql } = database;
  await seedSeries(sql, { coinId: 'btc-bitcoin', interval: '1h', wanted: [], covered: [], candles: [] });
  const schedules = schedulePlan({
    plan: 'pro',
    limits: { perMonth: 1_000_000, perDay: null, perSecond: 10 },
    hasKey: true,
    places: new Set(),
    cadences: {
      ...everyKind(() => 'off'),
      tickers: 'off',
      global: 'off',
      rates: 'off',
      exchanges: 'off',
      freshness: 'off',
      gaps: 'off',
      retention: 'off',
      rollups: 'off',
      compaction: 'off',
    },
  });
  const none: Run = async () => ({ kind: 'done' });
  const schedulers = await Promise.all(
    ['a', 'b'].map(async (owner) => {
      const { session } = await world.open();
      const engine = { kind: 'postgres', url: database.url } as const;
      const queue = await openTickQueue({ engine, onError: () => undefined });
      const others = {
        tickers: none,
        global: none,
        exchanges: none,
        catalogue: everyKind(() => none),
        freshness: none,
        gaps: none,
        confirmHoles: none,
        attest: none,
        lake: none,
        partitions: none,
        retention: none,
      };
      const runs = { sql, clock, session, ...others };
      const worker = createScheduleWorker({ sql, clock, queue, owner, runs });
      closers.push(async () => {
        await worker.close();
        await queue.close();
      });
      const scheduler = createScheduler({ sql, clock, queue, schedules, onError: () => undefined });
      const settle = () => vi.waitFor(async () => expect(await queue.size()).toBe(0), { timeout: 60_000, interval: 5 });
      return { look: scheduler.look, settle, quota: session.quota };
    }),
  );
  const { settle, quota } = schedulers[0]!;
  const spent = async () => {
    const spenders = await quota.spenders();
    return spenders.filter((s) => s.class === 'scheduled').reduce((sum, { day }) => sum + day, 0);
  };
  const tick = async () => {
    await Promise.all(schedulers.map(({ look }) => look()));
    await settle();
  };
  // What is due from yesterday is done before the day begins.
  await tick();
  const asked = () => world.simulator.counters().accounts.reduce((sum, { requests }) => sum + requests, 0);
  const before = asked();
  const expected = reservedAt(TODAY, averageNeeds(schedules)).day;
  expect(expected).toBe(24 * 2 + 4 + 1);
  for (let at = TODAY + 7 * 60_000; at < TODAY + DAY; at += 30 * 60_000) {
    clock.advanceTo(at);
    await tick();
  }
  expect(asked() - before).toBe(expected);
  expect(await spent()).toBe(expected);

  const runs = await latestRuns(sql, ['coins', 'account', 'renames', 'partitions']);
  expect(runs.map(({ state, message }) => ({ state, message }))).toEqual(
    Array(4).fill({ state: 'done', message: null }),
  );
  const partitions = await sql<{ name: string }[]>`
    select relname as name from pg_class where relname like 'candle_1h_%' and relispartition and relkind = 'r' order by 1`;
  expect(partitions.map(({ name }) => name)).toEqual(['candle_1h_2026q4']);
});
