/** Candles for backtesting tools: the code that all of their layouts share. */
import type { Span } from '../../core/span.ts';
import type { Batch } from '../../store/copy/columns.ts';
import { CANDLES, columnsIn } from '../dataset/series-datasets.ts';
import type { ByteSink } from '../destination/destination.ts';
import type { RowWriter } from '../format/format.ts';
import { ExportRefused } from '../refused.ts';
import type { PlannedFile, SeriesRef } from './layout.ts';

/** A candle whose prices are all known. */
export type ToolCandle = {
  /** Milliseconds since 1970. */
  readonly openTime: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  /**
   * In coins, because these tools count so. The upstream counts in the quote currency, so it is divided by the close. Null: unknown, or too large.
   */
  readonly volume: number | null;
};

const SOURCE = columnsIn(CANDLES.columns, true);
const at = Object.fromEntries(SOURCE.map(({ name }, i) => [name, i])) as Readonly<Record<string, number>>;

/** The candles of a batch that have all prices: these tools cannot store others. */
export function* toolCandles({ rows, columns }: Batch): Generator<ToolCandle> {
  const doubles = (name: string) => {
    const column = columns[at[name]!]!;
    if (column.type !== 'double') throw new Error(`${name} is no column of doubles`);
    return column;
  };
  const times = columns[at.open_time!]!.values as BigInt64Array;
  const prices = ['open', 'high', 'low', 'close'].map(doubles);
  const [open, high, low, close] = prices.map(({ values }) => values) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const volume = doubles('volume');
  for (let i = 0; i < rows; i++) {
    if (prices.some(({ isNull }) => isNull[i] === 1)) continue;
    const coins = volume.values[i]! / close[i]!;
    const isKnown = volume.isNull[i] === 0 && Number.isFinite(coins);
    yield {
      openTime: Number(times[i]! / 1_000n),
      open: open[i]!,
      high: high[i]!,
      low: low[i]!,
      close: close[i]!,
      volume: isKnown ? coins : null,
    };
  }
}

/** One file for each series, at the path from `pathOf`. @throws ExportRefused when two coins have the same symbol */
export function toolFiles(
  series: readonly SeriesRef[],
  clip: Span,
  pathOf: (series: SeriesRef, symbol: string) => string,
  open: (series: SeriesRef, symbol: string) => (sink: ByteSink) => Promise<RowWriter>,
): PlannedFile[] {
  const coins = new Map<string, string>();
  return series.map((one) => {
    const symbol = one.symbol.replaceAll(/[^A-Za-z0-9]/g, '_').toUpperCase();
    const other = coins.get(symbol) ?? one.coinId;
    if (other !== one.coinId)
      throw new ExportRefused(
        `${other} and ${one.coinId} both have the symbol ${symbol}, and this layout names files by symbol; choose coins with --coins`,
      );
    coins.set(symbol, one.coinId);
    return {
      path: pathOf(one, symbol),
      dataset: CANDLES,
      series: [one],
      place: { interval: one.interval, quote: one.quote },
      span: clip,
      source: SOURCE,
      columns: null,
      open: open(one, symbol),
    };
  });
}

const ROWS_AT_ONCE = 4_096;

/** Writes one line or several for each candle, below the header. */
export function lineWriter(
  sink: ByteSink,
  header: string,
  linesOf: (candle: ToolCandle) => Iterable<string>,
): RowWriter {
  let lines: string[] = header === '' ? [] : [header];
  const flush = async () => {
    if (lines.length > 0) await sink(Buffer.from(`${lines.join('\n')}\n`));
    lines = [];
  };
  return {
    write: async (batch) => {
      for (const candle of toolCandles(batch)) {
        for (const line of linesOf(candle)) {
          lines.push(line);
          if (lines.length >= ROWS_AT_ONCE) await flush();
        }
      }
      await flush();
    },
    finish: flush,
  };
}

/** Writes a number without an exponent, which not every tool reads: `0.0000001`, and not `1e-7`. */
export function plainNumber(value: number): string {
  const text = String(value);
  const [, sign = '', whole, fraction = '', exponent] = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text) ?? [];
  if (whole === undefined) return text;
  const shift = Number(exponent);
  const digits = whole + fraction;
  if (shift > 0) return sign + digits.padEnd(whole.length + shift, '0');
  return `${sign}0.${'0'.repeat(-shift - whole.length)}${digits}`;
}
