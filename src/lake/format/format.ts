/** The formats of files: how columns become bytes, and bytes columns again. */
import type { Batch } from '../../store/copy/columns.ts';
import type { DatasetColumn } from '../dataset/dataset.ts';
import type { ByteSink, Destination } from '../destination/destination.ts';

export const FORMATS = ['parquet', 'csv', 'ndjson', 'arrow'] as const;
export type Format = (typeof FORMATS)[number];

/** Rows of a batch, or of a group of rows in a file. A reader can skip a whole group; each needs a few megabytes of memory. */
export const BATCH_ROWS = 122_880;

/** One column of a file. */
export type FileColumn = DatasetColumn & {
  /** Of an instant: the unit in which it is written; default microseconds. */
  readonly unit?: 'milliseconds';
};

export type RowWriter = {
  /** The batch may be used again when it has resolved. */
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

/** The rows of a file in batches, each of which is only good until the next one. @throws NotReadable when it is something else */
export type ReadRows = (file: FileToRead) => AsyncGenerator<Batch>;
