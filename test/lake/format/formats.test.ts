/** Every format: our readers and foreign ones read back what was written. */
import { readFileSync, truncateSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC } from '@uwdata/flechette';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORMATS } from '../../../src/lake/format/format.ts';
import { NotReadable } from '../../../src/lake/format/not-readable.ts';
import { COLUMNS, ROWS, type Row, readRows, temporaryFolder, writeRows } from './rows.ts';

let folder: string;
let remove: () => void;
beforeAll(() => {
  ({ folder, remove } = temporaryFolder());
});
afterAll(() => remove());

describe.each(FORMATS)('%s', (format) => {
  test('returns every value and every null of every type', async () => {
    const written = await writeRows(folder, format, ROWS);
    expect(await readRows(format, written)).toEqual(ROWS);
  });

  test('without rows is a file with columns', async () => {
    const written = await writeRows(folder, format, [], { name: 'none' });
    expect(await readRows(format, written)).toEqual([]);
    if (format !== 'ndjson') expect(written.bytes).toBeGreaterThan(0);
  });

  test('has the same bytes for the same rows', async () => {
    const [one, two] = await Promise.all(['one', 'two'].map((name) => writeRows(folder, format, ROWS, { name })));
    expect(readFileSync(one!.file)).toEqual(readFileSync(two!.file));
  });

  test('that was cut off gives an error of one sentence', async () => {
    const written = await writeRows(folder, format, ROWS, { name: 'cut' });
    truncateSync(written.file, written.bytes - 7);
    await expect(readRows(format, { ...written, bytes: written.bytes - 7 })).rejects.toThrow(NotReadable);
  });

  test('with other columns is rejected', async () => {
    const written = await writeRows(folder, format, ROWS, { name: 'other' });
    const others = COLUMNS.map((column) =>
      column.name === 'price' ? { ...column, name: 'close', nullable: false } : column,
    );
    await expect(readRows(format, written, others)).rejects.toThrow(NotReadable);
  });
});

const asText = (rows: readonly Row[]) =>
  rows.map((row) => row.map((value) => (typeof value === 'bigint' ? String(value) : value)));

describe('DuckDB', () => {
  const SOURCES = {
    parquet: (file: string) => `read_parquet('${file}')`,
    csv: (file: string) =>
      `read_csv('${file}', header = true, nullstr = '', allow_quoted_nulls = false, columns = {id: 'VARCHAR', note: 'VARCHAR', "at": 'TIMESTAMPTZ',
        seen_at: 'TIMESTAMPTZ', price: 'DOUBLE', rank: 'INTEGER', slots: 'BIGINT', is_final: 'BOOLEAN', is_new: 'BOOLEAN'})`,
    ndjson: (file: string) =>
      `read_json('${file}', format = 'newline_delimited', columns = {id: 'VARCHAR', note: 'VARCHAR', "at": 'TIMESTAMPTZ',
        seen_at: 'TIMESTAMPTZ', price: 'DOUBLE', rank: 'INTEGER', slots: 'BIGINT', is_final: 'BOOLEAN', is_new: 'BOOLEAN'})`,
  } as const;

  test.each(Object.keys(SOURCES) as (keyof typeof SOURCES)[])('reads %s', async (format) => {
    const { file } = await writeRows(folder, format, ROWS, { name: 'duck' });
    const duck = await (await DuckDBInstance.create()).connect();
    await duck.run(`set timezone = 'UTC'`);
    const found = await duck.runAndReadAll(
      `select id, note, epoch_us("at")::varchar, epoch_us(seen_at)::varchar, price, rank, slots::varchar, is_final, is_new from ${SOURCES[format](file)}`,
    );
    expect(found.getRows()).toEqual(asText(ROWS));
  });

  test('infers the types of Parquet', async () => {
    const { file } = await writeRows(folder, 'parquet', ROWS, { name: 'types' });
    const duck = await (await DuckDBInstance.create()).connect();
    const found = await duck.runAndReadAll(
      `select column_name, column_type from (describe select * from read_parquet('${file}'))`,
    );
    expect(Object.fromEntries(found.getRows())).toEqual({
      id: 'VARCHAR',
      note: 'VARCHAR',
      at: 'TIMESTAMP WITH TIME ZONE',
      seen_at: 'TIMESTAMP WITH TIME ZONE',
      price: 'DOUBLE',
      rank: 'INTEGER',
      slots: 'BIGINT',
      is_final: 'BOOLEAN',
      is_new: 'BOOLEAN',
    });
    const schema = await duck.runAndReadAll(
      `select name, repetition_type from parquet_schema('${file}') where type is not null order by name`,
    );
    const required = schema.getRows().filter(([, repetition]) => repetition === 'REQUIRED');
    expect(required.map(([name]) => name)).toEqual(['at', 'id', 'is_final']);
  });

  test('finds minimum and maximum of each row group, and none for a group of nulls', async () => {
    const { file } = await writeRows(folder, 'parquet', ROWS, { name: 'statistics' });
    const duck = await (await DuckDBInstance.create()).connect();
    const found = await duck.runAndReadAll(
      `select row_group_id, stats_min_value, stats_max_value, stats_null_count::int from parquet_metadata('${file}') where path_in_schema = 'price'`,
    );
    expect(found.getRows().map(([group, , , nulls]) => [Number(group), nulls])).toEqual([
      [0, 1],
      [1, 0],
      [2, 0],
    ]);
    expect(found.getRows()[0]!.slice(1, 3)).toEqual(['0.30000000000000004', '0.30000000000000004']);
  });
});

test('an independent Arrow reader returns every value', async () => {
  const { file } = await writeRows(folder, 'arrow', ROWS, { name: 'flechette' });
  const table = tableFromIPC(readFileSync(file), { useBigInt: true, useBigIntTimestamp: true } as never);
  const rows = Array.from({ length: table.numRows }, (_, i) =>
    table.names.map((name) => table.getChild(String(name)).at(i)),
  );
  expect(rows.map((row) => row.filter((_, i) => i !== 2 && i !== 3))).toEqual(
    ROWS.map((row) => row.filter((_, i) => i !== 2 && i !== 3)),
  );
  const stored = table
    .getChild('at')
    .data.flatMap((batch) => [...(batch.values as BigInt64Array).subarray(0, batch.length)]);
  expect(stored).toEqual(ROWS.map((row) => row[2]));
  expect((table.schema.fields[2]!.type as { readonly timezone?: string }).timezone).toBe('UTC');
});
