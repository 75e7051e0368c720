/**
 * Whether Postgres has each row of an archived file again. The values may be others. A row that is absent exists only in the file. A final row that is
 * no longer final in Postgres may be of a removal that was killed halfway.
 */
import type { CandleInterval } from '../../core/interval.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { CANDLES } from '../dataset/series-datasets.ts';
import type { Destination } from '../destination/destination.ts';
import { NotReadable } from '../format/not-readable.ts';
import { READERS } from '../format/open-format.ts';
import type { PlannedFile } from '../layout/layout.ts';
import type { ManifestFile } from '../manifest/manifest.ts';
import type { ExistingExport } from './existing-export.ts';
import { seriesIn } from './read-series.ts';

type Where = {
  readonly tx: SqlOrTransaction;
  readonly destination: Destination;
  readonly before: ExistingExport;
  /** The series of Postgres, by their names in the manifest. */
  readonly ids: ReadonlyMap<string, number>;
};

/** False also if the file cannot be read: then nothing shows that its rows are elsewhere. */
export async function hasAllRows(where: Where, planned: PlannedFile, file: ManifestFile): Promise<boolean> {
  const { tx, destination, before, ids } = where;
  const { path, bytes, quote } = file;
  const interval = file.interval as CandleInterval;
  // Fewer rows cannot be all of them. This is quick where retention has removed most rows.
  if ((await countRows(tx, planned, interval)) < file.rows) return false;
  // Nobody can read a file that is missing or cut, so no row is lost with it.
  if (before.sizes.get(path) !== bytes) return true;
  const columns = before.datasets.find(({ name }) => name === CANDLES.name)?.columns;
  if (columns == null) return false;
  // The manifest has no coverage of a series whose rows were never final.
  const present = new Map(planned.series.map(({ coinId, id }) => [coinId, id]));
  const idOf = (coinId: string) => ids.get(`${coinId} ${quote} ${interval}`) ?? present.get(coinId);
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const [coinAt, timeAt, finalAt] = [at('coin_id'), at('open_time'), at('is_final')];
  const read = await READERS.parquet();
  try {
    for await (const batch of read({ destination, path, bytes, columns })) {
      const coins = batch.columns[coinAt]!.values as string[];
      const times = batch.columns[timeAt]!.values as BigInt64Array;
      const isFinal = batch.columns[finalAt]!.values as Uint8Array;
      const rows: Row[] = [];
      for (let i = 0; i < batch.rows; i++) {
        const id = idOf(coins[i]!);
        if (id === undefined) return false;
        rows.push({ id, time: Number(times[i]! / 1_000n), final: isFinal[i]! });
      }
      const found = await countFound(tx, interval, rows);
      if (found < batch.rows) return false;
    }
    return true;
  } catch (error) {
    if (error instanceof NotReadable) return false;
    throw error;
  }
}

async function countRows(tx: SqlOrTransaction, planned: PlannedFile, interval: CandleInterval): Promise<number> {
  const { from, to } = planned.span;
  const [row] = await tx<{ rows: number }[]>`
    select count(*) as rows from unnest(${seriesIn(planned).map(({ id }) => id)}::int[]) as page (id)
    join lateral ${storedRows(tx, tx`page.id`, interval)} c on c.open_time >= ${from}::timestamptz and c.open_time < ${to}::timestamptz`;
  return row!.rows;
}

/** `final` is 0 or 1. */
type Row = { readonly id: number; readonly time: number; readonly final: number };

/** How many of these rows Postgres has. */
async function countFound(tx: SqlOrTransaction, interval: CandleInterval, rows: readonly Row[]): Promise<number> {
  const [row] = await tx<{ found: number }[]>`
    select count(*) as found from unnest(${rows.map(({ id }) => id)}::int[], ${rows.map(({ time }) => time)}::timestamptz[],
      ${rows.map(({ final }) => final)}::int[]) as a (id, open_time, final)
    join market.series s on s.id = a.id
    join market.candle c on c.series_id = a.id and c.interval = ${interval}::market.candle_interval and c.open_time = a.open_time
    where a.final = 0 or s.covered @> a.open_time`;
  return row!.found;
}
