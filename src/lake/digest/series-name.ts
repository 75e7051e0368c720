/** Which series rows are of: by their place, or by the columns of the file. */
import type { Quote } from '../../core/candle.ts';
import { type Interval, isInterval } from '../../core/interval.ts';
import type { Batch } from '../../store/copy/columns.ts';
import type { SeriesDataset } from '../dataset/dataset.ts';

export type Place = { readonly interval: Interval; readonly quote: Quote };

/** Of a row of a file that has columns for them. */
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

/** `btc-bitcoin usd 24h`: as attestations name it. */
export function nameOfSeries({ coinId, quote, interval }: Place & { readonly coinId: string }): string {
  return `${coinId} ${quote} ${interval}`;
}
