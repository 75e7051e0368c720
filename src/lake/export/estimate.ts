/** What an export will take, told before it begins: measured on recorded candles (`test/bench/export.bench.ts`). */
import type { Format } from '../format/format.ts';
import type { Layout } from '../layout/layout.ts';

type Measured = { readonly bytesEach: number; readonly rowsPerSecond: number };

const BY_FORMAT: Readonly<Record<Format, Measured>> = {
  parquet: { bytesEach: 34, rowsPerSecond: 150_000 },
  csv: { bytesEach: 130, rowsPerSecond: 150_000 },
  ndjson: { bytesEach: 220, rowsPerSecond: 120_000 },
  arrow: { bytesEach: 80, rowsPerSecond: 200_000 },
};
const BY_LAYOUT: Readonly<Partial<Record<Layout, Measured>>> = {
  lean: { bytesEach: 55, rowsPerSecond: 100_000 },
  // A line for each minute: as of hours.
  jesse: { bytesEach: 4_000, rowsPerSecond: 20_000 },
};

export type Estimate = { readonly bytes: number; readonly ms: number };

export function estimate(rows: number, format: Format, layout: Layout): Estimate {
  const { bytesEach, rowsPerSecond } = BY_LAYOUT[layout] ?? BY_FORMAT[format];
  return { bytes: rows * bytesEach, ms: (rows / rowsPerSecond) * 1_000 };
}
