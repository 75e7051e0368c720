/** Plans the files of an export, and estimates how many rows there are to read. */
import type { Instant } from '../../clock.ts';
import { floorToGrid, INTERVAL_MS } from '../../core/interval.ts';
import { intersect } from '../../core/span.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Dataset, HistoryDataset, SeriesDataset } from '../dataset/dataset.ts';
import { freqtradeFiles } from '../layout/freqtrade.ts';
import { jesseFiles } from '../layout/jesse.ts';
import { historyFiles, hiveFiles, type PlannedFile, type SeriesRef, singleFile, tableFile } from '../layout/layout.ts';
import { leanFiles } from '../layout/lean.ts';
import { ExportRefused } from '../refused.ts';
import { readSeries } from './read-series.ts';
import type { Selection } from './selection.ts';
import { fromTable } from './statements.ts';

export type Plan = {
  readonly files: readonly PlannedFile[];
  /** The number of rows to read, as far as it can be known without reading them. */
  readonly rows: number;
  /** The total duration of the rows of series. */
  readonly minutes: number;
};

/** @throws ExportRefused when the layout has no place for a selected dataset */
export async function planFiles(tx: SqlOrTransaction, selection: Selection): Promise<Plan> {
  const files: PlannedFile[] = [];
  let rows = 0;
  let minutes = 0;
  for (const dataset of selection.datasets) {
    if (dataset.kind === 'series') {
      const series = await readSeries(tx, dataset, selection);
      files.push(...seriesFiles(dataset, series, selection));
      for (const one of series) {
        const within = rowsWithin(one, selection);
        rows += within;
        minutes += (within * INTERVAL_MS[one.interval]) / 60_000;
      }
    } else {
      const counted = await count(tx, dataset, selection);
      rows += counted.rows;
      files.push(...otherFiles(dataset, counted, selection));
    }
  }
  return { files, rows, minutes };
}

function seriesFiles(
  dataset: SeriesDataset,
  series: readonly SeriesRef[],
  { layout, format, span }: Selection,
): PlannedFile[] {
  switch (layout) {
    case 'hive':
      return hiveFiles(dataset, series, format, span);
    case 'single':
      return singleFile(dataset, series, format, span);
    case 'freqtrade':
      if (format !== 'parquet' && format !== 'arrow') throw new Error(`freqtrade reads no ${format}`);
      return freqtradeFiles(series, format, span);
    case 'lean':
      return leanFiles(series, span);
    case 'jesse':
      return jesseFiles(series, span);
  }
}

function otherFiles(
  dataset: Exclude<Dataset, SeriesDataset>,
  { first, last }: Counted,
  { layout, format, span }: Selection,
): PlannedFile[] {
  if (layout !== 'hive' && layout !== 'single')
    throw new ExportRefused(`the layout ${layout} has only candles; leave ${dataset.name} out of --what`);
  if (dataset.kind === 'table') return [tableFile(dataset, { format, layout })];
  if (first === null || last === null) return [];
  return historyFiles(dataset, { first, last }, { format, layout, clip: span });
}

/** An estimate, as if the stored rows of a series were evenly spread. */
function rowsWithin({ candles, first, last, interval }: SeriesRef, { span }: Selection): number {
  const whole = { from: first, to: last + INTERVAL_MS[interval] };
  const [part] = intersect([whole], [span]);
  if (part === undefined) return 0;
  const isWhole = part.from === whole.from && part.to === whole.to;
  if (isWhole) return candles;
  const share = (floorToGrid(part.to, interval) - floorToGrid(part.from, interval)) / (whole.to - whole.from);
  return Math.round(candles * share);
}

type Counted = { readonly rows: number; readonly first: Instant | null; readonly last: Instant | null };

async function count(
  tx: SqlOrTransaction,
  dataset: Exclude<Dataset, SeriesDataset>,
  selection: Selection,
): Promise<Counted> {
  const ends = dataset.kind === 'history' ? endsOf(dataset) : 'null::timestamptz as first, null::timestamptz as last';
  const [row] = await tx.unsafe<Counted[]>(`select count(*) as rows, ${ends} ${fromTable(dataset, selection)}`);
  return row!;
}

function endsOf({ time }: HistoryDataset): string {
  return `min(${time}) as first, max(${time}) as last`;
}
