/** The data to export. */

import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Dataset } from '../dataset/dataset.ts';
import type { Format } from '../format/format.ts';
import type { Layout } from '../layout/layout.ts';

export type Selection = {
  readonly datasets: readonly Dataset[];
  /** Null: all. */
  readonly coinIds: readonly string[] | null;
  /** The intervals of candles and prices; null: all. */
  readonly intervals: readonly Interval[] | null;
  /** Selects rows by their time; a bound without a limit is infinite. Tables that are written as a whole ignore it. */
  readonly span: Span;
  /** Leaves out rows that may still change. */
  readonly finalOnly: boolean;
  readonly format: Format;
  readonly layout: Layout;
};
