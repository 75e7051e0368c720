/**
 * Views and functions for analysts compared with the best statement on the tables that one can write by hand: the goals hold for
 * `BENCH_CANDLES=50000000`; the default is two million.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { rollUp } from '../../src/store/candle/rollup.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { median, table, thousands, timed, verdict } from './rounds.ts';
import { FUNCTIONS, type Question, VIEWS } from './sql-questions.ts';
import { fillWarehouse } from './sql-warehouse.ts';

const CANDLES = Number(process.env.BENCH_CANDLES ?? 2_000_000);
const ROUNDS = 9;
/** A round repeats faster statements until this time has passed. */
const LEAST_MS = 15;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
});
afterAll(() => database?.drop());

it('views and functions take at most twice the time of a statement written by hand', async () => {
  const { sql } = database;
  let counts: Readonly<Record<string, number>> = {};
  const fillMs = await timed(async () => {
    counts = await fillWarehouse(sql, CANDLES);
  });
  let made = 0;
  const madeMs = await timed(async () => {
    made = await rollUp(sql);
  });
  await sql`vacuum analyze`;
  const [stored] = await sql<{ candles: number; candleBytes: number; aheadBytes: number }[]>`
    select (select sum(candles)::float8 from market.series) as candles,
      (select sum(pg_total_relation_size(relid))::float8 from pg_partition_tree('market.candle') where isleaf) as candle_bytes,
      (pg_total_relation_size('market.rollup') + pg_total_relation_size('market.calendar_candle'))::float8 as ahead_bytes`;
  const { candles, candleBytes, aheadBytes } = stored!;
  console.info(
    table(
      `${thousands(candles)} candles: series ${Object.entries(counts)
        .map(([i, n]) => `${i} ${thousands(n)}`)
        .join(', ')}`,
      [
        ['stored', `${thousands(fillMs / 1000)} s`],
        [
          'made ahead',
          `${thousands(made)} in ${thousands(madeMs / 1000)} s: ${((made / candles) * 100).toFixed(1)} % of the rows, ${((aheadBytes / candleBytes) * 100).toFixed(1)} % of the bytes`,
        ],
      ],
    ),
  );
  const lines: [string, string][] = [];
  const missed: string[] = [];
  for (const question of [...VIEWS, ...FUNCTIONS]) {
    const { line, isMet } = await compare(sql, question);
    lines.push([question.name, line]);
    if (!isMet) missed.push(question.name);
  }
  console.info(table(`median of ${ROUNDS}: with the views and functions · by hand`, lines));
  console.info(await planOf(sql, VIEWS.find(({ name }) => name.endsWith('limit 1, by coin_id'))!));
  if (missed.length > 0) console.info(`missed: ${missed.join('; ')}`);
}, 3_600_000);

async function compare(sql: Sql, { ours, byHand, goalMs, most = 2 }: Question) {
  const [first, second] = [await sql.unsafe(ours), await sql.unsafe(byHand)];
  // Both must return the same rows, otherwise the comparison is meaningless.
  expect(rounded(first)).toEqual(rounded(second));
  expect(first.length).toBeGreaterThan(0);
  const [a, b] = [await repeatsOf(sql, ours), await repeatsOf(sql, byHand)];
  const [mine, hand]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    mine.push((await timed(() => repeat(sql, ours, a))) / a);
    hand.push((await timed(() => repeat(sql, byHand, b))) / b);
  }
  const [oursMs, handMs] = [median(mine), median(hand)];
  const ratio = oursMs / handMs;
  const isFast = goalMs === undefined || oursMs <= goalMs;
  const isNear = most === null || ratio <= most;
  const goal = goalMs === undefined ? '' : `; ≤ ${goalMs} ms ${verdict(isFast)}`;
  const near = most === null ? '' : ` (≤ ${most}) ${verdict(isNear)}`;
  return {
    line: `${oursMs.toFixed(2)} · ${handMs.toFixed(2)} ms: ${ratio.toFixed(1)}${near}${goal}`,
    isMet: isFast && isNear,
  };
}

async function repeat(sql: Sql, statement: string, times: number): Promise<void> {
  for (let n = 0; n < times; n++) await sql.unsafe(statement);
}

async function repeatsOf(sql: Sql, statement: string): Promise<number> {
  return Math.min(50, Math.max(1, Math.ceil(LEAST_MS / (await timed(() => sql.unsafe(statement))))));
}

/** To nine digits: the order of additions may differ. */
function rounded(rows: readonly object[]): unknown {
  return rows.map((row) =>
    Object.values(row).map((value) => (typeof value === 'number' ? Number(value.toPrecision(9)) : value)),
  );
}

/** The beginning of the plan: below it are all the partitions. */
async function planOf(sql: Sql, { name, ours }: Question): Promise<string> {
  const rows = await sql.unsafe(`explain (costs off) ${ours}`);
  return [`the plan of: ${name}`, ...rows.slice(0, 12).map((row) => `  ${Object.values(row)[0]}`)].join('\n');
}
