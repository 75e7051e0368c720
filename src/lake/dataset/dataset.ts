/** The datasets that can be exported. Each has columns of explicit types, and defines how Postgres returns its rows. */
import type { ColumnType } from '../../store/copy/columns.ts';

export type DatasetColumn = {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
};

/** A column and its SQL expression, in a query over the dataset's `from`. */
export type SourceColumn = DatasetColumn & { readonly sql: string };

/** Candles or prices: rows of series, in one file for each stretch of time of each interval and quote. */
export type SeriesDataset = {
  readonly kind: 'series';
  readonly name: 'candles' | 'prices';
  /** The columns of the file. Those that name the series come first: `coin_id`, and in a file with more than one of them `quote` and `interval`. */
  readonly columns: readonly SourceColumn[];
  /** The time column by which rows are sorted. */
  readonly time: string;
};

/**
 * A table to which rows are only added, at its newest end, and from which only retention removes some. It has one file for each stretch of time.
 */
export type HistoryDataset = {
  readonly kind: 'history';
  readonly name: string;
  readonly columns: readonly SourceColumn[];
  readonly from: string;
  readonly time: string;
  /** The length of the stretch. */
  readonly months: 1 | 12;
  /** How the rows of a file are sorted. */
  readonly order: string;
  /** The expression that `--coins` filters; absent when the dataset is not about coins. */
  readonly coin?: string;
};

/** A table that is written as a whole, into one file. */
export type TableDataset = Omit<HistoryDataset, 'kind' | 'time' | 'months'> & { readonly kind: 'table' };

export type Dataset = SeriesDataset | HistoryDataset | TableDataset;

/**
 * Parses one column from each line: `name type`, with `?` behind the type of a nullable column; `name type = expression` when the expression is not
 * the name.
 */
export function columnsOf(text: string): SourceColumn[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [left, sql] = line.split(/ = (.*)/) as [string, string?];
      const [name, type] = left.trim().split(/\s+/) as [string, string];
      const nullable = type.endsWith('?');
      return { name, type: type.replace('?', '') as ColumnType, nullable, sql: sql ?? name };
    });
}

/** Creates a dataset; each line of `columns` is one column. */
export function table({
  columns,
  ...rest
}: Omit<TableDataset, 'kind' | 'columns'> & { readonly columns: string }): TableDataset {
  return { kind: 'table', ...rest, columns: columnsOf(columns) };
}

/** Sorts a text by its bytes, whatever the collation of the database is. */
export function bytewise(column: string): string {
  return `${column} collate "C"`;
}
