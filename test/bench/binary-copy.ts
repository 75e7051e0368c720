/** Candles and prices as rows of a binary `COPY`: the fastest way into Postgres, and the yardstick of the store path. */
import { once } from 'node:events';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { CandleColumns } from '../../src/core/candle.ts';
import type { Interval } from '../../src/core/interval.ts';

const COPY = `copy market.candle (open_time, open, high, low, close, volume, market_cap, series_id, interval)
  from stdin (format binary)`;
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
/** Postgres counts microseconds from 2000-01-01. */
const EPOCH_MS = Date.UTC(2000, 0, 1);

/** One `COPY` in a transaction of its own. */
export async function copyCandles(
  client: pg.Client,
  series: { readonly id: number; readonly interval: Interval },
  candles: CandleColumns,
): Promise<void> {
  const stream = client.query(copyFrom(COPY));
  // Rejects when the server reports an error.
  const finished = once(stream, 'finish');
  stream.end(encode(series, candles));
  await finished;
}

/** The same for prices, into `table`, which has the columns of market.price. */
export async function copyPrices(
  client: pg.Client,
  table: string,
  { id }: { readonly id: number },
  { openTime, close, volume, marketCap }: CandleColumns,
): Promise<void> {
  const stream = client.query(
    copyFrom(`copy ${table} (time, price, volume_24h, market_cap, series_id) from stdin (format binary)`),
  );
  const finished = once(stream, 'finish');
  stream.end(encodeRows(openTime, [close, volume, marketCap], id, null));
  await finished;
}

function encode({ id, interval }: { readonly id: number; readonly interval: Interval }, c: CandleColumns): Buffer {
  return encodeRows(c.openTime, [c.open, c.high, c.low, c.close, c.volume, c.marketCap], id, interval);
}

/** Time, numbers, number of the series, and the interval if given. */
function encodeRows(
  times: readonly number[],
  numbers: readonly (readonly (number | null)[])[],
  id: number,
  interval: Interval | null,
): Buffer {
  const label = interval === null ? null : Buffer.from(interval);
  const fields = 2 + numbers.length + (label === null ? 0 : 1);
  const bytesEach = 2 + (1 + numbers.length) * 12 + 8 + (label === null ? 0 : 4 + label.length);
  const out = Buffer.allocUnsafe(HEADER.length + times.length * bytesEach + 2);
  let at = HEADER.copy(out);
  const double = (value: number | null) => {
    at = out.writeInt32BE(value === null ? -1 : 8, at);
    if (value !== null) at = out.writeDoubleBE(value, at);
  };
  for (let i = 0; i < times.length; i++) {
    at = out.writeInt16BE(fields, at);
    at = out.writeInt32BE(8, at);
    const microseconds = (times[i]! - EPOCH_MS) * 1000;
    at = out.writeInt32BE(Math.floor(microseconds / 2 ** 32), at);
    at = out.writeUInt32BE(microseconds >>> 0, at);
    for (const column of numbers) double(column[i]!);
    at = out.writeInt32BE(4, at);
    at = out.writeInt32BE(id, at);
    if (label === null) continue;
    at = out.writeInt32BE(label.length, at);
    at += label.copy(out, at);
  }
  return out.subarray(0, out.writeInt16BE(-1, at));
}
