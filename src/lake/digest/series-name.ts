/** Finds the series of rows: from the place of the file, or from its columns. */
import type { Quote } from '../../core/candle.ts';
import { type Interval, isInterval } from '../../core/interval.ts';
import type { Batch } from '../../store/copy/columns.ts';
import type { SeriesDataset } from '../dataset/dataset.ts';

export type Place = { readonly interval: Interval; readonly quote: Quote };

/** The place of one row, in a file that has columns for it. */
export function placeOf(
  { columns }: Batch,
  quote: number,
  interval: number,
  row: number,
  { name }: SeriesDataset,
): Place {
  const width = (columns[interval]!.values as string[])[row]!;
  const full = name === 'prices' ? `prices-${width}` : width;
  if (!isInterval(full)) throw new Error(`there is no interval ${full}`);
  return { interval: full, quote: (columns[quote]!.values as string[])[row] as Quote };
}
