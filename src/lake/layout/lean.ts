/**
 * Files of LEAN (QuantConnect): `crypto/coinbase/daily/btcusd_trade.zip`, which holds `btcusd.csv`.
 *
 * Confirmed in LEAN's repository: `Data/crypto/readme.md` and the sample files beside it (`Data/crypto/gdax/daily/btcusd_trade.zip`). Each pair has
 * a zip file below the folder of its market and resolution, with one CSV without a header: time as `yyyyMMdd HH:mm` in UTC, open, high, low, close,
 * volume in coins; prices of crypto are not scaled. LEAN reads only its own resolutions: hours and days are supported here. LEAN knows markets by
 * name, and Coinbase is the one for pairs in dollars.
 */
import { Zip, ZipDeflate } from 'fflate';
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { ByteSink } from '../destination/destination.ts';
import type { RowWriter } from '../format/format.ts';
import { ExportRefused } from '../refused.ts';
import type { PlannedFile, SeriesRef } from './layout.ts';
import { lineWriter, plainNumber, type ToolCandle, toolFiles } from './tool-candles.ts';

const RESOLUTIONS: Readonly<Partial<Record<Interval, string>>> = { '1h': 'hour', '24h': 'daily' };
const MARKET = 'coinbase';
/** The earliest time that a zip file can store, so that the same candles have the same bytes. The library reads it as local time. */
const NO_TIME = new Date(1980, 0, 1);

/** @throws ExportRefused for intervals that LEAN does not support */
export function leanFiles(series: readonly SeriesRef[], clip: Span): PlannedFile[] {
  const other = series.find(({ interval }) => RESOLUTIONS[interval] === undefined);
  if (other !== undefined)
    throw new ExportRefused(
      `LEAN supports only hours and days, not ${other.interval}; add --interval ${Object.keys(RESOLUTIONS).join(',')}`,
    );
  const pair = (symbol: string, { quote }: SeriesRef) => `${symbol}${quote}`.toLowerCase();
  return toolFiles(
    series,
    clip,
    (one, symbol) => `crypto/${MARKET}/${RESOLUTIONS[one.interval]}/${pair(symbol, one)}_trade.zip`,
    (one, symbol) => async (sink) => openLean(sink, `${pair(symbol, one)}.csv`),
  );
}

function openLean(sink: ByteSink, name: string): RowWriter {
  const parts: Uint8Array[] = [];
  const zip = new Zip((error, data) => {
    if (error !== null) throw error;
    parts.push(data);
  });
  const file = new ZipDeflate(name, { level: 6 });
  file.mtime = NO_TIME;
  zip.add(file);
  const drain = async () => {
    for (const part of parts.splice(0)) await sink(part);
  };
  const lines = lineWriter(
    async (bytes) => {
      file.push(new Uint8Array(bytes));
      await drain();
    },
    '',
    (candle) => [lineOf(candle)],
  );
  return {
    write: lines.write,
    finish: async () => {
      await lines.finish();
      file.push(new Uint8Array(0), true);
      zip.end();
      await drain();
    },
  };
}

function lineOf({ openTime, open, high, low, close, volume }: ToolCandle): string {
  const iso = new Date(openTime).toISOString();
  const time = `${iso.slice(0, 10).replaceAll('-', '')} ${iso.slice(11, 16)}`;
  return [time, ...[open, high, low, close, volume ?? 0].map(plainNumber)].join(',');
}
