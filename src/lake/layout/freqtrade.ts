/**
 * Files of freqtrade: `BTC_USD-1d.parquet`, or `.feather`, which is an Arrow file.
 *
 * Confirmed in freqtrade's sources (`freqtrade/data/history/datahandlers/`): `idatahandler.py` names the file after the pair (each of
 * `/ . @ $ + :` and space becomes `_`) and the timeframe, directly in the folder of the exchange for spot markets; `featherdatahandler.py` and
 * `parquetdatahandler.py` read the columns date, open, high, low, close, volume in this order (`DEFAULT_DATAFRAME_COLUMNS`), the
 * date as instants in UTC, which freqtrade itself writes in milliseconds. The timeframe of a day is `1d`.
 */
import type { Span } from '../../core/span.ts';
import { clearBatch, createBatch, setValue } from '../../store/copy/columns.ts';
import type { ByteSink } from '../destination/destination.ts';
import { BATCH_ROWS, type FileColumn, type RowWriter } from '../format/format.ts';
import { WRITERS } from '../format/open-format.ts';
import type { PlannedFile, SeriesRef } from './layout.ts';
import { toolCandles, toolFiles } from './tool-candles.ts';

const FREQTRADE_COLUMNS: readonly FileColumn[] = [
  { name: 'date', type: 'instant', nullable: false, unit: 'milliseconds' },
  ...['open', 'high', 'low', 'close'].map((name): FileColumn => ({ name, type: 'double', nullable: false })),
  { name: 'volume', type: 'double', nullable: true },
];

const EXTENSIONS = { parquet: 'parquet', arrow: 'feather' } as const;
type FreqtradeFormat = keyof typeof EXTENSIONS;

export function freqtradeFiles(series: readonly SeriesRef[], format: FreqtradeFormat, clip: Span): PlannedFile[] {
  const pathOf = ({ quote, interval }: SeriesRef, symbol: string) =>
    `${symbol}_${quote.toUpperCase()}-${interval === '24h' ? '1d' : interval}.${EXTENSIONS[format]}`;
  return toolFiles(series, clip, pathOf, () => (sink) => openFreqtrade(sink, format));
}

async function openFreqtrade(sink: ByteSink, format: FreqtradeFormat): Promise<RowWriter> {
  const file = (await WRITERS[format]())(sink, FREQTRADE_COLUMNS);
  const types = FREQTRADE_COLUMNS.map(({ type }) => type);
  const rows = createBatch(types, BATCH_ROWS);
  const flush = async () => {
    if (rows.rows > 0) await file.write(rows);
    clearBatch(rows);
  };
  return {
    write: async (batch) => {
      for (const { openTime, open, high, low, close, volume } of toolCandles(batch)) {
        if (rows.rows === BATCH_ROWS) await flush();
        const row = rows.rows++;
        const values = [BigInt(openTime) * 1_000n, open, high, low, close, volume];
        for (const [i, value] of values.entries()) setValue(rows.columns[i]!, row, value);
      }
    },
    finish: async () => {
      await flush();
      await file.finish();
    },
  };
}
