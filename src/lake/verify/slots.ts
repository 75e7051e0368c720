/** Reads rows of single series in files, to name the slots that differ from the evidence. */

import type { Instant } from '../../clock.ts';
import { isPriceInterval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { CANDLE_VALUES } from '../../store/candle/coarse-candle.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Batch, valueAt } from '../../store/copy/columns.ts';
import { type FormerNames, findSeries, readFormerNames } from '../../views/attestation/read-series.ts';
import { datasetNamed } from '../dataset/datasets.ts';
import type { Destination } from '../destination/destination.ts';
import { NotReadable } from '../format/not-readable.ts';
import { READERS } from '../format/open-format.ts';
import { type ManifestFile, spanOfFile } from '../manifest/manifest.ts';
import type { Recounted, RecountedSeries } from './recount.ts';

export type SlotReader = {
  /** The ids of series in the warehouse, where they may have other names now; null: the warehouse does not have it. */
  idsOf(series: readonly RecountedSeries[]): Promise<(number | null)[]>;
  /** The first hundred slots within `span` whose final rows differ from the evidence at the manifest's step. */
  differing(series: RecountedSeries, span: Span): Promise<Instant[]>;
};

const MOST = 100;
/** The slots of at most this many months are named. */
const MOST_ASKED = 50;

export function createSlotReader(sql: Sql, destination: Destination, recounted: Recounted): SlotReader {
  let former: FormerNames | null = null;
  let asked = 0;
  const idsOf = async (series: readonly RecountedSeries[]) => {
    former ??= await readFormerNames(sql);
    const found = await findSeries(sql, series, former);
    return found.map((one) => one?.id ?? null);
  };
  return {
    idsOf,
    differing: async (series, span) => {
      // Each month reads a file again.
      const found = ++asked > MOST_ASKED ? null : await readRows(destination, recounted, series, span);
      if (found === null) return [];
      const [id] = await idsOf([series]);
      const told = await readThen(sql, id!, series, span);
      const times = [...new Set([...found.keys(), ...told.keys()])].sort((a, b) => a - b);
      return times.filter((at) => found.get(at) !== told.get(at)).slice(0, MOST);
    },
  };
}

/** The final rows of a series in the files, by time. Null: the files have the format of a tool, or one is not readable. */
async function readRows(
  destination: Destination,
  { head, files, datasets }: Recounted,
  series: RecountedSeries,
  span: Span,
): Promise<Map<Instant, string> | null> {
  const dataset = datasetNamed(isPriceInterval(series.interval) ? 'prices' : 'candles');
  const columns = datasets.get(dataset.name)?.columns ?? null;
  if (columns === null || dataset.kind !== 'series') return null;
  const names = columns.map((column) => column.name);
  const rows = new Map<Instant, string>();
  const read = await READERS[head.format]();
  for (const file of files.filter((one) => one.dataset === dataset.name && holds(one, series, span))) {
    try {
      for await (const batch of read({ destination, path: file.path, bytes: file.bytes, columns }))
        collect(batch, names, series, { time: dataset.time, span }, rows);
    } catch (error) {
      if (error instanceof NotReadable) return null;
      throw error;
    }
  }
  return rows;
}

function holds(file: ManifestFile, { interval, quote }: RecountedSeries, span: Span): boolean {
  const { from, to } = spanOfFile(file);
  const isOfSeries = file.interval === null || (file.interval === interval && file.quote === quote);
  return isOfSeries && from < span.to && to > span.from;
}

/** Joins the values of each row into one text. */
function collect(
  batch: Batch,
  names: readonly string[],
  { coinId, quote, interval }: RecountedSeries,
  { time, span }: { readonly time: string; readonly span: Span },
  rows: Map<Instant, string>,
): void {
  const column = (name: string) => batch.columns[names.indexOf(name)]!;
  const isPrice = isPriceInterval(interval);
  const values = (isPrice ? ['price', 'volume_24h', 'market_cap'] : CANDLE_VALUES).map(column);
  const width = interval.replace('prices-', '');
  for (let i = 0; i < batch.rows; i++) {
    if (column('is_final').values[i] !== 1 || column('coin_id').values[i] !== coinId) continue;
    if (names.includes('interval') && (column('interval').values[i] !== width || column('quote').values[i] !== quote))
      continue;
    const at = Number((column(time).values as BigInt64Array)[i]! / 1_000n);
    if (at < span.from || at >= span.to) continue;
    rows.set(at, textOf(values.map((one) => valueAt(one, i) as number | null)));
  }
}

type Row = { readonly openTime: Instant } & Readonly<
  Record<'open' | 'high' | 'low' | 'close' | 'volume' | 'marketCap', number | null>
>;

/** The final rows after the manifest's step, as the evidence has them. */
async function readThen(
  sql: Sql,
  id: number | null,
  { interval, steps }: RecountedSeries,
  span: Span,
): Promise<Map<Instant, string>> {
  const rows = await sql<Row[]>`
    select * from ops.final_at(${id}::int, ${interval}::market.candle_interval, ${steps}, ${span}::tstzrange)`;
  const isPrice = isPriceInterval(interval);
  return new Map(
    rows.map(({ openTime, open, high, low, close, volume, marketCap }) => [
      openTime,
      textOf(isPrice ? [close, volume, marketCap] : [open, high, low, close, volume, marketCap]),
    ]),
  );
}

function textOf(values: readonly (number | null)[]): string {
  return values.join(' ');
}
