/** Reads the recorded files into series of candles of the real market. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Candle } from '../../core/candle.ts';
import type { CandleInterval } from '../../core/interval.ts';

/** All in usd, ascending. */
export type RecordedSeries = {
  readonly coinId: string;
  readonly interval: CandleInterval;
  readonly candles: readonly Candle[];
};

// The path works from src/ and from dist/: the data are not compiled, so they stay in src/.
const DATA = new URL('../../../src/simulator/recorded/recorded-data/', import.meta.url);

/** Takes about 50 ms. Throws when the data files are missing. */
export function readRecordedSeries(): RecordedSeries[] {
  const daily = readLines('daily/bitstamp_BTC_ETH_LTC_USD_d.csv.gz');
  return [
    { coinId: 'btc-bitcoin', interval: '1h', candles: readHours(readLines('hourly/Bitstamp_BTCUSD_1h.csv.gz')) },
    { coinId: 'btc-bitcoin', interval: '24h', candles: readDays(daily, 'BTC') },
    { coinId: 'eth-ethereum', interval: '24h', candles: readDays(daily, 'ETH') },
    { coinId: 'ltc-litecoin', interval: '24h', candles: readDays(daily, 'LTC') },
  ];
}

function readLines(path: string): string[][] {
  const text = gunzipSync(readFileSync(new URL(path, DATA))).toString('utf8');
  return text
    .trimEnd()
    .split(/\r?\n/)
    .map((line) => line.split(','));
}

/** `unix,date,symbol,open,high,low,close,volume,Volume USD`, newest first. In the older rows the two volumes are swapped. */
function readHours([, ...rows]: string[][]): Candle[] {
  return rows.reverse().map(([unix, , , open, high, low, close, volume, volumeUsd]) => ({
    openTime: Number(unix) * 1_000,
    open: Number(open),
    high: Number(high),
    low: Number(low),
    close: Number(close),
    // A bitcoin always cost more than a dollar, so the larger number is the dollars.
    volume: Math.round(Math.max(Number(volume), Number(volumeUsd))),
    marketCap: null,
  }));
}

/** One wide table, oldest first: date, then open, high, low, close and volume (in coins) of each coin; empty before the coin began. */
function readDays([header, ...rows]: string[][], symbol: string): Candle[] {
  const at = header!.indexOf(`${symbol}:open`);
  const out: Candle[] = [];
  for (const row of rows) {
    if (!row[at]) continue;
    const number = (column: number) => Number(row[at + column]);
    const close = number(3);
    const openTime = Date.parse(`${row[0]}T00:00:00Z`);
    const volume = Math.round(number(4) * close);
    out.push({ openTime, open: number(0), high: number(1), low: number(2), close, volume, marketCap: null });
  }
  return out;
}
