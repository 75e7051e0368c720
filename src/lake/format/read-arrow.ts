/** Reads Arrow IPC files, one record batch after the other. */
import type { FileHandle } from 'node:fs/promises';
import { type RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { type Column, clearBatch, createBatch, setValue, type Value } from '../../store/copy/columns.ts';
import { readRange } from '../destination/destination.ts';
import type { FileColumn, FileToRead, ReadRows } from './format.ts';
import { NotReadable, readableAs } from './not-readable.ts';
import { arrowSchema } from './write-arrow.ts';

export const readArrow: ReadRows = async function* (source) {
  const { columns } = source;
  const reader = await openArrow(source);
  const wanted = String(arrowSchema(columns));
  if (String(reader.schema) !== wanted)
    throw new NotReadable(`has the schema ${reader.schema}, but the manifest has ${wanted}`);
  let batch = createBatch(
    columns.map(({ type }) => type),
    0,
  );
  try {
    for await (const records of batchesOf(reader)) {
      const { numRows } = records;
      if (batch.columns[0]!.isNull.length < numRows)
        batch = createBatch(
          columns.map(({ type }) => type),
          numRows,
        );
      clearBatch(batch);
      batch.rows = numRows;
      for (const [i, column] of columns.entries()) fill(batch.columns[i]!, column, records, i);
      yield batch;
    }
  } finally {
    await reader.cancel();
  }
};

/** Reads only the bytes that are needed. @throws NotReadable when the file is not Arrow */
export function openArrow({ destination, path, bytes }: Omit<FileToRead, 'columns'>): Promise<RecordBatchReader> {
  const handle = {
    // The library recognises file handles by this field.
    fd: -1,
    stat: async () => ({ size: bytes, isFile: () => true }),
    read: async (into: Uint8Array, offset: number, length: number, position: number) => {
      const found = await readRange(destination, path, { from: position, to: Math.min(bytes, position + length) });
      into.set(found, offset);
      return { bytesRead: found.length, buffer: into };
    },
    close: async () => undefined,
  };
  return readableAs('Arrow', async () => {
    const reader: RecordBatchReader = await RecordBatchReader.from(handle as unknown as FileHandle);
    await reader.open();
    // The library opens an empty file without an error.
    if ((reader.schema as Schema | undefined) === undefined) throw new NotReadable('is empty, or is no Arrow file');
    return reader;
  });
}

export async function* batchesOf(reader: RecordBatchReader): AsyncGenerator<RecordBatch> {
  for (;;) {
    const next = await readableAs('Arrow', () => nextBatch(reader));
    if (next.done) return;
    yield next.value;
  }
}

async function nextBatch(reader: { next(): unknown }): Promise<IteratorResult<RecordBatch>> {
  try {
    return (await reader.next()) as IteratorResult<RecordBatch>;
  } catch (error) {
    // pandas compresses by default.
    if (!(error instanceof Error) || !error.message.includes('compressed but codec not found')) throw error;
    throw new NotReadable(
      "is compressed, which cannot be read; write it uncompressed (to_feather(…, compression='uncompressed') of pandas), or as Parquet",
    );
  }
}

function fill(into: Column, { type, unit }: FileColumn, records: RecordBatch, i: number): void {
  const vector = records.getChildAt(i)!;
  // The library returns instants as milliseconds, which loses microseconds. So the stored numbers are read instead.
  const stored = type === 'instant' ? (vector.data[0]!.values as BigInt64Array) : null;
  for (let row = 0; row < records.numRows; row++) {
    const value = vector.get(row) as Value;
    if (value === null || stored === null) setValue(into, row, value);
    else setValue(into, row, unit === 'milliseconds' ? stored[row]! * 1_000n : stored[row]!);
  }
}
