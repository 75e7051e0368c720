/** Estimates the size and the duration of an export before it begins, from measurements on recorded candles (`test/bench/export.bench.ts`). */
import type { Format } from '../format/format.ts';
import type { Layout } from '../layout/layout.ts';
import type { Plan } from './plan-files.ts';

type Measured = { readonly bytesEach: number; readonly rowsPerSecond: number };

const BY_FORMAT: Readonly<Record<Format, Measured>> = {
  parquet: { bytesEach: 34, rowsPerSecond: 150_000 },
  csv: { bytesEach: 130, rowsPerSecond: 150_000 },
  ndjson: { bytesEach: 220, rowsPerSecond: 120_000 },
  arrow: { bytesEach: 80, rowsPerSecond: 200_000 },
};
const LEAN: Measured = { bytesEach: 55, rowsPerSecond: 100_000 };
/** One line for each minute of a candle. */
const JESSE = { bytesEach: 90, minutesPerSecond: 1_200_000 };

export type Estimate = { readonly bytes: number; readonly ms: number };

export function estimate({ rows, minutes }: Pick<Plan, 'rows' | 'minutes'>, format: Format, layout: Layout): Estimate {
  if (layout === 'jesse') return { bytes: minutes * JESSE.bytesEach, ms: (minutes / JESSE.minutesPerSecond) * 1_000 };
  const { bytesEach, rowsPerSecond } = layout === 'lean' ? LEAN : BY_FORMAT[format];
  return { bytes: rows * bytesEach, ms: (rows / rowsPerSecond) * 1_000 };
}
