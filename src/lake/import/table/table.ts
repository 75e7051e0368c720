/** Any file of rows, as an import reads it: columns by their names, and values as they come. */
import type { Destination } from '../../destination/destination.ts';

/** Where its bytes are. */
export type TableFile = {
  readonly destination: Destination;
  readonly path: string;
  readonly bytes: number;
  /** Its bytes are compressed by gzip. */
  readonly isGzip: boolean;
};

export type TableColumn = {
  /** Of a file without a header: its number, from 1. */
  readonly name: string;
  /** Its values are instants, in milliseconds since 1970; else the reader knows nothing of them. */
  readonly isInstant: boolean;
};

export type Table = {
  readonly columns: readonly TableColumn[];
  /** Null: only reading them all would tell. */
  readonly rows: number | null;
  /** The places of the columns that are wanted; each batch has only these, in this order. `isNumber`: of these, texts of numbers may be numbers. */
  read(places: readonly number[], isNumber: readonly boolean[]): AsyncGenerator<RawRows>;
};

/** The arrays are good until the next batch. */
export type RawRows = {
  readonly rows: number;
  /** The number of the first row in its file, as an editor counts records: from 1, a header included. */
  readonly first: number;
  readonly columns: readonly ArrayLike<unknown>[];
  /** Rows that are none, by their place, with the reason. */
  readonly wrong?: ReadonlyMap<number, string>;
};

/** @throws NotReadable when it is something else */
export type OpenTable = (file: TableFile, options: { readonly hasHeader: boolean }) => Promise<Table>;

/** Rows of a batch of text: with so few, their fields are gone before they would be moved in memory. */
export const TABLE_ROWS = 1_024;
