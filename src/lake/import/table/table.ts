/** Any file of rows, as an import reads it: columns by their names, and raw values. */
import type { Destination } from '../../destination/destination.ts';

/** The location of a file. */
export type TableFile = {
  readonly destination: Destination;
  readonly path: string;
  readonly bytes: number;
  /** Whether gzip has compressed its bytes. */
  readonly isGzip: boolean;
};

export type TableColumn = {
  /** In a file without a header: the number of the column, from 1. */
  readonly name: string;
  /** True: its values are instants, in milliseconds since 1970. False: the reader does not know what they are. */
  readonly isInstant: boolean;
};

export type Table = {
  readonly columns: readonly TableColumn[];
  /** Null: the number is unknown until all rows are read. */
  readonly rows: number | null;
  /**
   * `places`: the indexes of the wanted columns. Each batch has only these, in this order. `isNumber`: whether texts in the column may be read as
   * numbers.
   */
  read(places: readonly number[], isNumber: readonly boolean[]): AsyncGenerator<RawRows>;
};

/** The arrays are valid until the next batch. */
export type RawRows = {
  readonly rows: number;
  /** The record number of the first row in its file, as an editor counts: from 1, a header included. */
  readonly first: number;
  readonly columns: readonly ArrayLike<unknown>[];
  /** Rows that cannot be read, by index, with the reason. */
  readonly wrong?: ReadonlyMap<number, string>;
};

/** @throws NotReadable when the file has another format */
export type OpenTable = (file: TableFile, options: { readonly hasHeader: boolean }) => Promise<Table>;

/** Rows in a batch of text. With so few rows, the garbage collector frees their fields before it would move them. */
export const TABLE_ROWS = 1_024;
