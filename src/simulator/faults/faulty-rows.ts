/** Spoils the rows of an OHLCV response in the way of one fault. */
import type { Instant } from '../../clock.ts';
import { formatTime, parseTime } from '../../contract/time.ts';
import { type CandleInterval, INTERVAL_MS, isCandleInterval, settleMs } from '../../core/interval.ts';
import { below, mix, unit } from '../hash.ts';
import type { FaultName } from './fault-spec.ts';

/** A row as on the wire; `unknown` because a spoilt row may hold anything. */
export type WireRow = {
  readonly time_open: string;
  readonly time_close: string;
  readonly open: unknown;
  readonly high: unknown;
  readonly low: unknown;
  readonly close: unknown;
  readonly volume: unknown;
  readonly market_cap: unknown;
};

type Circumstances = { readonly now: Instant; readonly roll: number; readonly url: string };

/** The spoilt rows, or null when this fault cannot show in these rows. */
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

const VALUES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

function mapValues(row: WireRow, change: (value: unknown) => unknown): WireRow {
  const values = VALUES.map((name) => [name, change(row[name])]);
  return { ...row, ...Object.fromEntries(values) };
}

/** The candle of one row with the values of another. */
export function withValuesOf({ time_open, time_close }: WireRow, other: WireRow): WireRow {
  return { ...other, time_open, time_close };
}

/** Possible, but not the true values. */
function doctored(row: WireRow, roll: number): WireRow {
  const [high, low] = [Number(row.high), Number(row.low)];
  const volume = typeof row.volume === 'number' ? row.volume + 1 + below(1_000, mix(roll, 3)) : row.volume;
  return { ...row, close: low + (high - low) * unit(mix(roll, 4)), volume };
}

function shuffled(rows: readonly WireRow[], roll: number): WireRow[] {
  const out = [...rows];
  for (let i = out.length - 1; i > 0; i--) {
    const j = below(i + 1, mix(roll, 200 + i));
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  // A shuffle may leave everything in place; reversed, the rows are unsorted for certain.
  return out.every((row, i) => row === rows[i]) ? out.reverse() : out;
}

/** One to three neighbouring rows become impossible, each in its own way; a row of the future is added. */
function spoilSome(rows: readonly WireRow[], { now, roll, url }: Circumstances, first: number): WireRow[] {
  const out: WireRow[] = [...rows];
  const count = 1 + below(3, mix(roll, 5));
  for (let k = 0; k < count && first + k < rows.length; k++) {
    const row = rows[first + k]!;
    const [high, low] = [Number(row.high), Number(row.low)];
    const wrongs: Partial<Record<keyof WireRow, unknown>>[] = [
      { high: low, low: high + 1 },
      { low: -1 - low },
      { time_open: formatTime(parseTime(row.time_open) + 61_000) },
      { open: String(row.open) },
      { volume: -1 },
    ];
    const wrong = below(wrongs.length + 1, mix(roll, 300 + k));
    if (wrong < wrongs.length) out[first + k] = { ...row, ...wrongs[wrong] } as WireRow;
    else out.push(ofTheFuture(row, now, url));
  }
  return out;
}

function ofTheFuture(row: WireRow, now: Instant, url: string): WireRow {
  const width = INTERVAL_MS[intervalOf(url)];
  const at = (Math.floor(now / width) + 2) * width;
  return { ...row, time_open: formatTime(at), time_close: formatTime(at + width - 1_000) };
}

/** Changes only candles that have not settled: a client that waits for that never keeps these values. */
function revised(rows: readonly WireRow[], { now, roll, url }: Circumstances): WireRow[] | null {
  const interval = intervalOf(url);
  const settled = now - settleMs(interval) - INTERVAL_MS[interval];
  const fresh = rows.filter((row) => parseTime(row.time_open) > settled);
  if (fresh.length === 0) return null;
  return rows.map((row, i) => (parseTime(row.time_open) > settled ? doctored(row, mix(roll, 400 + i)) : row));
}

function intervalOf(url: string): CandleInterval {
  const text = new URL(url).searchParams.get('interval') ?? '';
  return isCandleInterval(text) ? text : '24h';
}
