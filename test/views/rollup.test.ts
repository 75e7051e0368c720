/** Coarser candles made ahead of time give the same answers as without them, to the bit, and never older ones. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { OhlcvCandle } from '../../src/contract/record/market-data.ts';
import { type CandleInterval, DAY, HOUR, INTERVAL_MS } from '../../src/core/interval.ts';
import { DEFAULT_RETENTION } from '../../src/core/settings/retention-settings.ts';
import type { Span } from '../../src/core/span.ts';
import { rollUp } from '../../src/store/candle/rollup.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { removeOld } from '../../src/store/upkeep/retention.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  type CandleValues,
  type GivenAnswer,
  type GivenSeries,
  givenSeries,
  storeAnswer,
} from '../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
});
afterAll(() => database.drop());

const FROM = Date.UTC(2024, 1, 27);
const DAYS = 4;
const TO = FROM + DAYS * DAY;
const NOW = TO + 30 * DAY;
const COARSE = ['1h', '6h', '12h', '24h'] as const satisfies readonly CandleInterval[];

type Series = GivenSeries;
type Values = CandleValues;
let coins = 0;

const newSeries = (interval: CandleInterval, coinId = `c${++coins}-coin`): Promise<Series> =>
  givenSeries(sql, { coinId, interval, span: { from: FROM, to: TO } });

const store = (series: Series, answer: GivenAnswer) => storeAnswer(sql, series, answer);

const at = (slot: number, interval: CandleInterval) => FROM + slot * INTERVAL_MS[interval];
const slotsOf = (interval: CandleInterval) => (TO - FROM) / INTERVAL_MS[interval];

function candlesOf(answer: unknown): readonly OhlcvCandle[] {
  if (!Array.isArray(answer)) throw new Error('the coin is not known');
  return answer as OhlcvCandle[];
}

/** Reads with a new warehouse, whose caches are empty. */
async function ask(
  of: Sql,
  { coinId }: Series,
  interval: CandleInterval,
  limit = 1_000,
): Promise<readonly OhlcvCandle[]> {
  const clock = { ...systemClock, now: () => NOW };
  const query = { coinId, quote: 'usd', interval, from: FROM, to: TO, limit } as const;
  return candlesOf(await createWarehouse({ sql: of, clock }).ohlcv(query));
}

/** Reads as if no rollup had ever been made. */
async function askWithout(series: Series, interval: CandleInterval): Promise<readonly OhlcvCandle[]> {
  let found: readonly OhlcvCandle[] = [];
  const undo = new Error('undo');
  await sql
    .begin(async (tx) => {
      await tx`delete from market.rollup_coverage`;
      await tx`delete from market.rollup`;
      found = await ask(tx as unknown as Sql, series, interval);
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return found;
}

/** Calculates the candle from the tables by its definition. */
async function byHand({ id, interval: fine }: Series, interval: CandleInterval): Promise<OhlcvCandle[]> {
  const rows = await sql<
    (Omit<OhlcvCandle, 'openTime' | 'closeTime' | 'marketCap'> & { at: number; cap: number | null })[]
  >`
    select open_time as at, open, high, low, close, volume, market_cap as cap
    from market.candle where series_id = ${id} and interval = ${fine}::market.candle_interval order by open_time`;
  const [series] = await sql<{ covered: Span[] }[]>`select covered from market.series where id = ${id}`;
  const { covered } = series!;
  const width = INTERVAL_MS[interval];
  const made: OhlcvCandle[] = [];
  for (let openTime = FROM; openTime < TO; openTime += width) {
    const parts = rows.filter((row) => row.at >= openTime && row.at < openTime + width);
    if (parts.length === 0 || !covered.some(({ from, to }) => from <= openTime && openTime + width <= to)) continue;
    const whole = (of: (values: number[]) => number, name: 'high' | 'low' | 'volume') => {
      const values = parts.map((part) => part[name]);
      return values.every((value) => value !== null) ? of(values) : null;
    };
    made.push({
      openTime,
      closeTime: openTime + width - 1_000,
      open: parts[0]!.open,
      high: whole((values) => Math.max(...values), 'high') as number,
      low: whole((values) => Math.min(...values), 'low') as number,
      close: parts.at(-1)!.close,
      volume: whole((values) => values.reduce((sum, value) => sum + value), 'volume'),
      marketCap: parts.at(-1)!.cap,
    });
  }
  return made;
}

const aValue = fc.double({ min: 1e-9, max: 1e12, noNaN: true });
const orNull = fc.option(aValue, { freq: 40 });
/** Most slots have a candle; empty slots often have empty neighbours. */
const aSlot = fc.option(fc.tuple(aValue, orNull, orNull, orNull), { freq: 12 });

type Step =
  | { readonly kind: 'store' | 'uncover'; readonly share: readonly [number, number] }
  | { readonly kind: 'roll up' };
const aShare = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }));
const aStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('store' as const), share: aShare }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('roll up' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('uncover' as const), share: aShare }) },
);

describe('candles that were made ahead of time', () => {
  it('are the same to the bit, whatever was stored, changed, removed or mended before and after', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<CandleInterval>('5m', '15m', '30m', '1h'),
        fc.array(aStep, { minLength: 3, maxLength: 8 }),
        fc.infiniteStream(aSlot),
        async (interval, steps, slots) => {
          const series = await newSeries(interval);
          const most = slotsOf(interval);
          const next = () => slots.next().value as Values | null;
          const spanOf = ([a, b]: readonly [number, number]): Span => {
            const [first, last] = [Math.floor(Math.min(a, b) * most), Math.ceil(Math.max(a, b) * most)];
            return { from: at(Math.min(first, most - 1), interval), to: at(Math.max(first + 1, last), interval) };
          };
          // First all slots, so that something can be changed.
          await store(series, { span: { from: FROM, to: TO }, slots: Array.from({ length: most }, next) });
          await rollUp(sql);
          for (const step of steps) {
            if (step.kind === 'roll up') await rollUp(sql);
            else {
              const span = spanOf(step.share);
              const count = (span.to - span.from) / INTERVAL_MS[interval];
              if (step.kind === 'store') await store(series, { span, slots: Array.from({ length: count }, next) });
              else {
                await sql`select ops.uncover(${series.id}, ${span.from}::timestamptz, ${span.to}::timestamptz)`;
              }
            }
            for (const coarse of COARSE.filter((one) => INTERVAL_MS[one] > INTERVAL_MS[interval])) {
              const found = await ask(sql, series, coarse);
              expect(found).toEqual(await byHand(series, coarse));
              expect(found).toEqual(await askWithout(series, coarse));
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  const steady = (count: number): Values[] =>
    Array.from({ length: count }, (_, i) => [100 + i, 200 + i, 50 - i / 100, i + 0.1]);
  const filled = async (interval: CandleInterval): Promise<Series> => {
    const series = await newSeries(interval);
    await store(series, { span: { from: FROM, to: TO }, slots: steady(slotsOf(interval)) });
    return series;
  };
  const rolledOf = async ({ id }: Series) => {
    const rows = await sql<{ interval: CandleInterval; n: number }[]>`
      select interval, count(*)::int as n from market.rollup where series_id = ${id} group by 1 order by 1`;
    return Object.fromEntries(rows.map(({ interval, n }) => [interval, n]));
  };

  it('are made of all finer intervals in widths of 6h and more, and are read from then on', async () => {
    const [five, hourly] = [await filled('5m'), await filled('1h')];
    await rollUp(sql);
    expect(await rolledOf(five)).toEqual({ '6h': 16, '12h': 8, '24h': 4 });
    expect(await rolledOf(hourly)).toEqual({ '6h': 16, '12h': 8, '24h': 4 });
    // Nothing is left to be made, and the made candles are read.
    expect(await rollUp(sql)).toBe(0);
    await sql`update market.rollup set close = 42 where series_id in (${five.id}, ${hourly.id}) and interval = '24h'`;
    for (const series of [five, hourly])
      expect((await ask(sql, series, '24h')).map((c) => c.close)).toEqual([42, 42, 42, 42]);
    expect((await ask(sql, five, '24h', 3)).map((c) => c.openTime)).toEqual([0, 1, 2].map((n) => FROM + n * DAY));
  });

  it('are not made where a coarser series takes precedence', async () => {
    const five = await filled('5m');
    const hourly = await newSeries('1h', five.coinId);
    await store(hourly, { span: { from: FROM, to: FROM + 3 * DAY }, slots: steady(72) });
    const daily = await newSeries('24h', five.coinId);
    await store(daily, { span: { from: FROM, to: FROM + 2 * DAY }, slots: steady(2) });
    await rollUp(sql);
    expect([await rolledOf(five), await rolledOf(hourly), await rolledOf(daily)]).toEqual([
      { '6h': 4, '12h': 2, '24h': 1 },
      { '6h': 12, '12h': 6, '24h': 1 },
      {},
    ]);
  });

  it('are removed in the transaction that changes one of their parts: the next answer has the change', async () => {
    const series = await filled('5m');
    await rollUp(sql);
    const clock = { ...systemClock, now: () => NOW };
    const warehouse = createWarehouse({ sql, clock });
    const query = { coinId: series.coinId, quote: 'usd', interval: '24h', from: FROM, to: TO, limit: 10 } as const;
    const before = candlesOf(await warehouse.ohlcv(query));
    const span = { from: FROM + DAY + HOUR, to: FROM + DAY + 2 * HOUR };
    await store(series, { span, slots: Array.from({ length: 12 }, () => [1, 1e9, 1, 7]) });
    expect(await rolledOf(series)).toEqual({ '6h': 15, '12h': 7, '24h': 3 });
    const after = candlesOf(await warehouse.ohlcv(query));
    expect(after.map((c, i) => c.high === before[i]!.high)).toEqual([true, false, true, true]);
    expect(after[1]!.high).toBe(1e9);
    // The same answer again changes nothing.
    await rollUp(sql);
    await store(series, { span, slots: Array.from({ length: 12 }, () => [1, 1e9, 1, 7]) });
    expect(await rolledOf(series)).toEqual({ '6h': 16, '12h': 8, '24h': 4 });
    expect(await ask(sql, series, '24h')).toEqual(after);
  });

  it('are removed together with candles past their retention', async () => {
    const series = await filled('15m');
    await rollUp(sql);
    // February.
    await removeOld(database, {
      keep: { ...DEFAULT_RETENTION, candles: { ...DEFAULT_RETENTION.candles, '15m': DAY } },
      now: Date.UTC(2024, 2, 5),
    });
    expect(await rolledOf(series)).toEqual({ '6h': 4, '12h': 2, '24h': 1 });
    expect((await ask(sql, series, '24h')).map((c) => c.openTime)).toEqual([Date.UTC(2024, 2, 1)]);
  });

  it('leave cached answers valid, because the series does not change', async () => {
    const series = await filled('5m');
    const version = () => sql`select version from market.series where id = ${series.id}`;
    const before = await version();
    await rollUp(sql);
    expect(await version()).toEqual(before);
  });

  it('may be made in part, and are read only for the requested coins', async () => {
    const [one, other] = [await filled('5m'), await filled('5m')];
    const of = { coinIds: [one.coinId], quote: 'usd', interval: '5m' } as const;
    expect(await rollUp(sql, { of, mostMs: 0 })).toBe(0);
    expect(await rollUp(sql, { of, signal: AbortSignal.abort() })).toBe(0);
    expect(await rollUp(sql, { of })).toBe(28);
    expect(await rolledOf(other)).toEqual({});
  });
});

it('a volume that cannot be added is unknown in the coarser candle, made ahead of time or not', async () => {
  const series = await newSeries('1h');
  const slots = Array.from({ length: slotsOf('1h') }, (_, i): Values => [1, 1, 1, i < 2 ? 1e308 : 1]);
  await store(series, { span: { from: FROM, to: TO }, slots });
  const volumes = async () => (await ask(sql, series, '24h')).map((candle) => candle.volume);
  const expected = [null, ...Array.from({ length: DAYS - 1 }, () => 24)];
  expect(await volumes()).toEqual(expected);
  await rollUp(sql);
  expect(await volumes()).toEqual(expected);
});
