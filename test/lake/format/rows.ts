/** Rows of every type, with every null and the values that files lose most easily. */
import { mkdtempSync, rmSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import type { FileColumn, Format } from '../../../src/lake/format/format.ts';
import { READERS, WRITERS } from '../../../src/lake/format/open-format.ts';
import { type Batch, clearBatch, createBatch, setValue, type Value, valueAt } from '../../../src/store/copy/columns.ts';

export type Row = readonly Value[];

export const COLUMNS: readonly FileColumn[] = [
  { name: 'id', type: 'text', nullable: false },
  { name: 'note', type: 'text', nullable: true },
  { name: 'at', type: 'instant', nullable: false },
  { name: 'seen_at', type: 'instant', nullable: true },
  { name: 'price', type: 'double', nullable: true },
  { name: 'rank', type: 'integer', nullable: true },
  { name: 'slots', type: 'bigint', nullable: true },
  { name: 'is_final', type: 'boolean', nullable: false },
  { name: 'is_new', type: 'boolean', nullable: true },
];

const us = (iso: string, microseconds = 0) => BigInt(Date.parse(iso)) * 1_000n + BigInt(microseconds);

export const ROWS: readonly Row[] = [
  [
    'btc-bitcoin',
    'plain',
    us('2024-02-29T12:34:56Z'),
    us('2024-02-29T12:34:56.789Z', 12),
    0.1 + 0.2,
    1,
    2n,
    true,
    false,
  ],
  ['btc-bitcoin', null, us('1969-12-31T23:59:59.999Z', 999), null, null, null, null, false, null],
  [
    'eth-ethereum',
    '',
    us('1970-01-01T00:00:00Z'),
    us('2255-06-05T23:47:34.740Z', 991),
    5e-324,
    -2_147_483_648,
    -(2n ** 53n),
    true,
    true,
  ],
  [
    'eth-ethereum',
    'a,"b"\n\r\tä€😀',
    us('2026-01-01T00:00:00Z'),
    us('0001-01-01T00:00:00Z'),
    1.7976931348623157e308,
    2_147_483_647,
    2n ** 53n,
    false,
    false,
  ],
  ['x', '"', us('9999-12-31T23:59:59.999Z', 999), us('2000-01-01T00:00:00Z'), -1234.5678901234567, 0, 0n, true, null],
];

export type Written = {
  readonly destination: Destination;
  readonly path: string;
  readonly file: string;
  readonly bytes: number;
};

/** A temporary folder, and `remove`, which deletes it. */
export function temporaryFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-lake-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export async function writeRows(
  folder: string,
  format: Format,
  rows: readonly Row[],
  {
    batchRows = 2,
    columns = COLUMNS,
    name = 'rows',
  }: { batchRows?: number; columns?: readonly FileColumn[]; name?: string } = {},
): Promise<Written> {
  const destination = openFolder(folder);
  const file = `${name}.${format}`;
  const open = await WRITERS[format]();
  await destination.put(file, async (sink) => {
    const writer = open(sink, columns);
    const batch = createBatch(
      columns.map(({ type }) => type),
      batchRows,
    );
    for (const row of rows) {
      const at = batch.rows++;
      for (const [i, value] of row.entries()) setValue(batch.columns[i]!, at, value);
      if (batch.rows < batchRows) continue;
      await writer.write(batch);
      clearBatch(batch);
    }
    if (batch.rows > 0) await writer.write(batch);
    await writer.finish();
  });
  const { size } = await stat(path.join(folder, file));
  return { destination, path: file, file: path.join(folder, file), bytes: size };
}

export async function readRows(
  format: Format,
  { destination, path: file, bytes }: Written,
  columns: readonly FileColumn[] = COLUMNS,
): Promise<Row[]> {
  const read = await READERS[format]();
  const rows: Row[] = [];
  for await (const batch of read({ destination, path: file, bytes, columns })) rows.push(...rowsOf(batch));
  return rows;
}

export function rowsOf(batch: Batch): Row[] {
  return Array.from({ length: batch.rows }, (_, row) => batch.columns.map((column) => valueAt(column, row)));
}
