/** `market.candles_as_known`: the final candles as they were at a given instant. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { removeOld } from '../../../src/store/upkeep/retention.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed, day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(800) });
});
afterAll(() => database.drop());

type Row = { readonly openTime: number; readonly values: string; readonly knownAt: number };

/** The final candles now. A candle that is equal to one in `before` has the `known_at` of that one. */
async function finalCandles(id: number, before: readonly Row[], now: number): Promise<Row[]> {
  const rows = await database.sql<Omit<Row, 'knownAt'>[]>`
    select c.open_time, concat_ws(' ', 'candle', c.open, c.high, c.low, c.close, c.volume, c.market_cap) as values
    from market.candle c join market.series s on s.id = c.series_id and s.interval = c.interval
    where s.id = ${id} and s.covered @> c.open_time order by 1`;
  const known = new Map(before.map((row) => [row.openTime, row]));
  return rows.map((row) => {
    const old = known.get(row.openTime);
    return { ...row, knownAt: old?.values === row.values ? old.knownAt : now };
  });
}

async function asKnown(id: number, at: number): Promise<Row[]> {
  const rows = await database.sql<Row[]>`
    select open_time, concat_ws(' ', 'candle', open, high, low, close, volume, market_cap) as values, known_at
    from market.candles_as_known(${at}::timestamptz)
    where coin_id = (select coin_id from market.series where id = ${id}) and interval = '24h' and is_final order by 1`;
  return rows.map((row) => ({ ...row }));
}

/** When the newest step was stored; null before the first step. */
async function newestStep(id: number): Promise<number | null> {
  const [row] = await database.sql<{ at: number | null }[]>`
    select max(known_at) as at from market.evidence_steps where series_id = ${id}`;
  return row!.at;
}

const DAYS = 40;
const aDay = fc.integer({ min: 0, max: DAYS - 1 });
const someDays = fc.array(aDay, { maxLength: 4 });
const aStep = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      ends: fc.tuple(aDay, aDay),
      without: someDays,
      nulls: someDays,
      times: fc.integer({ min: 1, max: 3 }),
      ageDays: fc.integer({ min: 0, max: 20 }),
    }),
  },
  // The next days one by one: their steps share one row of evidence.
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('refresh' as const),
      days: fc.integer({ min: 2, max: 6 }),
      times: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('mend' as const), ends: fc.tuple(aDay, aDay) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rename' as const) }) },
);

let coins = 0;
const newName = () => `coin-${++coins}`;

test('market.candles_as_known returns the candles that were final at the instant, whatever was changed, removed, mended or renamed since', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 5, maxLength: 12 }), async (steps) => {
      let name = newName();
      const id = await newDailySeries(database.sql, name);
      const copies = new Map<number, Row[]>();
      let copy: Row[] = [];
      let at = 100;
      let refreshed = DAYS;
      const keep = async () => {
        const now = await newestStep(id);
        if (now === null) return;
        copy = await finalCandles(id, copy, now);
        copies.set(now, copy);
        // The database dates a mended span by its own clock.
        at = Math.max(at, Math.ceil((now - FIRST_DAY) / DAY));
      };
      const spanOf = ([a, b]: readonly [number, number]) => [Math.min(a, b), Math.max(a, b) + 1] as const;
      await storeAnswer(database.sql, id, [0, DAYS], ++at, { without: [3, 20] });
      await keep();
      for (const step of steps) {
        if (step.kind === 'answer') {
          await storeAnswer(database.sql, id, spanOf(step.ends), ++at, step);
        } else if (step.kind === 'refresh') {
          for (const end = refreshed + step.days; refreshed < end; refreshed++) {
            await storeAnswer(database.sql, id, [refreshed, refreshed + 1], ++at, step);
            await keep();
          }
          // The last day again with other values, together with the next day: a step that shares a row may also change final values.
          await storeAnswer(database.sql, id, [refreshed - 1, refreshed + 1], ++at, { times: 5 });
        } else if (step.kind === 'mend') {
          const [from, to] = spanOf(step.ends);
          await database.sql`select ops.uncover(${id}, ${day(from)}::timestamptz, ${day(to)}::timestamptz)`;
        } else {
          const oldId = name;
          name = newName();
          await recordCoins(database.sql, [coinNamed(name)], day(++at));
          await recordRenames(database.sql, [{ oldId, newId: name, at: day(at) }], 'changelog');
          await applyTracks(database.sql, day(at));
        }
        await keep();
      }
      for (const [instant, expected] of copies) expect(await asKnown(id, instant), String(instant)).toEqual(expected);
      expect(await asKnown(id, day(100))).toEqual([]);
    }),
    { numRuns: 12 },
  );
});

test('at an instant between two steps of one row, or a moment before a step, it returns the earlier state', async () => {
  const id = await newDailySeries(database.sql, newName());
  for (let n = 0; n < 6; n++) await storeAnswer(database.sql, id, [n, n + 1], 10 + n);
  await storeAnswer(database.sql, id, [6, 9], 16);
  expect(await database.sql`select from market.evidence where series_id = ${id}`).toHaveLength(1);
  const days = async (at: number) => (await asKnown(id, at)).map(({ openTime }) => (openTime - FIRST_DAY) / DAY);
  expect(await days(day(13))).toEqual([0, 1, 2, 3]);
  expect(await days(day(13) + DAY / 2)).toEqual([0, 1, 2, 3]);
  expect(await days(day(16) - 1_000)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(await days(day(16))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('candles that retention removed are missing at past instants too; the other candles are returned as they were known', async () => {
  const id = await newDailySeries(database.sql, newName());
  await storeAnswer(database.sql, id, [300, 400], 500);
  await storeAnswer(database.sql, id, [390, 400], 501, { times: 2 });
  const before = await asKnown(id, day(500));
  expect(before).toHaveLength(100);
  const candles = { '5m': null, '15m': null, '30m': null, '1h': null, '6h': null, '12h': null, '24h': 200 * DAY };
  const keep = { tickers: null, global: null, exchanges: null, fetches: null, candles };
  await removeOld(database, { keep: keep as never, now: day(600) });
  expect(await asKnown(id, day(500))).toEqual(before.filter(({ openTime }) => openTime >= day(366)));
});

test('the role analyst may call the function, and Postgres uses the filters to skip partitions and other series', async () => {
  const id = await newDailySeries(database.sql, newName());
  await storeAnswer(database.sql, id, [600, 620], 700);
  const plan = await database.sql.begin(async (tx) => {
    await tx`set local role analyst`;
    const rows = await tx<{ 'QUERY PLAN': string }[]>`
      explain select * from market.candles_as_known('2026-03-01Z')
      where coin_id = 'coin-1' and quote = 'usd' and interval = '24h' and open_time >= '2025-06-01Z'`;
    const [count] = await tx<{ n: number }[]>`
      select count(*) as n from market.candles_as_known(${day(700)}::timestamptz) where coin_id = ${`coin-${coins}`} and interval = '24h'`;
    return { text: rows.map((row) => row['QUERY PLAN']).join('\n'), n: count!.n };
  });
  expect(plan.n).toBe(20);
  expect(plan.text).toContain('candle_24h_2025');
  expect(plan.text).not.toMatch(/candle_(1h|5m|24h_2024)/);
  expect(plan.text).not.toContain('Function Scan on candles_as_known');
  expect(plan.text).toMatch(/coin_id = 'coin-1'/);
});
