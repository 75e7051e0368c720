/** How the rows of datasets become files: the paths, contents and formats of the files. */
import type { Quote } from '../../core/candle.ts';
import { type Interval, widthOf } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Dataset, HistoryDataset, SeriesDataset, TableDataset } from '../dataset/dataset.ts';
import { columnsIn } from '../dataset/series-datasets.ts';
import type { ByteSink } from '../destination/destination.ts';
import type { FileColumn, Format, RowWriter } from '../format/format.ts';
import { WRITERS } from '../format/open-format.ts';
import { monthsEach, type Period, periodsOf } from './period.ts';

export const LAYOUTS = ['hive', 'single', 'freqtrade', 'lean', 'jesse'] as const;
export type Layout = (typeof LAYOUTS)[number];

/** Whether its files are those of a tool: only candles that have ended, and no column that shows whether a candle may still change. */
export function isOfTool(layout: Layout): boolean {
  return layout !== 'hive' && layout !== 'single';
}

export type SeriesRef = {
  readonly id: number;
  readonly coinId: string;
  readonly symbol: string;
  readonly quote: Quote;
  readonly interval: Interval;
  /** Number of stored rows, final or not. */
  readonly candles: number;
  readonly first: number;
  readonly last: number;
  /** The span in which the series has rows or coverage. Coverage may show that there is no row. */
  readonly reachFrom: number;
  readonly reachTo: number;
};

/** A file to be written, if it has rows. */
export type PlannedFile = {
  readonly path: string;
  readonly dataset: Dataset;
  /** For a file of series: the series that may be in it, in their order. */
  readonly series: readonly SeriesRef[];
  /** The interval and quote of all its series, when the file has no columns for them; otherwise null. */
  readonly place: { readonly interval: Interval; readonly quote: Quote } | null;
  /** Limits the times of its rows; a bound without a limit is infinite. */
  readonly span: Span;
  /** The columns of the rows that Postgres returns. */
  readonly source: Dataset['columns'];
  /** The columns of the file; null: it has the format of a tool, and the rows cannot be read back exactly. */
  readonly columns: readonly FileColumn[] | null;
  readonly open: (sink: ByteSink) => Promise<RowWriter>;
};

export const ALL_TIME: Span = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/** `candles/interval=24h/quote=usd/year=2024/part.parquet`: values in the folders' names are not in the file. */
export function hiveFiles(
  dataset: SeriesDataset,
  series: readonly SeriesRef[],
  format: Format,
  clip: Span,
): PlannedFile[] {
  return groupsOf(series).flatMap((group) => {
    const { interval, quote } = group[0]!;
    const columns = columnsIn(dataset.columns, true);
    const first = group.reduce((least, one) => Math.min(least, one.first), Number.POSITIVE_INFINITY);
    const last = group.reduce((most, one) => Math.max(most, one.last), Number.NEGATIVE_INFINITY);
    return [...periodsOf(monthsEach(interval), first, last, clip)].map((period) => ({
      path: `${dataset.name}/interval=${widthOf(interval)}/quote=${quote}/${fileOf(period, format)}`,
      dataset,
      series: group,
      place: { interval, quote },
      span: { from: period.from, to: period.to },
      ...rowsAs(format, columns),
    }));
  });
}

/** `candles.parquet`, with columns for interval and quote. */
export function singleFile(
  dataset: SeriesDataset,
  series: readonly SeriesRef[],
  format: Format,
  clip: Span,
): PlannedFile[] {
  if (series.length === 0) return [];
  const path = `${dataset.name}.${format}`;
  return [{ path, dataset, series, place: null, span: clip, ...rowsAs(format, dataset.columns) }];
}

/** `tickers/year=2024/part-01.parquet`. */
export function historyFiles(
  dataset: HistoryDataset,
  { first, last }: { readonly first: number; readonly last: number },
  { format, layout, clip }: { readonly format: Format; readonly layout: 'hive' | 'single'; readonly clip: Span },
): PlannedFile[] {
  const rest = { dataset, series: [], place: null, ...rowsAs(format, dataset.columns) };
  if (layout === 'single') return [{ path: `${dataset.name}.${format}`, span: clip, ...rest }];
  return [...periodsOf(dataset.months, first, last, clip)].map((period) => ({
    path: `${dataset.name}/${fileOf(period, format)}`,
    span: { from: period.from, to: period.to },
    ...rest,
  }));
}

/** `coins/part.parquet`, or `coins.parquet` in the layout `single`. */
export function tableFile(
  dataset: TableDataset,
  { format, layout }: { readonly format: Format; readonly layout: 'hive' | 'single' },
): PlannedFile {
  const path = layout === 'hive' ? `${dataset.name}/part.${format}` : `${dataset.name}.${format}`;
  return { path, dataset, series: [], place: null, span: ALL_TIME, ...rowsAs(format, dataset.columns) };
}

function fileOf({ year, name }: Period, format: Format): string {
  return `year=${String(year).padStart(4, '0')}/${name}.${format}`;
}

function rowsAs(format: Format, source: Dataset['columns']) {
  const columns = source.map(({ sql: _, ...column }): FileColumn => column);
  return {
    source,
    columns,
    open: async (sink: ByteSink) => (await WRITERS[format]())(sink, columns),
  };
}

/** Groups adjacent series of one interval and quote. */
export function groupsOf(series: readonly SeriesRef[]): SeriesRef[][] {
  const groups: SeriesRef[][] = [];
  for (const one of series) {
    const group = groups.at(-1);
    if (group !== undefined && group[0]!.interval === one.interval && group[0]!.quote === one.quote) group.push(one);
    else groups.push([one]);
  }
  return groups;
}
