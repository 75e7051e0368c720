/** The problems that a recount finds in files. */
import type { Instant } from '../../clock.ts';

export type FileFinding = {
  /** Null: the problem is in the manifest, or in a series. */
  readonly path: string | null;
  /** `btc-bitcoin usd 24h`; null: the problem is not in one series. */
  readonly series: string | null;
  /** `2024-01`; null: the problem is not in one month. */
  readonly month: string | null;
  /** A sentence without a full stop. Its subject is the file, or the series. */
  readonly problem: string;
  /** The first slots that differ, in order of time, if the warehouse can name them. */
  readonly slots: readonly Instant[];
};

export function fileFinding(
  path: string | null,
  problem: string,
  { series = null, month = null, slots = [] }: Partial<Pick<FileFinding, 'series' | 'month' | 'slots'>> = {},
): FileFinding {
  return { path, series, month, problem, slots };
}
