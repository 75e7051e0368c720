/** What a recount finds wrong with files. */
import type { Instant } from '../../clock.ts';

export type FileFinding = {
  /** Null: it is about the manifest, or about a series. */
  readonly path: string | null;
  /** `btc-bitcoin usd 24h`; null: not about one. */
  readonly series: string | null;
  /** `2024-01`; null: not about one. */
  readonly month: string | null;
  /** A sentence without a full stop, of which the file, or the series, is the subject. */
  readonly problem: string;
  /** The slots that differ, where the warehouse can tell; by their times, the first of them. */
  readonly slots: readonly Instant[];
};

export function fileFinding(
  path: string | null,
  problem: string,
  { series = null, month = null, slots = [] }: Partial<Pick<FileFinding, 'series' | 'month' | 'slots'>> = {},
): FileFinding {
  return { path, series, month, problem, slots };
}
