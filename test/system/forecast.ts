/** A backfill at five requests per second, and its forecast. */
import { DAY } from '../../src/core/interval.ts';
import { forecast } from '../../src/quota/forecast.ts';
import { type Chandler, createWorld, type World, type WorldOptions } from '../support/world.ts';

export const NOW = Date.UTC(2026, 10, 18, 12);
export const TODAY = Math.floor(NOW / DAY) * DAY;
export const PER_SECOND = 5;
export const WORK = {
  coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
  from: TODAY - 1_003 * DAY,
  to: TODAY - 3 * DAY,
  concurrency: 8,
};

export let world: World;
export async function make(options: WorldOptions = {}): Promise<Chandler> {
  world = await createWorld({
    startAt: NOW,
    speed: 4,
    limits: { perMonth: null, perSecond: PER_SECOND },
    ...options,
    simulator: { seed: 3, coins: 12, unlimited: true, latencyMs: 100, ...options.simulator },
  });
  return world.open({ candlesPerRequest: 20 });
}

/** What `plan` and `--dry-run` print: when so many requests will have been sent, by the ledger's present state. */
export async function forecastMs({ session }: Chandler, requests: number): Promise<number> {
  const { now, day, month, rate, hold } = await session.quota.state();
  const start = Math.max(now, rate.nextFree, hold?.until ?? 0);
  const { finishAt } = forecast({
    requests,
    limits: session.limits,
    spent: { day: day.spent, month: month.spent },
    now: start,
    slowdown: rate.limit! / rate.now!,
    reserved: () => ({ day: 0, month: 0 }),
  });
  return finishAt! - now;
}
