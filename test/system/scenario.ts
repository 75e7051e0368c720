/**
 * The whole-system property, one seed at a time: after any sequence of faults, lies told once, restarts and double scheduling, candles and
 * prices equal the market on all covered spans, coverage equals what was wanted, and the upstream never counted more requests than the
 * budget allowed.
 */
import { expect } from 'vitest';
import { countSlots } from '../../src/core/chunk.ts';
import { ceilToGrid, DAY, HOUR, INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import type { QueueEngine } from '../../src/ingest/queue/queue-engine.ts';
import { createSimulator } from '../../src/simulate.ts';
import { type FaultName, LIES, parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';
import { asPrices } from '../support/as-prices.ts';
import { behindCache, LONGEST_CACHED_MS } from '../support/cache.ts';
import { randomOf } from '../support/random.ts';
import { type Chandler, createWorld, type World } from '../support/world.ts';
import { LIES_BESIDE, withLiesBeside } from './lies-beside.ts';
import { checkSpent, checkStored, missingOf, seriesOf } from './oracle.ts';

type Work = {
  readonly coins: readonly string[];
  readonly interval: Interval;
  readonly from: number;
  readonly to: number;
};

/** Faults that fail, or that the answer itself shows to be wrong. `empty` is told once, like the lies. */
const FAULTS: readonly FaultName[] = [
  '429',
  '429-silent',
  '402-spent',
  '500',
  '502',
  'reset',
  'hang',
  'truncated',
  'empty',
  'duplicates',
  'conflict',
  'unsorted',
  'impossible',
  'stale',
  'revision',
];
/** `LIES=scaled,half` tells only these lies, in every seed. */
const only = process.env.LIES?.split(',');
/** Lies that are found out wherever they are told. */
const LIES_ALONE: readonly FaultName[] = LIES.filter(
  (name) => !LIES_BESIDE.includes(name) && (only?.includes(name) ?? true),
);
export const SEED_FAULTS: readonly FaultName[] = [...FAULTS, ...LIES_ALONE, ...LIES_BESIDE];

/** Some of the lies with their rates, as a specification of faults has them. */
export function drawLies(random: () => number): readonly string[] {
  return LIES_ALONE.filter(() => random() < 0.3 || only !== undefined).map(
    (name) => `${name}:${(random() * 0.04).toFixed(4)}`,
  );
}

/** The share of prices in what is requested. `PRICES=1`: all of it. */
const SHARE_OF_PRICES = Number(process.env.PRICES ?? 0.4);
/** How far the two clocks may differ. */
const MOST_SKEW_MS = 2 * HOUR;
const MOST_RUNS = 200;
/** Longer waits are not waited out: the clock is set forward. */
const MAX_WAIT_MS = 20_000;

export type SeedCounts = {
  readonly requests: number;
  /** Number of injected faults by kind. */
  readonly faults: Readonly<Record<string, number>>;
  readonly runs: number;
};

export async function runSeed(seed: number, engine?: QueueEngine): Promise<SeedCounts> {
  const random = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));

  const startAt = Date.UTC(2026, 9, 1) + Math.floor(random() * 28 * DAY);
  const rates = FAULTS.filter(() => random() < 0.45).map(
    (name) => `${name}:${(random() * (name === '402-spent' ? 0.01 : 0.06)).toFixed(4)}`,
  );
  // A separate random sequence, as below.
  const lies = drawLies(randomOf(seed + 4_000_000));
  const faults = parseFaultSpec([...rates, ...lies, `seed=${seed}`].join());
  if (!faults.ok) throw new Error(faults.problem);
  const perDay = random() < 0.3 ? between(40, 120) : null;
  const perMonth = random() < 0.2 ? between(60, 200) : null;
  const coins = between(3, 6);
  // A separate random sequence, because the scenarios of the seeds are older. A limit of a day or a month holds by one clock only.
  const ofClocks = randomOf(seed + 2_000_000);
  const differs = ofClocks() < 0.5 && perDay === null && perMonth === null;
  const upstreamAheadMs = Math.round((2 * ofClocks() - 1) * MOST_SKEW_MS);
  const isCached = ofClocks() < 0.3;
  // Another separate sequence.
  const ofLies = randomOf(seed + 6_000_000);
  const lieShare = ofLies() < 0.5 ? ofLies() * 0.3 : 0;
  const market = { seed, coins };
  const liesBeside: Record<string, number> = {};
  let upstream: FetchFunction | undefined;
  const world = await createWorld({
    ...(differs ? { upstreamAheadMs } : {}),
    fetch: (simulated, clock) => {
      if (upstream !== undefined) return upstream;
      const theirs = { now: () => clock.now() + (differs ? upstreamAheadMs : 0), sleep: clock.sleep };
      const truth = createSimulator({ market: 'made-up', unlimited: true, ...market, clock: theirs, onError: fail });
      const told = (name: FaultName) => {
        liesBeside[name] = (liesBeside[name] ?? 0) + 1;
      };
      const { sql } = world.database;
      const options = { seed, share: lieShare, clock: theirs, sql, ask: truth.fetch, told };
      const lying = lieShare === 0 ? simulated : withLiesBeside(simulated, options);
      upstream = isCached ? behindCache(lying, clock) : lying;
      return upstream;
    },
    speed: 100,
    faults: () => faults.spec,
    startAt,
    // A separate sequence: the number of draws depends on timing, and must not change the scenario.
    random: randomOf(seed + 1_000_000),
    simulator: {
      ...market,
      unlimited: true,
      limits: { overrides: { anonymousRequestsPerDay: perDay, requestsPerMonth: perMonth } },
    },
    limits: { perMonth, perDay, perSecond: random() < 0.5 ? 10 : null },
    ...(engine ? { engine, queueName: `seed-${seed}-${engine.kind}` } : {}),
  });
  try {
    const known = (await world.simulator.data.coins()).map((coin) => coin.id);
    const candlesPerRequest = pick([7, 20, 50, 366]);
    const rowsPerRequest = { candlesPerRequest, pricesPerRequest: candlesPerRequest };
    // A separate sequence: which targets are of prices, beside candles of the same coins.
    const ofPrices = randomOf(seed + 8_000_000);
    const works: Work[] = Array.from({ length: between(1, 3) }, () => {
      const ofCandles = pick(['24h', '24h', '1h', '5m', '6h'] as const);
      const interval = ofPrices() < SHARE_OF_PRICES ? asPrices(ofCandles) : ofCandles;
      const width = INTERVAL_MS[interval];
      const to = ceilToGrid(startAt - Math.floor(random() * (random() < 0.5 ? 0 : 400)) * width, interval);
      const slots = Math.min(between(20, 400), candlesPerRequest * 12);
      return { coins: known.filter(() => random() < 0.8), interval, from: to - slots * width, to };
    }).filter((work) => work.coins.length > 0);

    let runs = 0;
    // Chaos: runs that overlap, are interrupted, lose their queue and their database connections.
    for (let round = between(1, 3); round > 0; round--) {
      const chandlers: Chandler[] = [];
      for (let i = between(1, 2); i > 0; i--) chandlers.push(await world.open(rowsPerRequest));
      await Promise.all(
        works.flatMap((work, i) =>
          random() < 0.8
            ? [chaoticRun(world, chandlers[i % chandlers.length]!, work, randomOf(seed + 1000 * (10 * round + i + 1)))]
            : [],
        ),
      );
      runs += works.length;
      await checkAlways(world, seed);
      world.clock.advanceTo(world.clock.now() + Math.floor(random() * 3 * HOUR));
    }
    // Liveness: nothing disturbs any more. Runs follow each other until nothing is left, which must come soon.
    const last = await world.open(rowsPerRequest);
    for (const work of works) {
      for (let i = 0; ; i++) {
        expect(i, `seed ${seed}: still not complete after ${MOST_RUNS} undisturbed runs`).toBeLessThan(MOST_RUNS);
        const run = await last.backfill({ ...work, concurrency: between(1, 4), maxWaitMs: MAX_WAIT_MS });
        runs++;
        await checkAlways(world, seed);
        if (run.end.kind === 'stopped') world.clock.advanceTo(run.end.until + 1000);
        // A cache may repeat a false answer to every attempt of a chunk.
        else if (run.failed.length > 0) world.clock.advanceTo(world.clock.now() + LONGEST_CACHED_MS);
        else {
          const due = await nextDue(world, work);
          if (due === null) break;
          world.clock.advanceTo(due + 1000);
        }
      }
    }
    await checkComplete(world, works, seed);
    const { requests, faults: injected } = world.simulator.counters();
    return { requests: requests.total, faults: { ...injected, ...liesBeside }, runs };
  } finally {
    await world.close();
  }
}

function fail(error: unknown): never {
  throw error;
}

/** A run that may be interrupted, or lose its queue or its connections while it runs. */
async function chaoticRun(world: World, chandler: Chandler, work: Work, random: () => number): Promise<void> {
  const stop = new AbortController();
  const blows = Math.floor(random() * 3);
  const kinds = Array.from({ length: blows }, () => ({
    at: random(),
    kind: ['interrupt', 'interrupt', 'wipe', 'wipe', 'cut'][Math.floor(random() * 5)],
  }));
  let chunks = 0;
  const struck: Promise<unknown>[] = [];
  const strike = async (kind: string | undefined): Promise<unknown> => {
    if (kind === 'interrupt') return stop.abort();
    if (kind === 'wipe') return chandler.queue.wipe();
    return world.database.sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and random() < 0.5`;
  };
  await chandler
    .backfill({
      ...work,
      concurrency: 1 + Math.floor(random() * 5),
      maxWaitMs: MAX_WAIT_MS,
      signal: stop.signal,
      onProgress: ({ chunksDone, chunksPlanned }) => {
        if (chunksDone === chunks) return;
        chunks = chunksDone;
        for (const blow of kinds.splice(0)) {
          if (chunksDone / Math.max(1, chunksPlanned) < blow.at) kinds.push(blow);
          else struck.push(strike(blow.kind).catch(() => undefined));
        }
      },
    })
    // A connection that is cut at the wrong moment ends a run with an error, as it would end a process.
    .catch((error: unknown) => {
      if (!/CONNECTION|ECONNRESET|EPIPE|terminat|57P01|57P03/i.test(String(error))) throw error;
    });
  // The test's own connections may have been cut, too. The checks do not wait, so that must be known first.
  await Promise.all(struck);
  await untilConnected(world);
}

/** Resolves when all connections of the pool answer again: those that were cut have been replaced. */
async function untilConnected({ database: { sql } }: World): Promise<void> {
  const all = () => Promise.all(Array.from({ length: sql.options.max }, () => sql`select pg_sleep(0.001)`));
  for (let tries = 0; tries < 20; tries++) {
    const failed = await all().then(
      () => false,
      () => true,
    );
    if (!failed) return;
  }
  throw new Error('the connections that were cut do not come back');
}

async function nextDue(world: World, { interval, coins, from, to }: Work): Promise<number | null> {
  const [row] = await world.database.sql<{ due: number | null }[]>`
    select min(p.retry_at) as due from ops.second_opinion p
    join market.series s on s.id = p.series_id
    where s.interval = ${interval}::market.candle_interval and s.coin_id = any(${coins as string[]}::text[]) and p.retry_at < 'infinity' and p.span && ${{ from, to }}::tstzrange`;
  return row?.due ?? null;
}

/** Checks what holds at every step, whatever happened. */
async function checkAlways(world: World, seed: number): Promise<void> {
  await checkStored(world, `seed ${seed}`);
  await checkSpent(world, `seed ${seed}`);
}

/** Checks that coverage is exactly what was wanted, from the start of the coin. */
async function checkComplete(world: World, works: readonly Work[], seed: number): Promise<void> {
  const now = world.clock.now();
  for (const series of await seriesOf(world)) {
    const { interval, coinId } = series;
    const mine = works.filter((work) => work.interval === interval && work.coins.includes(coinId));
    const missing = await missingOf(world, series, now);
    const slots = countSlots(missing, interval);
    expect(missing, `seed ${seed}: ${coinId} ${interval} misses ${slots} slots of ${mine.length} works`).toEqual([]);
  }
}
