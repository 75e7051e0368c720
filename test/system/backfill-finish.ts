/** The forecast end of backfills while they run: several services, failures, a pause, and other backfills that share the rate. */
import { expect } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { scheduleVariable } from '../../src/ingest/schedule/schedule-plan.ts';
import { SCHEDULES } from '../../src/ingest/schedule/schedules.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { type BackfillRow, readBackfills } from '../../src/views/backfills/backfills.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';

const START = Date.UTC(2026, 5, 10, 12);
const TO = START - 4 * DAY - (START % DAY);
const DAYS = 100;
const SECOND = 1_000;
const PER_SECOND = 5;
const EVERY_MS = 4 * SECOND;
/** One request in this many fails. */
const FAILS = 9;

export let world: ServiceWorld;

export async function begin(services: readonly string[]): Promise<readonly string[]> {
  let asked = 0;
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
    script: (request) => {
      if (!request.url.includes('/ohlcv/') || ++asked % FAILS !== 0) return null;
      return Promise.resolve(new Response('busy', { status: 503 }));
    },
  });
  await world.start(services[0]!);
  const listed = await world.untilListed();
  for (const name of services.slice(1)) await world.start(name);
  // With a hole at an edge, a backfill would wait for a second answer.
  const span = { from: TO - DAYS * DAY, to: TO };
  const complete: string[] = [];
  for (const coinId of listed) {
    const candles = await world.simulator.data.ohlcv({ coinId, quote: 'usd', interval: '24h', ...span, limit: DAYS });
    if (candles?.length === DAYS) complete.push(coinId);
  }
  return complete;
}

/** A backfill of one request for each day of each coin. */
export async function record(coinIds: readonly string[], days: number): Promise<number> {
  const { sql } = world.database;
  const target = { coinIds, interval: '24h', quote: 'usd', span: { from: TO - days * DAY, to: TO } } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  const plannedRequests = coinIds.length * days;
  return queueBackfill(sql, { ...target, requestedAt: world.clock.now(), spec: {}, plannedRequests, priority: 0 });
}

type Told = { readonly at: number; readonly rows: ReadonlyMap<number, BackfillRow> };

/** The forecasts until all backfills are done. `happenings` has the number of the look as its key. */
export async function watch(
  happenings: Readonly<Record<number, () => Promise<unknown>>> = {},
): Promise<readonly Told[]> {
  const told: Told[] = [];
  for (let look = 0; look < 200; look++) {
    await happenings[look]?.();
    await world.advance(EVERY_MS);
    const rows = await readBackfills(world.database.sql, { all: true });
    told.push({ at: world.clock.now(), rows: new Map(rows.map((row) => [row.id, row])) });
    if (rows.every(({ state }) => state === 'done')) return told;
  }
  throw new Error('they are not done');
}

/** Checks that in the last half of a backfill the forecast end is right to a tenth of the backfill's time. */
export function checkAccurate(told: readonly Told[], id: number): void {
  const { startedAt, finishedAt } = told.at(-1)!.rows.get(id)!;
  const took = finishedAt! - startedAt!;
  const late = told.filter(({ at, rows }) => at > finishedAt! - took / 2 && rows.get(id)!.state === 'running');
  expect(late.length, `looks at ${id}`).toBeGreaterThan(3);
  for (const { at, rows } of late) {
    const { finishAt } = rows.get(id)!;
    const off = Math.abs(finishAt! - finishedAt!) / took;
    expect(off, `${id}, ${(finishedAt! - at) / SECOND} s before its end`).toBeLessThan(0.1);
  }
}

/** Checks that an end outside the former range comes with a reason, and that progress never falls. */
export function checkSteady(told: readonly Told[], id: number): readonly string[] {
  const changes = new Set<string>();
  for (const [i, { rows }] of told.entries()) {
    const [before, now] = [told[i - 1]?.rows.get(id), rows.get(id)!];
    if (before === undefined) continue;
    expect(now.progress, `progress of ${id}`).toBeGreaterThanOrEqual(before.progress!);
    if (now.finishChange !== null) changes.add(now.finishChange);
    if (now.finishAt === null || before.finishFrom === null) continue;
    const isInside = now.finishAt >= before.finishFrom && now.finishAt <= before.finishTo!;
    if (!isInside) expect(now.finishChangedAt, `${id}: why it changed`).toBeGreaterThan(told[i - 1]!.at);
  }
  return [...changes];
}
