/** The forecast ends of the service's backfills follow the order in which the service runs them. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { scheduleVariable } from '../../src/ingest/schedule/schedule-plan.ts';
import { SCHEDULES } from '../../src/ingest/schedule/schedules.ts';
import { renewRun, startBackfill } from '../../src/store/backfill/backfill.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';

const START = Date.UTC(2026, 5, 10, 12);
const SECOND = 1_000;
const PER_SECOND = 5;
/** With one candle a request: this many requests for a coin. */
const DAYS = 100;

let world: ServiceWorld;
afterEach(() => world?.close());

async function begin(services: readonly string[]): Promise<readonly string[]> {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: {
      CHANDLER_PLAN: 'enterprise',
      CHANDLER_REQUESTS_PER_SECOND: String(PER_SECOND),
      CHANDLER_CANDLES_PER_REQUEST: '1',
      ...Object.fromEntries(SCHEDULES.map(({ name }) => [scheduleVariable(name), 'off'])),
      CHANDLER_SCHEDULE_COINS: '7 0 * * *',
    },
    simulator: { seed: 5, coins: 20, limits: { plan: 'enterprise', overrides: { pacePerSecond: PER_SECOND } } },
  });
  await world.start(services[0]!);
  const coinIds = await world.untilListed();
  for (const name of services.slice(1)) await world.start(name);
  return coinIds;
}

async function record(coinIds: readonly string[], priority: number): Promise<number> {
  const { sql } = world.database;
  const to = START - 4 * DAY - (START % DAY);
  const target = { coinIds, interval: '24h', quote: 'usd', span: { from: to - DAYS * DAY, to } } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  const requestedAt = world.clock.now();
  const plannedRequests = coinIds.length * DAYS;
  return queueBackfill(sql, { ...target, requestedAt, spec: {}, plannedRequests, priority });
}

const readAll = async () => new Map((await readBackfills(world.database.sql, { all: true })).map((b) => [b.id, b]));

/** The time until each forecast end, in requests at the full rate. */
async function readWork(): Promise<ReadonlyMap<number, number | null>> {
  const rows = [...(await readAll()).values()];
  const pace = (PER_SECOND / 1.01) * SECOND ** -1;
  return new Map(rows.map(({ id, finishAt }) => [id, finishAt && (finishAt - world.clock.now()) * pace]));
}

test('a backfill is forecast after the more urgent ones, equals as they alternate, and waiting ones after all before them', {
  timeout: 240_000,
}, async () => {
  const coinIds = await begin(['a', 'b', 'c']);
  const [big, small] = [await record(coinIds.slice(0, 12), 0), await record(coinIds.slice(12, 13), 0)];
  const urgent = await record(coinIds.slice(14, 17), 50);
  const waiting: number[] = [];
  for (let i = 0; i < 12; i++) waiting.push(await record([coinIds[18]!], -1));
  const running = async () => [...(await readAll()).values()].filter(({ state }) => state === 'running').length;
  for (let i = 0; (await running()) < 3; i++) {
    expect(i).toBeLessThan(20);
    await world.advance(2 * SECOND);
  }
  // A command that has just begun, beside the service.
  const ofCommand = 200;
  const now = world.clock.now();
  const command = await startBackfill(world.database.sql, {
    requestedAt: now,
    startedAt: now,
    spec: {},
    span: { from: START - 4 * DAY, to: START },
    interval: '24h',
    quote: 'usd',
    plannedRequests: ofCommand,
    owner: 'elsewhere:1',
  });
  // Until the upkeep has computed the forecasts, thirty seconds apart.
  for (let i = 0; i < 3; i++) {
    await renewRun(world.database.sql, command, world.clock.now());
    await world.advance(12 * SECOND);
  }
  const all = await readAll();
  expect([big, small, urgent].map((id) => all.get(id)!.state)).toEqual(['running', 'running', 'running']);
  const left = (id: number) => all.get(id)!.leftRequests!;
  const work = await readWork();
  const near = (id: number, requests: number) => expect(work.get(id), `of ${id}`).toBeCloseTo(requests, -2);
  near(urgent, left(urgent));
  near(big, left(urgent) + left(small) + ofCommand + left(big));
  expect(left(big)).toBeGreaterThan(2 * left(small));
  near(small, left(urgent) + 3 * left(small));
  const before = left(urgent) + left(small) + left(big) + ofCommand;
  // Three services take three of them at a time.
  for (const [i, id] of waiting.entries()) near(id, before + Math.ceil((i + 1) / 3) * 3 * DAYS);
  for (const id of [big, small, urgent, ...waiting]) {
    const { finishFrom, finishAt, finishTo } = all.get(id)!;
    expect(finishFrom).toBeLessThanOrEqual(finishAt!);
    expect(finishTo).toBeGreaterThan(finishAt!);
  }
});
