/**
 * SQL agrees with the service. No candle in `market.candles` differs from the service, and the view has all candles of 6h and wider once
 * they are made ahead. `market.ohlcv` has all candles at once; where finer candles are final, it ignores a stored candle that is not final.
 * All of that after any sequence of storing, changing, withdrawing, renaming and removing.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { OhlcvCandle } from '../../src/contract/record/market-data.ts';
import { type CandleInterval, DAY, INTERVAL_MS, INTERVALS } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { rollUp } from '../../src/store/candle/rollup.ts';
import type { Sql, SqlOrTransaction } from '../../src/store/connection/connect.ts';
import { continueHistories, recordRenames } from '../../src/store/upkeep/rename.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { wrongCalendar, wrongRollups } from '../../src/views/verify/rollups.ts';
import { analystIn } from '../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type CandleValues, type GivenSeries, givenSeries, storeAnswer } from '../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
/** A Saturday. From the 26th on there is a whole week, and the clocks of New York change within the span. */
const FROM = Date.UTC(2024, 1, 24);
const TO = FROM + 16 * DAY;
const ALL: Span = { from: FROM, to: TO };
const NOW = TO + 30 * DAY;
/** Widths that are the same candles whichever way they are made. */
const WIDTHS = ['90 minutes', '3 hours', '2 days', '1 week', '1 month'];

type Candle = Omit<OhlcvCandle, 'closeTime'>;

async function served(coinId: string, interval: CandleInterval): Promise<Candle[]> {
  const warehouse = createWarehouse({ sql, clock: { ...systemClock, now: () => NOW } });
  const answer = await warehouse.ohlcv({ coinId, quote: 'usd', interval, ...ALL, limit: 10_000 });
  if (!Array.isArray(answer)) throw new Error('the coin is not known');
  return (answer as OhlcvCandle[]).map(({ closeTime: _, ...candle }) => candle);
}

const VALUES =
  'extract(epoch from open_time)::float8 * 1000 as "openTime", open, high, low, close, volume, market_cap as "marketCap"';

const inView = (coinId: string, interval: CandleInterval): Promise<Candle[]> =>
  analyst.unsafe<Candle[]>(
    `select ${VALUES} from market.candles where coin_id = $1 and quote = 'usd' and interval = $2 order by open_time`,
    [coinId, interval],
  );

const ofWidth = (coinId: string, width: string): Promise<(Candle & { slots: number; complete: boolean })[]> =>
  analyst.unsafe(`select ${VALUES}, slots, complete from market.ohlcv($1, $2, null, market.utc('2024-04-15'))`, [
    coinId,
    width,
  ]);

type Change = (tx: SqlOrTransaction) => Promise<unknown>;

/** What `market.ohlcv` would have after a change. */
async function ofWidthAfter(coinId: string, width: string, change: Change): Promise<unknown> {
  let found: unknown;
  const undo = new Error('undo');
  await sql
    .begin(async (tx) => {
      await change(tx);
      found = await tx.unsafe(
        `select ${VALUES}, slots, complete from market.ohlcv($1, $2::interval, null::text, market.utc('2024-04-15'))`,
        [coinId, width],
      );
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return found;
}

const nothingAhead: Change = async (tx) => {
  await tx`delete from market.rollup_coverage`;
  await tx`delete from market.calendar_coverage`;
};

/**
 * Stored candles that are not final, in slots whose finer candles are: there `market.ohlcv` uses the finer ones, and the service returns
 * the stored one.
 */
async function outdone(coinId: string, interval: CandleInterval): Promise<{ at: number; series: number }[]> {
  const name = sql.unsafe(`'${interval}'`);
  return sql<{ at: number; series: number }[]>`
    select extract(epoch from c.open_time)::float8 * 1000 as at, s.id as series
    from market.series s join market.candle c on c.series_id = s.id and c.interval = ${name}
    where s.coin_id = ${coinId} and s.quote = 'usd' and s.interval = ${name} and not s.covered @> c.open_time
      and market.final_spans(${coinId}, ${name}::market.candle_interval) @> c.open_time order by 1`;
}

async function agree(coinId: string, isMade: boolean): Promise<void> {
  for (const interval of INTERVALS) {
    const answer = await served(coinId, interval);
    const view = await inView(coinId, interval);
    // Those of 15m, 30m and 1h are not made ahead.
    if (isMade && INTERVAL_MS[interval] >= INTERVAL_MS['6h']) expect([...view]).toEqual(answer);
    else {
      const times = new Set(view.map(({ openTime }) => openTime));
      expect([...view]).toEqual(answer.filter(({ openTime }) => times.has(openTime)));
    }
    const width = `${INTERVAL_MS[interval] / 60_000} minutes`;
    const asked = await ofWidth(coinId, width);
    const halves = await outdone(coinId, interval);
    const isWhole = ({ openTime }: Candle) => halves.every(({ at }) => at !== openTime);
    expect(asked.map(({ slots: _, complete: __, ...candle }) => candle).filter(isWhole)).toEqual(
      answer.filter(isWhole),
    );
    if (halves.length === 0) continue;
    const times = halves.map(({ at }) => at);
    expect(asked).toEqual(
      await ofWidthAfter(
        coinId,
        width,
        (tx) => tx`
          delete from market.candle where series_id = ${halves[0]!.series} and interval = ${tx.unsafe(`'${interval}'`)}
            and open_time = any(${times}::timestamptz[])`,
      ),
    );
  }
  for (const width of WIDTHS)
    expect(await ofWidth(coinId, width)).toEqual(await ofWidthAfter(coinId, width, nothingAhead));
  expect([...(await wrongRollups(sql)), ...(await wrongCalendar(sql))]).toEqual([]);
}

const aValue = fc.double({ min: 1e-9, max: 1e12, noNaN: true });
const orNull = fc.option(aValue, { freq: 40 });
const aSlot = fc.option(fc.tuple(aValue, orNull, orNull, orNull), { freq: 12 });

type Step = {
  readonly kind: 'store' | 'not final' | 'uncover' | 'roll up' | 'remove' | 'rename';
  readonly series: number;
  readonly share: readonly [number, number];
};
/** A part of the whole span, anywhere. fast-check usually prefers small numbers, which are no special case here. */
const share = fc.tuple(fc.noBias(fc.nat(999)), fc.noBias(fc.nat(999)));
const aStep = (weight: number, kind: Step['kind']) => ({
  weight,
  arbitrary: fc.record({ kind: fc.constant(kind), series: fc.nat(), share }),
});
const someSteps = fc.array(
  fc.oneof(
    aStep(5, 'store'),
    aStep(2, 'not final'),
    aStep(3, 'roll up'),
    aStep(1, 'uncover'),
    aStep(1, 'remove'),
    aStep(1, 'rename'),
  ),
  { minLength: 4, maxLength: 9 },
);

let coins = 0;

/** `numRuns`: the number of random histories of a coin. */
export function testCandlesInSql(numRuns: number): void {
  beforeAll(async () => {
    database = await createTestDatabase();
    ({ sql } = database);
    analyst = await analystIn(database);
  });
  afterAll(async () => {
    await analyst?.end();
    await database?.drop();
  });
  it('the service, market.candles and market.ohlcv have the same candles, to the bit, except where finer candles replace a stored one', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.subarray<CandleInterval>(['30m', '1h', '6h', '24h'], { minLength: 1 }),
        someSteps,
        fc.infiniteStream(aSlot),
        async (intervals, steps, slots) => {
          let coinId = `c${++coins}-coin`;
          const all: GivenSeries[] = [];
          for (const interval of intervals) all.push(await givenSeries(sql, { coinId, interval, span: ALL }));
          const answer = (series: GivenSeries, span: Span, isFinal: boolean) => {
            const count = (span.to - span.from) / INTERVAL_MS[series.interval];
            const values = Array.from({ length: count }, () => slots.next().value as CandleValues | null);
            return storeAnswer(sql, series, { span, slots: values, isFinal });
          };
          // First the finest candles everywhere, so that something can be changed.
          await answer(all[0]!, ALL, true);
          await rollUp(sql);
          for (const step of steps) {
            const series = all[step.series % all.length]!;
            const span = spanOf(series.interval, step.share);
            if (step.kind === 'roll up') await rollUp(sql);
            else if (step.kind === 'uncover') {
              await sql`select ops.uncover(${series.id}, ${span.from}::timestamptz, ${span.to}::timestamptz)`;
            } else if (step.kind === 'remove') await forget(series, span.from);
            else if (step.kind === 'rename') coinId = await rename(coinId);
            else await answer(series, span, step.kind === 'store');
            await agree(coinId, step.kind === 'roll up');
          }
          await rollUp(sql);
          await agree(coinId, true);
        },
      ),
      { numRuns },
    );
  }, 300_000);

  it('they also agree while answers are stored and candles are made ahead at the same time', async () => {
    const coinId = `c${++coins}-coin`;
    const fine = await givenSeries(sql, { coinId, interval: '1h', span: ALL });
    const wide = await givenSeries(sql, { coinId, interval: '24h', span: ALL });
    const hours = (TO - FROM) / INTERVAL_MS['1h'];
    await storeAnswer(sql, fine, {
      span: ALL,
      slots: Array.from({ length: hours }, (_, i): CandleValues => [i + 1, i + 2, i + 0.5, i]),
    });
    const storing = async () => {
      for (let n = 0; n < 16; n++) {
        const span = { from: FROM + n * DAY, to: FROM + (n + 1) * DAY };
        await storeAnswer(sql, wide, { span, slots: [[n + 1, n + 2, n + 0.5, 7]], isFinal: n % 3 > 0 });
        await storeAnswer(sql, fine, {
          span: { from: span.from, to: span.from + INTERVAL_MS['1h'] },
          slots: [[n + 5, n + 6, n + 4, n]],
        });
      }
    };
    const making = async () => {
      for (let n = 0; n < 12; n++) await rollUp(sql);
    };
    await Promise.all([storing(), making(), making()]);
    await agree(coinId, false);
    await rollUp(sql);
    await agree(coinId, true);
    // The first candle of each third day is not final: the stored one takes precedence over the one that is made.
    expect((await inView(coinId, '24h')).map(({ volume }) => volume)).toEqual(Array.from({ length: 16 }, () => 7));
  });
}

function spanOf(interval: CandleInterval, [a, b]: readonly [number, number]): Span {
  const most = (TO - FROM) / INTERVAL_MS[interval];
  const first = Math.floor((Math.min(a, b) * most) / 1000);
  const last = Math.max(first + 1, Math.ceil((Math.max(a, b) * most) / 1000));
  return { from: FROM + first * INTERVAL_MS[interval], to: FROM + last * INTERVAL_MS[interval] };
}

/** What retention does: the time before `to` is no longer covered, and its candles are removed. */
async function forget({ id, interval }: GivenSeries, to: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`update market.series set covered = covered - ${[{ from: Number.NEGATIVE_INFINITY, to }]}::tstzmultirange where id = ${id}`;
    await tx`delete from market.candle where series_id = ${id} and interval = ${interval}::market.candle_interval and open_time < ${to}`;
  });
}

/** Renames the coin to an id that already has a series, of an interval that takes precedence over others. */
async function rename(oldId: string): Promise<string> {
  const newId = `c${++coins}-coin`;
  const taken = await givenSeries(sql, { coinId: newId, interval: '12h', span: ALL });
  await storeAnswer(sql, taken, {
    span: { from: FROM + 3 * DAY, to: FROM + 6 * DAY },
    slots: Array.from({ length: 6 }, (_, i): CandleValues => [i + 1, i + 2, i + 0.5, 10]),
  });
  await rollUp(sql);
  await recordRenames(sql, [{ oldId, newId, at: NOW }], 'changelog');
  await continueHistories(sql, NOW);
  return newId;
}
