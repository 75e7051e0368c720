/** `sumsOfCandles` computes the same counts and digests as Postgres does from the stored candles. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sumsOfCandles } from '../../../src/core/candle-hash.ts';
import { INTERVAL_MS, type Interval, isPriceInterval } from '../../../src/core/interval.ts';
import { normalize, slotsAt } from '../../../src/core/span.ts';
import { writeAsText, writeCandles } from '../../../src/store/candle/candle.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { makeSeriesOf } from '../../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const FROM = Date.UTC(2024, 0, 1);
const SLOTS = 200;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
});
afterAll(() => database?.drop());

const value = fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }));
const row = fc.record({
  slot: fc.integer({ min: 0, max: SLOTS - 1 }),
  values: fc.tuple(value, value, value, value, value, value),
  isAnswered: fc.boolean(),
});

it.each(['5m', '24h', 'prices-5m'] as const)(
  'the process and Postgres compute the same counts and digests of %s rows',
  async (interval: Interval) => {
    const { sql } = database;
    const width = INTERVAL_MS[interval];
    const span = { from: FROM, to: FROM + SLOTS * width };
    if (!isPriceInterval(interval)) await ensurePartitions(sql, interval, span);
    const answers = fc.sample(fc.uniqueArray(row, { selector: ({ slot }) => slot, maxLength: SLOTS, size: 'max' }), 20);
    const ids = await makeSeriesOf(
      sql,
      answers.map((_, i) => `${interval}-${i}`),
      interval,
      span,
    );
    for (const [i, rows] of answers.entries()) {
      rows.sort((a, b) => a.slot - b.slot);
      const column = (n: number) => rows.map(({ values }) => values[isPriceInterval(interval) && n < 4 ? 3 : n]!);
      const openTime = rows.map(({ slot }) => FROM + slot * width);
      const candles = {
        openTime,
        open: column(0),
        high: column(1),
        low: column(2),
        close: column(3),
        volume: column(4),
        marketCap: column(5),
      };
      const told = normalize(
        slotsAt(
          openTime.filter((_, n) => rows[n]!.isAnswered),
          width,
        ),
      );
      await writeCandles(sql, { id: ids[i]!, interval }, writeAsText(candles), 'fresh');
      const [stored] = await sql`
      select candles, digest::text, final_candles, told_candles, told_digest::text, told_locator::text
      from ops.sums(${ids[i]!}, ${interval}::market.candle_interval, ${span}::tstzrange, ${told}::tstzmultirange, ${told}::tstzmultirange)`;
      const sums = sumsOfCandles(candles, interval, told);
      expect(stored).toEqual({
        candles: sums.candles,
        digest: sums.digest.toString(),
        finalCandles: sums.toldCandles,
        toldCandles: sums.toldCandles,
        toldDigest: sums.toldDigest.toString(),
        toldLocator: sums.toldLocator.toString(),
      });
    }
  },
);
