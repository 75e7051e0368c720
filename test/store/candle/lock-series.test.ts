import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DAY } from '../../../src/core/interval.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { makeSeries, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const [FROM, TO] = [Date.UTC(1995, 0, 1), Date.UTC(2025, 0, 1)];
const SPAN = { from: TO - 20 * DAY, to: TO };
const LATER = TO + 90 * DAY;

let database: TestDatabase;
const open = async (max: number) => {
  database = await createTestDatabase({ max });
  await ensurePartitions(database.sql, '24h', { from: FROM, to: TO });
  return database.sql;
};
afterEach(() => database?.drop());

test('of answers that wait for the lock of one series, each sees the candles that the one before it has stored', async () => {
  const sql = await open(4);
  const [id] = await makeSeries(sql, 'waits', 1, '24h', SPAN);
  const [chunk] = prepareChunks([id!], '24h', SPAN);
  let answers: Promise<unknown> = Promise.resolve();
  await sql.begin(async (tx) => {
    await tx`select from market.series where id = ${id!} for update`;
    answers = Promise.all([LATER, LATER + DAY].map((asOf) => storePrepared(sql, chunk!, asOf)));
    answers.catch(() => undefined);
    while (true) {
      // On another connection: a transaction sees the activity as it first read it.
      const [row] = await sql<{ n: number }[]>`
        select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      if (row!.n === 2) return;
      await systemClock.sleep(5);
    }
  });
  await answers;
  const [row] = await sql`
    select s.candles, s.covered_candles, s.digest::text, t.candles as found, t.digest::text as digest_found
    from market.series s cross join lateral ops.sums(s.id, s.interval, null, s.covered, '{}') t where s.id = ${id!}`;
  expect(row).toEqual({
    candles: 20,
    coveredCandles: 20,
    digest: row!.digestFound,
    found: 20,
    digestFound: expect.any(String),
  });
});

test('Postgres does not plan the large statements of an answer anew for each one, however many partitions there are', async () => {
  // One connection, because each has its own plans.
  const sql = await open(1);
  const series = await makeSeries(sql, 'planned', 2, '24h', SPAN);
  for (const chunk of prepareChunks(series, '24h', SPAN, 2)) await storePrepared(sql, chunk, LATER);
  const planned = await sql<{ statement: string; custom: number; generic: number }[]>`
    select statement, custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements
    where custom_plans + generic_plans >= 20`;
  const isSmall = ({ statement }: { statement: string }) => /^\s*select json_agg/.test(statement);
  const large = planned.filter((one) => !isSmall(one));
  expect(large.some(({ statement }) => statement.includes('answered_slots'))).toBe(true);
  // Postgres compares its first five plans with a general one.
  expect(large.filter(({ custom }) => custom > 5)).toEqual([]);
  // The candles around the answer: planned for their few partitions, because a general plan opens all.
  expect(planned.filter(isSmall).map(({ generic }) => generic)).toEqual([0]);
});
