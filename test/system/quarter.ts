/**
 * A service under one plan for some months of virtual time, with restarts, outages of everything it depends on, a second instance and
 * clocks that are set. Every step checks the promises. It is small: few coins, small budgets, and a clock that mostly passes in steps of
 * some hours. The calm days are run tick by tick.
 */
import { schedulesOf } from '../../src/budget.ts';
import { effectiveLimits } from '../../src/config.ts';
import { type CandleInterval, ceilToGrid, DAY, HOUR, INTERVAL_MS } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { DEFAULT_PRIORITY } from '../../src/core/tier.ts';
import type { Environment } from '../../src/settings.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { countSeries } from '../../src/views/operations/series-filter.ts';
import { startHook } from '../support/hook.ts';
import { randomOf } from '../support/random.ts';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';
import { createToldFigures, type ToldFigures } from './notice-figures.ts';
import { checkSpent, checkStored } from './oracle.ts';
import { createPromiseFigures, type PromiseFigures } from './promise-figures.ts';
import {
  checkAges,
  checkCadence,
  checkComplete,
  checkRefusals,
  checkTicksOf,
  LONGEST_STEP_MS,
} from './quarter-checks.ts';
import { createHappenings } from './quarter-happenings.ts';
import type { QuarterOptions } from './quarter-plans.ts';
import { askAgain } from './service-scenario.ts';

export type Stretch = {
  readonly startAt: number;
  readonly days: number;
  /** Days on which something happens. */
  readonly troubled: number;
  /** Every so many days, one day without disturbance is run tick by tick. The last day is one as well. */
  readonly livedEvery: number;
  /** Nothing happens on the last days. All promises must hold then. */
  readonly calmAtTheEnd: number;
  /** How many services run from the beginning. Default: one. */
  readonly services?: number;
};

export type QuarterCounts = {
  readonly requests: number;
  readonly steps: number;
  readonly events: Readonly<Record<string, number>>;
  readonly figures: PromiseFigures;
  readonly told: ToldFigures;
  readonly toldTwice: readonly string[];
};

const MINUTE = 60_000;
const RECORDED_EVERY = 14;
const RECORDED_ON = 3;
const MOST_RECORDED = 6;
/** Each tick of a day that is run tick by tick is a step. */
export const CADENCES: Environment = {
  CHANDLER_SCHEDULE_TICKERS: '0 */6 * * *',
  CHANDLER_SCHEDULE_GLOBAL: '30 */12 * * *',
  CHANDLER_SCHEDULE_COINS: '7 */12 * * *',
  CHANDLER_SCHEDULE_EXCHANGES: '22 0 * * *',
  CHANDLER_SCHEDULE_FRESHNESS: '*/30 * * * *',
  CHANDLER_SCHEDULE_GAPS: '52 */8 * * *',
};
const BORDER_MS = 2_100;
/** The day's last step. The refreshes of a day are spread over it, and must not be skipped. */
const EVENING_MS = 23 * HOUR + 40 * MINUTE;
const WATCH_MS = 1_000;
const MOST_WATCHED = 300;
/** A host's clock may be a day behind at its request, and a candle of a day is final a day after it has closed. */
const FINAL_FOR_ALL_MS = 4 * DAY;

export async function liveAQuarter(options: QuarterOptions, stretch: Stretch): Promise<QuarterCounts> {
  const { plan, hasKey, redis, limits, perSecond } = options;
  const random = randomOf(options.seed);
  const chance = (share: number) => random() < share;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const hook = await startHook();
  const world = await createServiceWorld({
    startAt: stretch.startAt,
    redis,
    env: {
      ...CADENCES,
      CHANDLER_WEBHOOK_URL: hook.url,
      CHANDLER_NOTIFY: 'all',
      ...options.env,
      ...(hasKey ? { CHANDLER_API_KEY: 'right', CHANDLER_SCHEDULE_ACCOUNT: '37 */12 * * *' } : {}),
      CHANDLER_PLAN: plan,
      CHANDLER_MONTHLY_REQUESTS: String(limits.requestsPerMonth ?? 'unlimited'),
      CHANDLER_DAILY_REQUESTS: String(limits.anonymousRequestsPerDay ?? 'unlimited'),
      CHANDLER_REQUESTS_PER_SECOND: String(perSecond ?? 'unlimited'),
      CHANDLER_CANDLES_PER_REQUEST: String(options.candlesPerRequest),
    },
    simulator: {
      seed: options.seed,
      coins: options.coins,
      limits: { plan, keys: { right: plan }, overrides: { ...limits, pacePerSecond: perSecond } },
    },
  });
  const { sql } = world.database;
  const schedules = schedulesOf(world.config, plan, effectiveLimits(plan, world.config)).filter(
    ({ cadence }) => cadence !== null,
  );
  let started = 0;
  let steps = 0;
  const start = () => world.start(`service-${++started}`);
  /** Nothing disturbs since then. */
  let calmSince = stretch.startAt;
  const events: Record<string, number> = {};

  const figures = createPromiseFigures(world);
  const told = createToldFigures(world, hook);
  const disturb = () => {
    figures.disturb();
    told.disturb();
  };
  const step = async (ms: number, isLived: boolean) => {
    if (!isLived) disturb();
    await world.advance(ms - 1);
    // Ages are promised for a running service. Skipped ticks and outages have made the data older.
    await figures.look({ withAges: isLived && world.clock.now() - calmSince > DAY, isCalm: isLived });
    await world.advance(1);
    // Nothing is sent within two seconds of the border of a limited window.
    await world.advance(BORDER_MS);
    steps++;
    const label = `${new Date(world.clock.now()).toISOString()} after ${Object.entries(events)
      .map(([name, n]) => `${n} × ${name}`)
      .join(', ')}`;
    expectAlive(world);
    await told.look();
    await checkSpent(world, label);
    await checkStored(world, label, ({ id }) => id % 7 === steps % 7);
    await checkCadence(world, schedules, label);
  };
  const happenings = createHappenings(world, { start, chance, pick, between, hasRedis: redis !== null });
  /** Each happens once before one happens again. */
  let deck: string[] = [];
  const draw = (): string => {
    if (deck.length === 0) deck = Object.keys(happenings);
    return deck.splice(Math.floor(random() * deck.length), 1)[0]!;
  };

  try {
    for (let i = 0; i < (stretch.services ?? 1); i++) await start();
    const coins = await world.untilListed();
    await addTracks(
      sql,
      options.tracks.map(({ days, ...rule }) => ({
        ...rule,
        quote: 'usd',
        since: stretch.startAt - days * DAY,
        priority: DEFAULT_PRIORITY[rule.tier],
      })),
      world.clock.now(),
    );
    const trackedAt = world.clock.now();
    // The first run of freshness makes the series of these rules. Before it, no request is reserved for them.
    while ((await countSeries(sql, {})) === 0) {
      expectAlive(world);
      await world.advance(MINUTE);
      await checkSpent(world, 'before the first run of freshness');
    }
    for (let day = 0; day < stretch.days; day++) {
      const begin = stretch.startAt + day * DAY;
      const end = begin + DAY;
      const last = stretch.days - 1;
      const isLived = day === last || day % stretch.livedEvery === stretch.livedEvery - 1;
      const isCalm = isLived || day > last - stretch.calmAtTheEnd;
      if (day > last - stretch.calmAtTheEnd) await askAgain(world);
      if (day % RECORDED_EVERY === RECORDED_ON) {
        await record(world, coins, options.backfill);
        if (perSecond !== null) await watch(world, told);
      }
      if (!isCalm && day > 0 && chance(stretch.troubled)) {
        disturb();
        const what = draw();
        events[what] = (events[what] ?? 0) + 1;
        await world.advance(between(1, 10) * HOUR);
        await happenings[what]!();
        disturb();
        calmSince = world.clock.now();
      }
      const from = world.clock.now();
      while (world.clock.now() < end) {
        const now = world.clock.now();
        const next = isLived
          ? Math.min(...schedules.map(({ cadence }) => cadence!.next(now)))
          : now + between(4 * HOUR, LONGEST_STEP_MS);
        const evening = begin + EVENING_MS;
        await step(Math.max(1, Math.min(next, now < evening ? evening : end) - now), isLived);
      }
      const label = `day ${day}`;
      if (isLived) checkTicksOf(world, schedules, from, label);
      await checkRefusals(world, label);
      if (world.clock.now() - calmSince > DAY) await checkAges(world, { ...options, trackedAt, isLived }, label);
    }
    // The last day is over.
    await figures.look({ withAges: false, isCalm: true });
    await checkComplete(world, plan);
    const requests = world.simulator.counters().requests.total;
    return { requests, steps, events, figures, told, toldTwice: await told.readToldTwice() };
  } finally {
    await world.close();
    await hook.close();
  }
}

/** Reads the forecast of a backfill while it runs. Its rate makes it last a minute or two. */
async function watch(world: ServiceWorld, told: ToldFigures): Promise<void> {
  for (let looks = 0; looks < MOST_WATCHED; looks++) {
    await world.advance(WATCH_MS);
    await told.look();
    if ((await readBackfills(world.database.sql, { all: false })).length === 0) return;
  }
}

/**
 * Some of these coins with a candle in each slot. With a hole at an edge, a backfill waits for a second answer, which no forecast can
 * foresee. Not bitcoin: its price in bitcoins never changes, and is believed only after two answers.
 */
async function foreseen(
  { simulator }: ServiceWorld,
  coinIds: readonly string[],
  interval: CandleInterval,
  span: Span,
): Promise<string[]> {
  const slots = (span.to - span.from) / INTERVAL_MS[interval];
  const found: string[] = [];
  for (const coinId of coinIds) {
    if (found.length === MOST_RECORDED) break;
    if (coinId === 'btc-bitcoin') continue;
    const candles = await simulator.data.ohlcv({ coinId, quote: 'btc', interval, ...span, limit: slots });
    if (candles?.length === slots) found.push(coinId);
  }
  return found;
}

async function record(
  world: ServiceWorld,
  coinIds: readonly string[],
  { interval, days }: QuarterOptions['backfill'],
): Promise<void> {
  const { sql } = world.database;
  const now = world.clock.now();
  // A backfill requests each slot once. What cannot be final yet would be left as a gap, as the backfill says.
  const to = ceilToGrid(now, interval) - FINAL_FOR_ALL_MS;
  const span = { from: to - days * DAY, to };
  const target = { coinIds: await foreseen(world, coinIds, interval, span), interval, quote: 'btc', span } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  await queueBackfill(sql, { ...target, requestedAt: now, spec: {}, plannedRequests: 1, priority: 0 });
}
