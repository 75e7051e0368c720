/** Checks that an archived file has each row that Postgres has of a stretch of time. */

import { toIso } from '../../core/format.ts';
import { CANDLE_VALUES } from '../../store/candle/coarse-candle.ts';
import { type Batch, valueAt } from '../../store/copy/columns.ts';
import type { CopyOut } from '../../store/copy/copy-out.ts';
import type { Destination } from '../destination/destination.ts';
import type { SeriesWithin } from '../export/read-series.ts';
import { seriesStatements, typesOf } from '../export/statements.ts';
import { BATCH_ROWS, type FileColumn } from '../format/format.ts';
import { READERS } from '../format/open-format.ts';
import type { PlannedFile } from '../layout/layout.ts';
import type { ManifestFile } from '../manifest/manifest.ts';

type Compared = {
  readonly copy: CopyOut;
  readonly destination: Destination;
  readonly planned: PlannedFile;
  readonly within: readonly SeriesWithin[];
  readonly file: ManifestFile;
  /** The columns of the file. */
  readonly columns: readonly FileColumn[];
};

/** The first row of Postgres that the file does not have, in words; null: the file has all of them. Both are sorted by coin and time. */
export async function missingRow({
  copy,
  destination,
  planned,
  within,
  file,
  columns,
}: Compared): Promise<string | null> {
  const { source, span } = planned;
  const narrowed = { span, coinIds: null, finalOnly: false };
  const statements = seriesStatements(source, within, narrowed);
  const stored = rowsOf(copy.read(statements, typesOf({ columns: source }), BATCH_ROWS), source);
  const read = await READERS.parquet();
  const archived = rowsOf(read({ destination, path: file.path, bytes: file.bytes, columns }), columns);
  try {
    let there = await archived.next();
    for await (const row of stored) {
      while (!there.done && compare(there.value, row) < 0) there = await archived.next();
      const isSame = !there.done && compare(there.value, row) === 0 && there.value.values === row.values;
      if (!isSame) return `${row.coin} at ${toIso(Number(row.micros / 1_000n))}`;
    }
    return null;
  } finally {
    await archived.return(undefined);
  }
}

type Row = { readonly coin: string; readonly bytes: Buffer; readonly micros: bigint; readonly values: string };

/** Leaves out the column that shows whether a row was final. */
async function* rowsOf(batches: AsyncIterable<Batch>, columns: readonly FileColumn[]): AsyncGenerator<Row> {
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const [coinAt, timeAt, valuesAt] = [at('coin_id'), at('open_time'), CANDLE_VALUES.map(at)];
  let coin = '';
  let bytes = Buffer.alloc(0);
  for await (const batch of batches) {
    const coins = batch.columns[coinAt]!.values as string[];
    const times = batch.columns[timeAt]!.values as BigInt64Array;
    const values = valuesAt.map((i) => batch.columns[i]!);
    for (let i = 0; i < batch.rows; i++) {
      if (coins[i] !== coin) {
        coin = coins[i]!;
        bytes = Buffer.from(coin);
      }
      yield { coin, bytes, micros: times[i]!, values: values.map((column) => valueAt(column, i)).join(' ') };
    }
  }
}

function compare(a: Row, b: Row): number {
  const byCoin = a.coin === b.coin ? 0 : a.bytes.compare(b.bytes);
  return byCoin !== 0 ? byCoin : a.micros < b.micros ? -1 : a.micros > b.micros ? 1 : 0;
}
