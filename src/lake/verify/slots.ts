/** Looks up rows of single series in files, to name the slots that differ from what the evidence says. */
import type { Instant } from '../../clock.ts';
import { isPriceInterval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Batch, valueAt } from '../../store/copy/columns.ts';
import { type FormerNames, findSeries, readFormerNames } from '../../views/attestation/read-series.ts';
import { datasetNamed } from '../dataset/datasets.ts';
import type { Destination } from '../destination/destination.ts';
import { createSeriesDigests } from '../digest/series-digests.ts';
import { nameOfSeries } from '../digest/series-name.ts';
import { NotReadable } from '../format/not-readable.ts';
import { READERS } from '../format/open-format.ts';
import type { ManifestFile } from '../manifest/manifest.ts';
import { type Recounted, type RecountedSeries, spanOf } from './recount.ts';

export type SlotReader = {
  /** The number of the series in the warehouse, which may have another name there now; null: it is not there. */
  idOf(series: RecountedSeries): Promise<number | null>;
  /** The slots within `span` whose final rows are not those that the evidence of the manifest's step tells; the first hundred. */
  differing(name: string, series: RecountedSeries, span: Span): Promise<Instant[]>;
  /** SHA-256 of the final rows within `span`; null: they cannot be read back. */
  digest(name: string, series: RecountedSeries, span: Span): Promise<string | null>;
};

const MOST = 100;

export function createSlotReader(sql: Sql, destination: Destination, recounted: Recounted): SlotReader {
  let former: FormerNames | null = null;
  const idOf = async (series: RecountedSeries) => {
    former ??= await readFormerNames(sql);
    const [found] = await findSeries(sql, [series], former);
    return found?.id ?? null;
  };
  return {
    idOf,
    digest: async (name, series, span) => {
      const found = await readRows(destination, recounted, name, series, span);
      return found === null ? null : found.sha256;
    },
    differing: async (name, series, span) => {
      const found = await readRows(destination, recounted, name, series, span);
      if (found === null) return [];
      const told = await readThen(sql, await idOf(series), series, span);
      const times = [...new Set([...found.rows.keys(), ...told.keys()])].sort((a, b) => a - b);
      return times.filter((at) => found.rows.get(at) !== told.get(at)).slice(0, MOST);
    },
  };
}

type Rows = {
  /** By time: the values as one text. */
  readonly rows: ReadonlyMap<Instant, string>;
  readonly sha256: string | null;
};

/** The final rows of a series in the files. Null: their form is that of a tool, or a file is not readable. */
async function readRows(
  destination: Destination,
  { head, files, datasets }: Recounted,
  name: string,
  series: RecountedSeries,
  span: Span,
): Promise<Rows | null> {
  const dataset = datasetNamed(isPriceInterval(series.interval) ? 'prices' : 'candles');
  const columns = datasets.get(dataset.name)?.columns ?? null;
  if (columns === null || dataset.kind !== 'series') return null;
  const names = columns.map((column) => column.name);
  const rows = new Map<Instant, string>();
  let sha256: string | null = null;
  const read = await READERS[head.format]();
  for (const file of files.filter((one) => one.dataset === dataset.name && holds(one, series, span))) {
    const place = file.interval === null ? null : { interval: series.interval, quote: series.quote };
    const digests = createSeriesDigests(dataset, names, place);
    try {
      for await (const batch of read({ destination, path: file.path, bytes: file.bytes, columns })) {
        const within = onlyWithin(batch, names, dataset.time, span);
        digests.add(within);
        collect(within, names, series, dataset.time, rows);
      }
    } catch (error) {
      if (error instanceof NotReadable) return null;
      throw error;
    }
    const found = digests.finish().find((one) => nameOfSeries(one) === name);
    sha256 ??= found?.months[0]?.sha256 ?? null;
  }
  return { rows, sha256 };
}

function holds(file: ManifestFile, { interval, quote }: RecountedSeries, span: Span): boolean {
  const { from, to } = spanOf(file);
  const isOfSeries = file.interval === null || (file.interval === interval && file.quote === quote);
  return isOfSeries && from < span.to && to > span.from;
}

/** The same batch, in which rows outside the span do not count as final. */
function onlyWithin(batch: Batch, names: readonly string[], time: string, { from, to }: Span): Batch {
  const times = batch.columns[names.indexOf(time)]!.values as BigInt64Array;
  const isFinal = batch.columns[names.indexOf('is_final')]!.values as Uint8Array;
  for (let i = 0; i < batch.rows; i++) {
    const at = Number(times[i]! / 1_000n);
    if (at < from || at >= to) isFinal[i] = 0;
  }
  return batch;
}

function collect(
  batch: Batch,
  names: readonly string[],
  { coinId, quote, interval }: RecountedSeries,
  time: string,
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
    rows.set(at, textOf(values.map((one) => valueAt(one, i) as number | null)));
  }
}

const CANDLE_VALUES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'];

type Row = { readonly openTime: Instant } & Readonly<
  Record<'open' | 'high' | 'low' | 'close' | 'volume' | 'marketCap', number | null>
>;

/** What the evidence says that the final rows were after the step of the manifest. */
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
