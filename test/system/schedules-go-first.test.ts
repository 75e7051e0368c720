import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { cadenceOf } from '../../src/ingest/schedule/cadence.ts';
import { waitForPermit } from '../../src/quota/permit.ts';
import { reservedAt } from '../../src/quota/reservation.ts';
import { createScriptedWorld, type ScriptedWorld } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 22);
const TODAY = Math.floor(NOW / DAY) * DAY;
const WORK = {
  coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
  from: TODAY - 1_503 * DAY,
  to: TODAY - 3 * DAY,
  concurrency: 32,
};
/** Scheduled requests, one every two and a half seconds. */
const REQUESTS = 5;
const SCHEDULED = { class: 'scheduled', name: 'tickers' } as const;
/** The ledger grants no permits further ahead than this (`RUN_AHEAD_MS`). */
const RUN_AHEAD_MS = 2_000;

let world: World;
let upstream: ScriptedWorld['upstream'];
afterEach(() => world?.close());
async function make(options: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld({
    startAt: NOW,
    simulator: { seed: 3, coins: 12, unlimited: true, latencyMs: 200 },
    ...options,
  }));
}

describe('while a backfill of any size runs', () => {
  // On a busy machine a permit may be late sometimes. If scheduled requests queue behind the backfill, one is late each time.
  test('scheduled requests get their permit within the run-ahead of the ledger, however saturated the rate is', {
    retry: 2,
  }, async () => {
    await make({ speed: 2, limits: { perMonth: null, perSecond: 5 } });
    const chandler = await world.open({ candlesPerRequest: 20 });
    const { quota } = chandler.session;
    const waits: number[] = [];
    const stop = new AbortController();
    let ended = false;
    const run = chandler.backfill({ ...WORK, signal: stop.signal }).finally(() => {
      ended = true;
    });
    for (let i = 0; i < REQUESTS && !ended; i++) {
      await world.clock.sleep(2_500);
      const askedAt = world.clock.now();
      const turn = await waitForPermit({ quota, spender: SCHEDULED, clock: world.clock });
      expect(turn.kind).toBe('granted');
      waits.push(world.clock.now() - askedAt);
    }
    expect(ended, 'the backfill must last as long as the schedule').toBe(false);
    // The backfill used the rest of the rate all the time.
    const sent = upstream.ohlcv().length;
    expect(sent).toBeGreaterThan(0.75 * REQUESTS * 2.5 * 5);
    stop.abort();
    await run;
    expect(waits).toHaveLength(REQUESTS);
    // Thirty-two workers want more than the ledger looks ahead. One second more is for a busy machine: at twice the speed, every delay is
    // twice as long.
    expect(Math.max(...waits)).toBeLessThan(RUN_AHEAD_MS + 1_000);
  });

  test('the requests that schedules still need stay reserved until the end of the day: the backfill stops, they go on', async () => {
    const needs = [{ name: 'tickers', requests: 1, ticks: cadenceOf('*/30 * * * *').count }];
    const perDay = 60;
    await make({
      limits: { perMonth: null, perDay },
      reserved: () => reservedAt(world.clock.now(), needs),
      simulator: { seed: 3, coins: 12, unlimited: true, limits: { overrides: { anonymousRequestsPerDay: perDay } } },
    });
    const chandler = await world.open({ candlesPerRequest: 20 });
    const run = await chandler.backfill({ ...WORK, maxWaitMs: 60_000 });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'reserved' });
    const { quota } = chandler.session;
    const reserved = reservedAt(NOW, needs).day;
    expect(reserved).toBe(4);
    const spent = (await quota.state()).day.spent;
    expect(spent).toBe(perDay - reserved);

    // Two hours of schedule, with a backfill that tries again before each run and never takes what is not its own.
    let granted = 0;
    for (let at = NOW; at < TODAY + DAY - 60_000; at += 30 * 60_000) {
      world.clock.advanceTo(at);
      expect((await chandler.backfill({ ...WORK, maxWaitMs: 60_000 })).end.kind).toBe('stopped');
      const take = await quota.take(SCHEDULED);
      expect(take, new Date(at).toISOString()).toMatchObject({ kind: 'granted' });
      granted++;
    }
    expect(granted).toBe(4);
    expect((await quota.state()).day.spent).toBeLessThanOrEqual(perDay);
    expect(world.simulator.counters().accounts[0]!.rejected).toEqual({ pace: 0, day: 0, month: 0 });
    // The next day the backfill goes on with what that day's schedule leaves.
    world.clock.advanceTo(TODAY + DAY + 60_000);
    expect((await chandler.backfill({ ...WORK, maxWaitMs: 60_000 })).end.kind).toBe('stopped');
    expect((await quota.state()).day.spent).toBe(perDay - reservedAt(world.clock.now(), needs).day);
  });
});
