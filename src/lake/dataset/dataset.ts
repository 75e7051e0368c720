/** What can be exported: each dataset has columns of explicit types, and says how Postgres gives its rows. */
import type { ColumnType } from '../../store/copy/columns.ts';

export type DatasetColumn = {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
};

/** The expression that gives the column, in a query over the dataset's `from`. */
export type SourceColumn = DatasetColumn & { readonly sql: string };

/** Candles or prices: rows of series, in a file for each stretch of time of each interval and quote. */
export type SeriesDataset = {
  readonly kind: 'series';
  readonly name: 'candles' | 'prices';
  /** Of the file: those of the series (`coin_id`, and where a file has more than one of them `quote` and `interval`) come first. */
  readonly columns: readonly SourceColumn[];
  /** The column of the time by which rows are sorted. */
  readonly time: string;
};

/** A table to which rows are only added, at its newest end, and from which only retention removes some; in a file for each stretch of time. */
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
  /** The expression that `--coins` filters; absent: it is not about coins. */
  readonly coin?: string;
};

/** A table that is written as a whole, into one file. */
export type TableDataset = Omit<HistoryDataset, 'kind' | 'time' | 'months'> & { readonly kind: 'table' };

export type Dataset = SeriesDataset | HistoryDataset | TableDataset;

/** `name type`, and `?` behind the type where it may be null; `name type = expression` where the column is not named so. */
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

/** A dataset of which each column is a line of `columns`. */
export function table({
  columns,
  ...rest
}: Omit<TableDataset, 'kind' | 'columns'> & { readonly columns: string }): TableDataset {
  return { kind: 'table', ...rest, columns: columnsOf(columns) };
}

/** A text in the order of its bytes, whatever the collation of the database is. */
export function bytewise(column: string): string {
  return `${column} collate "C"`;
}
