/** The formats of files. They convert columns into bytes, and bytes back into columns. */
import type { Batch } from '../../store/copy/columns.ts';
import type { DatasetColumn } from '../dataset/dataset.ts';
import type { ByteSink, Destination } from '../destination/destination.ts';

export const FORMATS = ['parquet', 'csv', 'ndjson', 'arrow'] as const;
export type Format = (typeof FORMATS)[number];

/** Rows of a batch, and of a row group in a file. A reader can skip a whole group; each needs a few megabytes of memory. */
export const BATCH_ROWS = 122_880;

/** One column of a file. */
export type FileColumn = DatasetColumn & {
  /** The unit in which an instant is written; default microseconds. */
  readonly unit?: 'milliseconds';
};

export type RowWriter = {
  /** When it has resolved, the caller may reuse the batch. */
  write(batch: Batch): Promise<void>;
  /** Call it once, after the last batch. */
  finish(): Promise<void>;
};

export type OpenWriter = (sink: ByteSink, columns: readonly FileColumn[]) => RowWriter;

export type FileToRead = {
  readonly destination: Destination;
  readonly path: string;
  readonly bytes: number;
  readonly columns: readonly FileColumn[];
};

/** Yields the rows of a file in batches. Each batch is valid only until the next one. @throws NotReadable when the file is something else */
export type ReadRows = (file: FileToRead) => AsyncGenerator<Batch>;
