/** Files of recorded candles in the forms of exchanges and other programs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Candle } from '../../../src/core/candle.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import type { FileColumn, Format } from '../../../src/lake/format/format.ts';
import { WRITERS } from '../../../src/lake/format/open-format.ts';
import { readRecordedSeries } from '../../../src/simulator/recorded/recorded-series.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { createBatch, setValue, type Value } from '../../../src/store/copy/columns.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';

/** Hourly candles of bitcoin. */
export const HOURS: readonly Candle[] = readRecordedSeries()
  .find(({ interval, coinId }) => interval === '1h' && coinId === 'btc-bitcoin')!
  .candles.slice(0, 500);

export async function giveCoins(sql: Sql, ...ids: string[]): Promise<void> {
  const coins = ids.map((id, i) => ({
    ...{ id, name: id, symbol: id.split('-')[0]!.toUpperCase(), rank: i + 1 },
    ...{ is_new: false, is_active: true, type: 'coin' },
  }));
  await recordCoins(sql, coins, Date.UTC(2024, 0, 1));
}

export function temporaryFiles() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-import-'));
  return {
    folder,
    /** Writes a file, compressed if the name ends in .gz. Resolves to its path. */
    write: (name: string, text: string): string => {
      const file = path.join(folder, name);
      writeFileSync(file, name.endsWith('.gz') ? gzipSync(text) : text);
      return file;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export const PRICES = ['open', 'high', 'low', 'close', 'volume'] as const;

/** Lines of CSV without a header: the time in the format of `time`, and the prices. */
export function csvLines(candles: readonly Candle[], time: (at: number) => string | number): string[] {
  return candles.map((candle) => [time(candle.openTime), ...PRICES.map((name) => candle[name])].join(','));
}

export const HEADER = 'time,open,high,low,close,volume';

export function csvOf(
  candles: readonly Candle[],
  time: (at: number) => string | number = String,
  header = HEADER,
): string {
  return `${[header, ...csvLines(candles, time)].join('\n')}\n`;
}

export function ndjsonOf(candles: readonly Candle[]): string {
  const rows = candles.map(({ openTime, open, high, low, close, volume }) =>
    JSON.stringify({ timestamp: new Date(openTime).toISOString(), o: open, h: high, l: low, c: close, v: volume }),
  );
  return `${rows.join('\n')}\n`;
}

/** Writes a table in one of our formats, with columns of these names and types. */
export async function writeTable(
  file: string,
  format: Format,
  columns: readonly FileColumn[],
  rows: readonly (readonly Value[])[],
): Promise<string> {
  const batch = createBatch(
    columns.map(({ type }) => type),
    rows.length,
  );
  for (const row of rows) {
    const at = batch.rows++;
    for (const [i, value] of row.entries()) setValue(batch.columns[i]!, at, value);
  }
  const open = await WRITERS[format]();
  await openFolder(path.dirname(file)).put(path.basename(file), async (sink) => {
    const writer = open(sink, columns);
    await writer.write(batch);
    await writer.finish();
  });
  return file;
}
