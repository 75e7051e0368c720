/**
 * The promises of a service to its operator, checked while a quarter passes (`quarter.ts`): schedules on time, ages, no quota spent on
 * refusals, and nothing missing in the end.
 */
import { expect } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { PlanName } from '../../src/contract/plan/plans.ts';
import { PLANS } from '../../src/contract/plan/plans.ts';
import { type CandleInterval, DAY, floorToGrid, HOUR, INTERVAL_MS, isCandleInterval } from '../../src/core/interval.ts';
import type { Tier } from '../../src/core/tier.ts';
import type { Schedule } from '../../src/ingest/schedule/schedule-plan.ts';
import { latestRuns } from '../../src/store/work/schedule-run.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import type { ServiceWorld } from '../support/service-world.ts';
import { checkStored, missingOf, seriesOf, unlessUnsettled } from './oracle.ts';
import type { QuarterOptions } from './quarter-plans.ts';

/** How often a queue that hands over a tick gets time of the machine before the test's clock goes on. */
const LOOKS = 20;
const LOOK_MS = 25;
/** A schedule that finds its previous run in progress looks again after ten seconds. */
const BEGUN_WITHIN_MS = 30_000;
/** The longest time of a run once it has begun: a catalogue of many coins is limited by the rate of the plan. */
const LONGEST_RUN_MS = 60_000;
/** How much time passes at once on days that are not run tick by tick. */
export const LONGEST_STEP_MS = 7 * HOUR;
const FRESHNESS_EVERY_MS = HOUR / 2;
/** Answers of 402, 403 and 404 that a day may have: a history limit and a refused coin are tested once a day each. */
const MOST_REFUSED_A_DAY = 12;

/** Checks that the latest tick of each schedule has begun, and is over within a minute (P8: whatever a backfill does). */
export async function checkCadence(world: ServiceWorld, schedules: readonly Schedule[], label: string): Promise<void> {
  const names = schedules.map(({ name }) => name);
  const read = async () => {
    const runs = new Map((await latestRuns(world.database.sql, names)).map((run) => [run.schedule, run]));
    return names.map((name) => runs.get(name) ?? null);
  };
  const due = (now: number) => schedules.map(({ name, cadence }) => tickText(name, cadence!.latest(now)!));
  const begun = async () => {
    const runs = await read();
    return runs.map((run, i) => (run === null ? names[i]! : tickText(run.schedule, run.tick)));
  };
  const isBegun = async () => (await begun()).join() === due(world.clock.now()).join();
  for (let ms = 0; ms < BEGUN_WITHIN_MS && !(await isBegun()); ms += 1_000) {
    for (let looks = 0; looks < LOOKS && !(await isBegun()); looks++) {
      await systemClock.sleep(LOOK_MS);
      await world.settle();
    }
    if (!(await isBegun())) await world.advance(1_000);
  }
  expect(await begun(), `${label}: begun`).toEqual(due(world.clock.now()));
  const open = async () =>
    (await read()).flatMap((run) => (run === null || run.state === 'done' ? [] : [`${run.schedule} ${run.state}`]));
  for (let ms = 0; ms < LONGEST_RUN_MS && (await open()).length > 0; ms += 1_000) await world.advance(1_000);
  expect(await open(), `${label}: over`).toEqual([]);
}

function tickText(schedule: string, tick: number): string {
  return `${schedule} ${new Date(tick).toISOString()}`;
}

/** Checks that since `from`, without disturbance, each tick was requested once, however many services there are. */
export function checkTicksOf(world: ServiceWorld, schedules: readonly Schedule[], from: number, label: string): void {
  for (const name of ['tickers', 'global', 'exchanges'] as const) {
    const { cadence } = schedules.find((schedule) => schedule.name === name)!;
    const asked = world.asked.filter(({ at, path }) => at > from && path === `/${name}`).length;
    expect(asked, `${label}: requests for ${name}`).toBe(cadence!.count(from, world.clock.now() + 1));
  }
}

/** Checks that refused requests are not repeated again and again (P6). */
export async function checkRefusals({ database, clock }: ServiceWorld, label: string): Promise<void> {
  const [row] = await database.sql<{ refused: number }[]>`
    select count(*)::int as refused from ops.fetch
    where status in (402, 403, 404) and sent_at > ${clock.now() - DAY}`;
  expect(row!.refused, `${label}: refused requests of a day`).toBeLessThanOrEqual(MOST_REFUSED_A_DAY);
}

type AgeTerms = { readonly trackedAt: number; readonly isLived: boolean };

/** Checks that no series exceeds its target age or, when requests are too few for that, its promised age. */
export async function checkAges(
  world: ServiceWorld,
  { plan, hasRoom, trackedAt, isLived }: Pick<QuarterOptions, 'plan' | 'hasRoom'> & AgeTerms,
  label: string,
): Promise<void> {
  const now = world.clock.now();
  for (const status of await readTierStatus(world.database.sql, now)) {
    const { tier, interval, unseen, oldestAgeMs, achievableAgeMs, targetAgeMs } = status;
    const what = `${label}: ${tier} ${interval}`;
    if (!isCandleInterval(interval)) throw new Error(`${what}: prices are not tracked here`);
    if (!PLANS[plan].intervals.includes(interval)) {
      // Once a day a request tests whether the plan shows it by now.
      expect(oldestAgeMs, what).toBeNull();
      continue;
    }
    if (achievableAgeMs === null) throw new Error(`${what}: nobody knows how old it may become`);
    // A series whose answers are about days gets a new one at midnight, at most one tick later.
    const isOfDays = PLANS[plan].historyDepthMs === DAY && targetAgeMs >= DAY;
    if (hasRoom) expect(achievableAgeMs, what).toBeLessThanOrEqual(targetAgeMs + (isOfDays ? FRESHNESS_EVERY_MS : 0));
    // On a day that is run tick by tick no tick is skipped.
    const latest = achievableAgeMs + (isLived ? 0 : LONGEST_STEP_MS + FRESHNESS_EVERY_MS);
    if (now - trackedAt > latest) expect(unseen, `${what} unseen`).toBe(0);
    if (oldestAgeMs !== null) expect(oldestAgeMs, what).toBeLessThanOrEqual(latest);
    if (now - trackedAt > latest) await checkNewest(world, { tier, interval, latest }, what);
  }
}

/** Checks that the shown ages are true: each series has a candle that is as young, final or not, if the market had one all the time. */
async function checkNewest(
  { database, simulator, clock }: ServiceWorld,
  { tier, interval, latest }: { readonly tier: Tier; readonly interval: CandleInterval; readonly latest: number },
  what: string,
): Promise<void> {
  const now = clock.now();
  const from = floorToGrid(now - latest, interval);
  const rows = await database.sql<{ coinId: string; newest: number | null }[]>`
    select s.coin_id, (select max(c.open_time) from market.candle c
      where c.series_id = s.id and c.interval = s.interval) as newest
    from ops.tracked tr join ops.tier k on k.id = tr.tier_id join market.series s on s.id = tr.series_id
    where k.tier = ${tier} and k.interval = ${interval}::market.candle_interval and tr.ends_at is null and s.quote = 'usd'`;
  expect(rows.length, what).toBeGreaterThan(0);
  for (const { coinId, newest } of rows) {
    const given = await simulator.data.ohlcv({ coinId, quote: 'usd', interval, from, to: now, limit: 1_000_000 });
    if (given!.length < (now - from) / INTERVAL_MS[interval]) continue;
    expect(newest ?? 0, `${what} ${coinId}: newest candle`).toBeGreaterThanOrEqual(from);
  }
}

/**
 * Checks that all that is wanted is stored, except for what the plan does not show and what cannot be final yet, and that backfills are
 * over (P5).
 */
export async function checkComplete(world: ServiceWorld, plan: PlanName): Promise<void> {
  const now = world.clock.now();
  const { sql } = world.database;
  await checkStored(world, 'in the end');
  const tiers = await readTierStatus(sql, now);
  const slowest = Math.max(0, ...tiers.map(({ achievableAgeMs }) => achievableAgeMs ?? 0));
  const { historyDepthMs, intervals } = PLANS[plan];
  const limit = historyDepthMs === null ? Number.NEGATIVE_INFINITY : now - historyDepthMs + slowest + 2 * DAY;
  for (const series of await seriesOf(world)) {
    const { coinId, interval } = series;
    if (!isCandleInterval(interval) || !intervals.includes(interval)) continue;
    const missing = unlessUnsettled(await missingOf(world, series, now), interval, now, slowest + DAY);
    expect(
      missing.filter(({ to }) => to > limit),
      `${coinId} ${interval}`,
    ).toEqual([]);
  }
  const open = (await readBackfills(sql, { all: false })).map(({ id, state, message }) => ({ id, state, message }));
  expect(open).toEqual([]);
}
