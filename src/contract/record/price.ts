/**
 * Parses the rows of a price series (`/tickers/{id}/historical`) to candles whose open, high, low and close are the price. So the same code can
 * check, store and prove the rows of both kinds of series.
 */
import { parseTime } from '../time.ts';
import { isNumber, type OhlcvRead, type OhlcvRowRead, orNull } from './ohlcv.ts';
import { describeValue } from './records.ts';

/** Parses a decoded body row by row, like `readOhlcvRows`: a bad row does not affect the others; missing, null and "" numbers become null. */
export function readPriceRows(body: unknown): OhlcvRead {
  if (!Array.isArray(body)) return { ok: false, problem: `body: expected array of prices, got ${describeValue(body)}` };
  return { ok: true, rows: body.map(readRow) };
}

const NUMBERS = ['price', 'volume_24h', 'market_cap'] as const;
type WireRow = Partial<Record<'timestamp' | (typeof NUMBERS)[number], unknown>>;

function readRow(row: unknown, index: number): OhlcvRowRead {
  if (typeof row !== 'object' || row === null || Array.isArray(row)) {
    return { ok: false, problem: `[${index}]: expected object, got ${describeValue(row)}`, openTime: null, row };
  }
  const { timestamp, price, volume_24h: volume, market_cap: marketCap } = row as WireRow;
  const at = typeof timestamp === 'string' ? parseTime(timestamp) : Number.NaN;
  if (Number.isNaN(at)) {
    const problem = `[${index}].timestamp: expected RFC 3339 time, got ${describeValue(timestamp)}`;
    return { ok: false, problem, openTime: null, row };
  }
  if (!isNumber(price) || !isNumber(volume) || !isNumber(marketCap)) {
    const field = NUMBERS.find((name) => !isNumber((row as WireRow)[name]))!;
    const problem = `[${index}].${field}: expected number, got ${describeValue((row as WireRow)[field])}`;
    return { ok: false, problem, openTime: at, row };
  }
  const value = orNull(price);
  return {
    ok: true,
    openTime: at,
    closeTime: null,
    ...{ open: value, high: value, low: value, close: value },
    ...{ volume: orNull(volume), marketCap: orNull(marketCap) },
    coinId: null,
    row,
  };
}

/** A row without the field is not a price. In a row with an unknown price, it is null. */
export function hasPrice(row: unknown): boolean {
  return typeof row === 'object' && row !== null && 'price' in row;
}
