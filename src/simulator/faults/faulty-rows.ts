/** Applies one fault to the rows of a response, candles or prices. */
import type { Instant } from '../../clock.ts';
import { formatTime, parseTime } from '../../contract/time.ts';
import { INTERVAL_MS, type Interval, settleMs } from '../../core/interval.ts';
import { below, mix, unit } from '../hash.ts';
import type { FaultName } from './fault-spec.ts';
import { parseRowRequest } from './row-request.ts';

/** A row as sent over HTTP; `unknown` because a spoilt row may hold any value. */
type CandleRow = {
  readonly time_open: string;
  readonly time_close: string;
  readonly open: unknown;
  readonly high: unknown;
  readonly low: unknown;
  readonly close: unknown;
  readonly volume: unknown;
  readonly market_cap: unknown;
};
type PriceRow = {
  readonly timestamp: string;
  readonly price: unknown;
  readonly volume_24h: unknown;
  readonly market_cap: unknown;
};
export type WireRow = CandleRow | PriceRow;

export function isPriceRow(row: WireRow): row is PriceRow {
  return 'timestamp' in row;
}

export function openTimeOf(row: WireRow): Instant {
  return parseTime(isPriceRow(row) ? row.timestamp : row.time_open);
}

type Circumstances = { readonly now: Instant; readonly roll: number; readonly url: string };

/** The spoilt rows; null when this fault cannot appear in these rows. */
export function spoilRows(fault: FaultName, rows: readonly WireRow[], c: Circumstances): WireRow[] | null {
  const { roll } = c;
  const one = below(rows.length, mix(roll, 1));
  switch (fault) {
    case 'empty':
      return [];
    case 'duplicates':
      return rows.flatMap((row, i) => (i === one || unit(mix(roll, 100 + i)) < 0.1 ? [row, row] : [row]));
    case 'conflict':
      return rows.flatMap((row, i) => (i === one ? [row, doctored(row, mix(roll, 2))] : [row]));
    case 'unsorted':
      return rows.length < 2 ? null : shuffled(rows, roll);
    case 'impossible':
      return spoilSome(rows, c, one);
    case 'revision':
      return revised(rows, c);
    case 'all-null':
      return rows.map((row) => mapValues(row, () => null));
    case 'all-zero':
      return rows.map((row) => mapValues(row, () => 0));
    case 'constant':
      return rows.length < 2 ? null : rows.map((row) => withValuesOf(row, rows[one]!));
    case 'scaled': {
      const scale = unit(mix(roll, 6)) < 0.5 ? (value: number) => value * 1e6 : (value: number) => value / 1_000;
      return rows.map((row) => mapValues(row, (value) => (typeof value === 'number' ? scale(value) : value)));
    }
    case 'thinned':
      return rows.length < 3 ? null : rows.filter((_, i) => i % 2 === 0);
    case 'half':
      return rows.length < 2 ? null : rows.slice(0, Math.ceil(rows.length / 2));
    default:
      return null;
  }
}

const CANDLE_VALUES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;
const PRICE_VALUES = ['price', 'volume_24h', 'market_cap'] as const;

function mapValues(row: WireRow, change: (value: unknown) => unknown): WireRow {
  const names = isPriceRow(row) ? PRICE_VALUES : CANDLE_VALUES;
  return { ...row, ...Object.fromEntries(names.map((name) => [name, change((row as Record<string, unknown>)[name])])) };
}

/** A row with its own slot and the values of another row. */
export function withValuesOf(row: WireRow, other: WireRow): WireRow {
  if (isPriceRow(row)) return { ...other, timestamp: row.timestamp } as WireRow;
  const { time_open, time_close } = row;
  return { ...other, time_open, time_close } as WireRow;
}

/** Possible values, but not the true ones. */
function doctored(row: WireRow, roll: number): WireRow {
  const more = (value: unknown) => (typeof value === 'number' ? value + 1 + below(1_000, mix(roll, 3)) : value);
  if (isPriceRow(row)) {
    const price = Number(row.price) * (0.99 + 0.02 * unit(mix(roll, 4)));
    return { ...row, price, volume_24h: more(row.volume_24h) };
  }
  const [high, low] = [Number(row.high), Number(row.low)];
  return { ...row, close: low + (high - low) * unit(mix(roll, 4)), volume: more(row.volume) };
}

function shuffled(rows: readonly WireRow[], roll: number): WireRow[] {
  const out = [...rows];
  for (let i = out.length - 1; i > 0; i--) {
    const j = below(i + 1, mix(roll, 200 + i));
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  // A shuffle may leave all rows in place; then reversing them makes them unsorted.
  return out.every((row, i) => row === rows[i]) ? out.reverse() : out;
}

/** One to three neighbouring rows become impossible, each in its own way. Instead of changing a row, this may add a row of the future. */
function spoilSome(rows: readonly WireRow[], { now, roll, url }: Circumstances, first: number): WireRow[] {
  const out: WireRow[] = [...rows];
  const count = 1 + below(3, mix(roll, 5));
  for (let k = 0; k < count && first + k < rows.length; k++) {
    const row = rows[first + k]!;
    const wrongs = isPriceRow(row) ? wrongPrices(row) : wrongCandles(row);
    const wrong = below(wrongs.length + 1, mix(roll, 300 + k));
    if (wrong < wrongs.length) out[first + k] = { ...row, ...wrongs[wrong] } as WireRow;
    else out.push(ofTheFuture(row, now, url));
  }
  return out;
}

type Wrong = Readonly<Record<string, unknown>>;

function wrongCandles(row: CandleRow): Wrong[] {
  const [high, low] = [Number(row.high), Number(row.low)];
  return [
    { high: low, low: high + 1 },
    { low: -1 - low },
    { time_open: formatTime(parseTime(row.time_open) + 61_000) },
    { open: String(row.open) },
    { volume: -1 },
  ];
}

function wrongPrices(row: PriceRow): Wrong[] {
  return [
    { price: -1 - Number(row.price) },
    { price: undefined },
    { timestamp: formatTime(parseTime(row.timestamp) + 61_000) },
    { price: String(row.price) },
    { volume_24h: -1 },
    { market_cap: -1 },
  ];
}

function ofTheFuture(row: WireRow, now: Instant, url: string): WireRow {
  const width = INTERVAL_MS[intervalOf(url)];
  const at = (Math.floor(now / width) + 2) * width;
  if (isPriceRow(row)) return { ...row, timestamp: formatTime(at) };
  return { ...row, time_open: formatTime(at), time_close: formatTime(at + width - 1_000) };
}

/** Changes only rows that have not settled: a client that stores only settled rows never keeps these values. */
function revised(rows: readonly WireRow[], { now, roll, url }: Circumstances): WireRow[] | null {
  const interval = intervalOf(url);
  const settled = now - settleMs(interval) - INTERVAL_MS[interval];
  const fresh = rows.filter((row) => openTimeOf(row) > settled);
  if (fresh.length === 0) return null;
  return rows.map((row, i) => (openTimeOf(row) > settled ? doctored(row, mix(roll, 400 + i)) : row));
}

function intervalOf(url: string): Interval {
  return parseRowRequest({ url })?.interval ?? '24h';
}
