/**
 * Lies anywhere, each told once: in the end each final slot equals the market, or docs/proof.md does not promise that its lie is found out.
 * Nothing else goes wrong here: faults, restarts and overlapping runs are in `scenario.ts`.
 */
import { describe, expect, test } from 'vitest';
import { type CandleInterval, ceilToGrid, DAY, INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import { createSimulator } from '../../src/simulate.ts';
import { rowQuestion } from '../../src/simulator/faults/row-question.ts';
import { asPrices } from '../support/as-prices.ts';
import { randomOf } from '../support/random.ts';
import { createWorld, type World } from '../support/world.ts';
import { type Told, withLiesBeside } from './lies-beside.ts';
import { type SeenSeries, seriesOf, truthOf } from './oracle.ts';
import { OTHER_SIZE } from './promised.ts';

type Lie = Told & { readonly name: string };
export type LiesCounted = {
  readonly told: number;
  readonly promised: number;
  /** Final slots that are false in the end. All of their lies were told where nothing is promised. */
  readonly falseSlots: number;
};

const MOST_RUNS = 60;

/** @throws when a false candle became final although it should have been found out. */
export async function runLies(seed: number, of: 'candles' | 'prices'): Promise<LiesCounted> {
  const random = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const startAt = Date.UTC(2026, 9, 1) + Math.floor(random() * 28 * DAY);
  const market = { seed, coins: between(2, 4) };
  const lies: Lie[] = [];
  const share = 0.1 + 0.5 * random();
  const world = await createWorld({
    speed: 1000,
    startAt,
    random: randomOf(seed + 1_000_000),
    simulator: market,
    fetch: (simulated, clock) => {
      const fail = (error: unknown): never => {
        throw error;
      };
      const truth = createSimulator({ market: 'made-up', unlimited: true, ...market, clock, onError: fail });
      const { sql } = world.database;
      const told = (name: string, lie: Told) => void lies.push({ ...lie, name });
      return withLiesBeside(simulated, { seed, share, clock, sql, ask: truth.fetch, anywhere: true, told });
    },
  });
  try {
    const candlesPerRequest = pick([4, 7, 20, 50]);
    const chandler = await world.open({ candlesPerRequest, pricesPerRequest: candlesPerRequest });
    const coins = (await world.simulator.data.coins()).map(({ id }) => id);
    const ofCandles: readonly CandleInterval[] = pick([
      ['24h'],
      ['1h'],
      ['5m'],
      ['24h', '6h'],
      ['24h', '1h'],
      ['1h', '5m'],
    ]);
    const intervals: readonly Interval[] = of === 'prices' ? ofCandles.map(asPrices) : ofCandles;
    const to = ceilToGrid(startAt, intervals[0]!) - 3 * DAY;
    const slots = between(2, 8) * candlesPerRequest;
    for (const interval of intervals) {
      // Several stretches one after the other, so that some lie between others, and some apart.
      const width = INTERVAL_MS[interval];
      const whole = { from: ceilToGrid(to - slots * width, interval), to: ceilToGrid(to, interval) };
      for (let part = between(0, 3); part > 0; part--) {
        const from = whole.from + between(0, slots - 2) * width;
        await complete(
          world,
          { coins, interval, from, to: Math.min(from + between(1, slots) * width, whole.to) },
          chandler,
        );
      }
      await complete(world, { coins, interval, ...whole }, chandler);
    }
    return await count(world, lies, seed);
  } finally {
    await world.close();
  }
}

type Work = {
  readonly coins: readonly string[];
  readonly interval: Interval;
  readonly from: number;
  readonly to: number;
};

async function complete(world: World, work: Work, chandler: Awaited<ReturnType<World['open']>>): Promise<void> {
  for (let i = 0; i < MOST_RUNS; i++) {
    const run = await chandler.backfill({ ...work, concurrency: 1, maxWaitMs: 1_000 });
    if (run.end.kind === 'stopped') world.clock.advanceTo(run.end.until + 1_000);
    else {
      const [row] = await world.database.sql<{ due: number | null }[]>`
        select min(p.retry_at) as due from ops.second_opinion p join market.series s on s.id = p.series_id
        where s.interval = ${work.interval}::market.candle_interval and p.retry_at < 'infinity'
          and p.span && ${{ from: work.from, to: work.to }}::tstzrange`;
      if (row?.due == null) return;
      world.clock.advanceTo(row.due + 1_000);
    }
  }
  throw new Error(`not complete after ${MOST_RUNS} runs`);
}

/** @throws when a final slot is false without a lie. */
async function count(world: World, lies: readonly Lie[], seed: number): Promise<LiesCounted> {
  let falseSlots = 0;
  for (const series of await seriesOf(world)) {
    const mine = lies.flatMap((lie) => {
      const question = rowQuestion(lie.request)!;
      const isMine = question.coinId === series.coinId && question.interval === series.interval;
      return isMine ? [{ lie, from: question.from, to: question.to }] : [];
    });
    await checkSizes(world, series, seed);
    for (const at of await falseIn(world, series)) {
      const told = mine.filter(({ from, to }) => at >= from && at <= to);
      const label = `seed ${seed}: ${series.coinId} ${series.interval} ${new Date(at).toISOString()}`;
      expect(told, `${label} is false, and nobody lied about it`).not.toEqual([]);
      const promised = told.filter(({ lie }) => lie.isPromised).map(({ lie }) => `${lie.name}: ${lie.request.url}`);
      expect(promised, `${label} is false, and should have been found out`).toEqual([]);
      falseSlots++;
    }
  }
  return { told: lies.length, promised: lies.filter(({ isPromised }) => isPromised).length, falseSlots };
}

/** Two adjacent final candles of different magnitude cannot both be true. What a single answer reported of them is requested again. */
async function checkSizes({ database }: World, { id, coinId, interval, covered }: SeenSeries, seed: number) {
  for (const { from, to } of covered) {
    const jumps = await database.sql`
      select * from (
        select open_time, open, lag(close) over w as before, open_time - lag(open_time) over w as apart
        from ops.stored(${id}, ${interval}::market.candle_interval)
        where open_time >= ${from} and open_time < ${to}
        window w as (order by open_time)) as c
      where apart = ${INTERVAL_MS[interval] / 1_000} * interval '1 second' and before > 0 and open > 0
        and abs(ln(open / before)) > ${OTHER_SIZE}`;
    expect([...jumps], `seed ${seed}: ${coinId} ${interval}`).toEqual([]);
  }
}

/** Final slots whose candle differs from the market's, and final slots without a candle that the market has. */
async function falseIn({ database, simulator }: World, series: SeenSeries) {
  const { id, interval, covered } = series;
  const out: number[] = [];
  for (const { from, to } of covered) {
    const truth = await truthOf(simulator, series, { from, to });
    const stored = await database.sql<{ at: number; numbers: (number | null)[] }[]>`
      select open_time as at, array[open, high, low, close, volume, market_cap] as numbers
      from ops.stored(${id}, ${interval}::market.candle_interval) where open_time >= ${from} and open_time < ${to}`;
    const storedAt = new Map(stored.map(({ at, numbers }) => [at, numbers.join()]));
    const trueAt = new Map(
      truth.map(({ openTime, open, high, low, close, volume, marketCap }) => [
        openTime,
        [open, high, low, close, volume, marketCap].join(),
      ]),
    );
    for (let at = from; at < to; at += INTERVAL_MS[interval]) if (storedAt.get(at) !== trueAt.get(at)) out.push(at);
  }
  return out;
}

/** `SEED=17` runs only that one. */
const only = process.env.SEED === undefined ? null : Number(process.env.SEED);

export function testLies(seeds: readonly number[], of: 'candles' | 'prices'): void {
  describe(`after lies anywhere about ${of}, each told once, final slots equal the market, except where no promise covers the lie`, () => {
    const all = { told: 0, promised: 0, falseSlots: 0 };
    test.each(only === null ? seeds : [only])('seed %i', async (seed) => {
      try {
        const counts = await runLies(seed, of);
        for (const name of ['told', 'promised', 'falseSlots'] as const) all[name] += counts[name];
      } catch (error) {
        console.error(
          `replay this failure with: SEED=${seed} npx vitest run --project whole test/system/lies-anywhere`,
        );
        throw error;
      }
    });

    test.skipIf(only !== null)('lies of both kinds are told, and some that nothing reveals remain', () => {
      expect(all.promised).toBeGreaterThan(seeds.length);
      expect(all.told - all.promised).toBeGreaterThan(seeds.length);
      expect(all.falseSlots).toBeGreaterThan(0);
    });
  });
}
