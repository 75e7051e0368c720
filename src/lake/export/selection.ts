/** What is to be exported. */

import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Dataset } from '../dataset/dataset.ts';
import type { Format } from '../format/format.ts';
import type { Layout } from '../layout/layout.ts';

export type Selection = {
  readonly datasets: readonly Dataset[];
  /** Null: all. */
  readonly coinIds: readonly string[] | null;
  /** Of candles and prices; null: all. */
  readonly intervals: readonly Interval[] | null;
  /** By the time of the rows; infinite where it is not limited. Tables that are written as a whole do not care. */
  readonly span: Span;
  /** Leaves out what may still change. */
  readonly finalOnly: boolean;
  readonly format: Format;
  readonly layout: Layout;
};
