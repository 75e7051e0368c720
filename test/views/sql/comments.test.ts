/** The comments of functions promise analysts an example that runs, here as an analyst in New York. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

const ALL = { from: Date.UTC(2023, 11, 1), to: Date.UTC(2024, 7, 1) };
const JUNE = { from: Date.UTC(2024, 4, 1), to: Date.UTC(2024, 6, 2) };
const MARCH = { from: Date.UTC(2026, 2, 1), to: Date.UTC(2026, 3, 1) };

let database: TestDatabase;
let analyst: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  const slots = (count: number) =>
    Array.from({ length: count }, (_, i): CandleValues => [100 + (i % 7), 110, 90, 1_000 + i]);
  for (const coinId of ['btc-bitcoin', 'eth-ethereum']) {
    const days = await givenSeries(sql, { coinId, interval: '24h', span: ALL });
    await storeAnswer(sql, days, { span: ALL, slots: slots((ALL.to - ALL.from) / DAY) });
    const hours = await givenSeries(sql, { coinId, interval: '1h', span: JUNE });
    await storeAnswer(sql, hours, { span: JUNE, slots: slots(((JUNE.to - JUNE.from) / DAY) * 24) });
  }
  await rollUp(sql);
  await sql`insert into market.rate (currency, at, updated_at, price)
    select 'EUR', t, t, 1.1 from generate_series(${ALL.from}::timestamptz, ${ALL.to}::timestamptz, interval '12 hours') t`;
  await ensurePartitionsOf(sql, TICKER_HISTORY, MARCH);
  await sql`
    insert into market.ticker_history (coin_id, at, updated_at, price, rank)
    select 'btc-bitcoin', t, t, 1, 1 from generate_series(${MARCH.from}::timestamptz, ${MARCH.to - DAY}::timestamptz, interval '7 hours') t`;
  analyst = await analystIn(database);
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

type Described = {
  readonly name: string;
  readonly signature: string;
  readonly comment: string | null;
  readonly volatility: string;
  readonly isParallel: boolean;
};
const described = () => database.sql<Described[]>`
  select p.proname as name, p.oid::regprocedure::text as signature, obj_description(p.oid, 'pg_proc') as comment, p.provolatile as volatility,
    p.proparallel = 's' as is_parallel
  from pg_proc p where p.pronamespace = 'market'::regnamespace order by 2`;

const OTHER_TYPES = 'As the other functions of this name: text without a zone, dates and timestamps are in UTC.';
/** Functions of what was known at an instant: the rows of this test are known since today. */
const KNOWN_SINCE_TODAY = ['candles_as_known', 'prices_as_known'];
const WITHOUT_EXAMPLE = ['candle_hash'];

test('the comment of each function says what it returns, with an example that returns it', async () => {
  const functions = await described();
  const withExample = functions.filter(({ comment }) => comment !== OTHER_TYPES);
  expect(functions.filter(({ comment }) => comment === null)).toEqual([]);
  // A variant for other types of instants stands beside a variant with a comment.
  for (const { name, comment } of functions) {
    if (comment === OTHER_TYPES)
      expect(
        withExample.map((one) => one.name),
        name,
      ).toContain(name);
  }
  for (const { name, signature, comment } of withExample) {
    if (WITHOUT_EXAMPLE.includes(name)) continue;
    const example = /Example: (.+;)$/s.exec(comment!)?.[1];
    expect(example, signature).toBeDefined();
    expect(example, signature).toContain(`market.${name}(`);
    const rows = await analyst.unsafe<{ row: object }[]>(
      `with example as (${example!.slice(0, -1)}) select to_jsonb(e) as row from example e`,
    );
    if (KNOWN_SINCE_TODAY.includes(name)) continue;
    expect(rows.length, `${signature}: ${example}`).toBeGreaterThan(0);
    expect(
      Object.values(rows[0]!.row).some((value) => value !== null),
      signature,
    ).toBe(true);
  }
  expect(withExample.length).toBeGreaterThan(25);
});

test('the statements in docs/sql.md run and find something', async () => {
  const text = readFileSync('docs/sql.md', 'utf8');
  const statements = ['Candles', 'Functions', 'Recipes'].flatMap((title) => {
    const [, section] = new RegExp(`\\n## ${title}\\n(.*?)\\n## `, 's').exec(text)!;
    return [...section!.matchAll(/```sql\n(.*?)```/gs)].flatMap(([, block]) => block!.split(/;\n/).filter(Boolean));
  });
  expect(statements.length).toBeGreaterThan(20);
  const foundNothing: string[] = [];
  for (const statement of statements) {
    const rows = await analyst.unsafe(`with shown as (\n${statement}\n) select to_jsonb(s) as row from shown s`);
    if (rows.length === 0) foundNothing.push(statement);
  }
  // This warehouse has no gaps, tracked series and revisions.
  expect(foundNothing.filter((one) => !/market\.(gaps|freshness|revision)/.test(one))).toEqual([]);
});

test('functions change nothing, and may run in parallel', async () => {
  const functions = await described();
  expect(functions.filter(({ volatility }) => volatility === 'v')).toEqual([]);
  expect(functions.filter(({ isParallel }) => !isParallel).map(({ name }) => name)).toEqual([
    'story',
    'story',
    'story',
    'story',
  ]);
});
