/**
 * Files for Jesse: `24h/BTC-USD-1m.csv`, a line for each minute, in the order of columns that `research.store_candles` takes.
 *
 * Confirmed in Jesse's sources (`jesse/research/candles.py`): Jesse keeps candles in a database of its own, and accepts them only as
 * `research.store_candles(array, exchange, symbol)`, where each row is timestamp (milliseconds), open, close, high, low, volume, and rows are a
 * minute apart. It builds all wider candles from these by counting rows, so none may be missing. It fills what an exchange left out with a flat
 * candle (`jesse/modes/import_candles_mode`).
 *
 * So a candle becomes its minutes. The first minute has its open, high, low and volume, and all others stay at its close. Where a slot has no
 * candle, the price stays. Jesse's candles of this interval, and wider ones, then equal the stored ones. Narrower ones carry no information.
 */
import { INTERVAL_MS, MINUTE } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { PlannedFile, SeriesRef } from './layout.ts';
import { lineWriter, plainNumber, type ToolCandle, toolFiles } from './tool-candles.ts';

const HEADER = 'timestamp,open,close,high,low,volume';

export function jesseFiles(series: readonly SeriesRef[], clip: Span): PlannedFile[] {
  return toolFiles(
    series,
    clip,
    ({ interval, quote }, symbol) => `${interval}/${symbol}-${quote.toUpperCase()}-1m.csv`,
    ({ interval }) =>
      async (sink) =>
        lineWriter(sink, HEADER, minutesOf(INTERVAL_MS[interval])),
  );
}

/** The minutes from the end of the candle before to the end of this one. */
function minutesOf(widthMs: number): (candle: ToolCandle) => Generator<string> {
  let next: number | null = null;
  let price = '';
  return function* ({ openTime, open, high, low, close, volume }) {
    for (let at = next ?? openTime; at < openTime; at += MINUTE) yield flat(at, price);
    price = plainNumber(close);
    const [first, highest, lowest] = [open, high, low].map(plainNumber);
    yield `${openTime},${first},${price},${highest},${lowest},${plainNumber(volume ?? 0)}`;
    next = openTime + widthMs;
    for (let at = openTime + MINUTE; at < next; at += MINUTE) yield flat(at, price);
  };
}

function flat(at: number, price: string): string {
  return `${at},${price},${price},${price},${price},0`;
}
