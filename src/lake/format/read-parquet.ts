/** Reads Parquet into columns, one row group after the other. */
import { type DecodedArray, type FileMetaData, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { type Column, clearBatch, createBatch, setValue, type Value } from '../../store/copy/columns.ts';
import { readRange } from '../destination/destination.ts';
import type { FileColumn, ReadRows } from './format.ts';
import { NotReadable, readableAs } from './not-readable.ts';

/** Returns instants as they are stored: a `Date` would lose the microseconds. */
const PARSERS = {
  timestampFromMicroseconds: (microseconds: bigint) => microseconds,
  timestampFromMilliseconds: (milliseconds: bigint) => milliseconds * 1_000n,
};

export const readParquet: ReadRows = async function* (source) {
  const { columns } = source;
  const file = {
    byteLength: source.bytes,
    slice: async (from: number, to: number = source.bytes) => {
      const bytes = await readRange(source.destination, source.path, { from, to });
      return bytes.buffer;
    },
  };
  const metadata = await readableAs('Parquet', () => parquetMetadataAsync(file, { parsers: PARSERS }));
  checkColumns(metadata, columns);
  const most = Math.max(0, ...metadata.row_groups.map(({ num_rows }) => Number(num_rows)));
  const batch = createBatch(
    columns.map(({ type }) => type),
    most,
  );
  let rowStart = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows);
    clearBatch(batch);
    await readableAs('Parquet', () =>
      parquetRead({
        file,
        metadata,
        rowStart,
        rowEnd,
        parsers: PARSERS,
        onChunk: ({ columnName, columnData, rowStart: from }) => {
          const i = columns.findIndex(({ name }) => name === columnName);
          fill(batch.columns[i]!, columnData, from - rowStart);
        },
      }),
    );
    batch.rows = Number(num_rows);
    yield batch;
    rowStart = rowEnd;
  }
};

function fill(column: Column, data: DecodedArray, at: number): void {
  for (let i = 0; i < data.length; i++) setValue(column, at + i, (data[i] ?? null) as Value);
}

function checkColumns({ schema }: FileMetaData, columns: readonly FileColumn[]): void {
  const found = schema.slice(1).map(({ name }) => name);
  const wanted = columns.map(({ name }) => name);
  if (found.join() !== wanted.join())
    throw new NotReadable(`has the columns ${found.join(', ')}, but the manifest has ${wanted.join(', ')}`);
}
