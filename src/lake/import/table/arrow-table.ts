/** Reads any Arrow IPC file (Feather, version 2), one record batch after the other. */
import type { FileHandle } from 'node:fs/promises';
import { DataType, type Field, type RecordBatch, RecordBatchReader, TimeUnit, type Vector } from 'apache-arrow';
import { readRange } from '../../destination/destination.ts';
import { NotReadable, readableAs } from '../../format/not-readable.ts';
import type { OpenTable, RawRows, TableFile } from './table.ts';

export const openArrowTable: OpenTable = async (file) => {
  const { fields } = await readableAs('Arrow', async () => {
    const reader = await open(file);
    const { schema } = reader;
    await reader.cancel();
    return schema;
  });
  return {
    columns: fields.map((field: Field) => ({ name: field.name, isInstant: isInstant(field.type) })),
    rows: null,
    async *read(places): AsyncGenerator<RawRows> {
      const reader = await readableAs('Arrow', () => open(file));
      let first = 1;
      try {
        for (;;) {
          const next = await readableAs('Arrow', () => nextBatch(reader));
          if (next.done) return;
          const { numRows } = next.value;
          const columns = places.map((place) => valuesOf(next.value.getChildAt(place)!));
          yield { rows: numRows, first, columns };
          first += numRows;
        }
      } finally {
        await reader.cancel();
      }
    },
  };
};

async function nextBatch(reader: { next(): unknown }): Promise<IteratorResult<RecordBatch>> {
  try {
    return (await reader.next()) as IteratorResult<RecordBatch>;
  } catch (error) {
    // pandas compresses unless it is told not to.
    if (!(error instanceof Error) || !error.message.includes('compressed but codec not found')) throw error;
    throw new NotReadable(
      "is compressed, which cannot be read; write it uncompressed (to_feather(…, compression='uncompressed') of pandas), or as Parquet",
    );
  }
}

const isInstant = (type: DataType) => DataType.isTimestamp(type) || DataType.isDate(type);

const PER_MS = {
  [TimeUnit.SECOND]: 1e-3,
  [TimeUnit.MILLISECOND]: 1,
  [TimeUnit.MICROSECOND]: 1e3,
  [TimeUnit.NANOSECOND]: 1e6,
};

function valuesOf(vector: Vector): ArrayLike<unknown> {
  const { type, length } = vector;
  const out = new Array<unknown>(length);
  if (DataType.isTimestamp(type)) {
    // The library gives whole milliseconds, in which a time that is not on the grid may look as if it were.
    const stored = vector.data[0]!.values as BigInt64Array;
    const unit = PER_MS[type.unit];
    for (let i = 0; i < length; i++) out[i] = vector.isValid(i) ? Number(stored[i]!) / unit : null;
    return out;
  }
  if (vector.nullCount === 0 && DataType.isFloat(type) && type.precision === 2) return vector.toArray() as Float64Array;
  for (let i = 0; i < length; i++) out[i] = vector.get(i) ?? null;
  return out;
}

async function open({ destination, path, bytes }: TableFile): Promise<RecordBatchReader> {
  const handle = {
    // The library tells file handles by it.
    fd: -1,
    stat: async () => ({ size: bytes, isFile: () => true }),
    read: async (into: Uint8Array, offset: number, length: number, position: number) => {
      const found = await readRange(destination, path, { from: position, to: Math.min(bytes, position + length) });
      into.set(found, offset);
      return { bytesRead: found.length, buffer: into };
    },
    close: async () => undefined,
  };
  const reader: RecordBatchReader = await RecordBatchReader.from(handle as unknown as FileHandle);
  await reader.open();
  return reader;
}
