/** DuckDB reads exports back and finds what Postgres has: every row of every dataset, with types and nulls. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Dataset, SourceColumn } from '../../../src/lake/dataset/dataset.ts';
import { DATASETS } from '../../../src/lake/dataset/datasets.ts';
import { IN_PLACE } from '../../../src/lake/dataset/series-datasets.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Duck, openDuck } from '../duck.ts';
import { exportTo, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
let duck: Duck;
let folder: string;
let remove: () => void;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
  ({ folder, remove } = temporaryFolder());
  await exportTo(database, folder);
  duck = await openDuck();
});
afterAll(async () => {
  remove?.();
  await database?.drop();
});

const SOURCES = {
  candles: `market.candle c join market.series s on s.id = c.series_id and s.interval = c.interval`,
  prices: `(select time as open_time, price as close, volume_24h as volume, market_cap, series_id from market.price) c
    join market.series s on s.id = c.series_id`,
} as const;

/** All rows as Postgres has them, sorted by all columns. */
async function stored(sql: Sql, dataset: Dataset): Promise<unknown[][]> {
  const from = dataset.kind === 'series' ? SOURCES[dataset.name] : dataset.from;
  const columns = dataset.columns.map(({ type, sql: expression }) => {
    const isText = type === 'instant' || type === 'bigint';
    const value = type === 'instant' ? `(extract(epoch from ${expression}) * 1e6)::bigint` : expression;
    return isText ? `(${value})::text` : value;
  });
  const rows = await sql
    .unsafe(`select ${columns.map((column, i) => `${column} as "${i}"`).join(', ')} from ${from}`)
    .values();
  return sorted(rows as unknown[][]);
}

function sorted(rows: readonly unknown[][]): unknown[][] {
  const keys = new Map(rows.map((row) => [row, JSON.stringify(row)]));
  return [...rows].sort((a, b) => (keys.get(a)! < keys.get(b)! ? -1 : 1));
}

function inDuck({ name, type }: SourceColumn): string {
  if (type === 'instant') return `epoch_us("${name}")`;
  return name === 'interval' || name === 'quote' ? `"${name}"::varchar` : `"${name}"`;
}

describe.each(DATASETS.map((dataset) => [dataset.name, dataset] as const))('%s', (name, dataset) => {
  const files = () =>
    `read_parquet('${path.join(folder, name)}/**/*.parquet', hive_partitioning = ${dataset.kind === 'series'})`;

  test('has the rows of Postgres', async () => {
    const found = await duck.rows(`select ${dataset.columns.map(inDuck).join(', ')} from ${files()}`);
    const expected = await stored(database.sql, dataset);
    expect(expected.length).toBeGreaterThan(1);
    expect(sorted(found)).toEqual(expected);
  });

  test('has a value in every column and, where allowed, a null', async () => {
    const counts = dataset.columns.map((column) => `count(${inDuck(column)})::int`);
    const [found] = await duck.rows(`select count(*)::int, ${counts.join(', ')} from ${files()}`);
    const [rows, ...values] = found as number[];
    const without = dataset.columns.filter((_, i) => values[i] === 0).map((column) => column.name);
    expect(without.filter((column) => !NEVER_FILLED.has(`${name}.${column}`))).toEqual([]);
    const full = dataset.columns
      .filter(({ nullable }, i) => nullable && values[i] === rows)
      .map((column) => column.name);
    expect(full.filter((column) => !NEVER_NULL.has(`${name}.${column}`))).toEqual([]);
  });

  test('has the documented types', async () => {
    const types = {
      text: 'VARCHAR',
      instant: 'TIMESTAMP WITH TIME ZONE',
      double: 'DOUBLE',
      integer: 'INTEGER',
      bigint: 'BIGINT',
      boolean: 'BOOLEAN',
    };
    const found = await duck.rows(`select column_name, column_type from (describe select * from ${files()})`);
    const byName = new Map(found as [string, string][]);
    for (const { name: column, type } of dataset.columns)
      if (!IN_PLACE.has(column) || dataset.kind !== 'series')
        expect([column, byName.get(column)]).toEqual([column, types[type]]);
  });

  test('is sorted within each file', async () => {
    const order = dataset.kind === 'series' ? `coin_id, ${dataset.time}` : orderIn(dataset.order);
    for (const file of readdirSync(path.join(folder, name), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.parquet')) continue;
      const source = `read_parquet('${path.join(folder, name, file)}', file_row_number = true)`;
      const [found] = await duck.rows(
        `select count(*)::int from (select file_row_number as n, row_number() over (order by ${order}) - 1 as i from ${source}) where n <> i`,
      );
      expect([file, ...found!]).toEqual([file, 0]);
    }
  });
});

/** Columns that this warehouse has no value for. */
const NEVER_FILLED = new Set(['gaps.detail', 'gaps.next_ask_at', 'evidence.detail']);
const NEVER_NULL = new Set([
  ...['coverage.wanted_from', 'coverage.wanted_to', 'revisions.known_at', 'revisions.step', 'evidence.body_sha256'],
  ...[
    'revisions.open',
    'revisions.high',
    'revisions.low',
    'revisions.close',
    'revisions.volume',
    'revisions.market_cap',
  ],
]);

function orderIn(order: string): string {
  return order
    .replaceAll(/ collate "C"/g, '')
    .replace('interval::text', 'interval')
    .replace('coalesce(step, 0), id', 'coalesce(step, 0)')
    .split(', ')
    .map((column) => (/^\w+$/.test(column) ? `"${column}"` : column))
    .join(', ');
}

test('a reader of some of the files finds interval, quote and year in their paths', async () => {
  const found = await duck.rows(
    `select interval, quote, year::varchar, count(*)::int from read_parquet('${folder}/candles/**/*.parquet', hive_partitioning = true)
     group by all order by all`,
  );
  const expected = await database.sql`
    select s.interval::text, s.quote, extract(year from c.open_time)::text as year, count(*)::int
    from market.candle c join market.series s on s.id = c.series_id and s.interval = c.interval group by 1, 2, 3 order by 1, 2, 3`.values();
  expect(found).toEqual([...expected]);
});
