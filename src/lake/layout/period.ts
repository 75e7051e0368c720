/**
 * The stretches of time into which files of series and of histories are cut. They equal the partitions, so retention removes the rows of whole
 * files.
 */
import type { Instant } from '../../clock.ts';
import { periodOfMonths } from '../../core/calendar.ts';
import { HOUR, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';

type Months = 1 | 3 | 12;

export type Period = Span & {
  readonly year: number;
  /** The name of the file in the folder of its year: `part`, `part-q1` or `part-01`. */
  readonly name: string;
};

/** A year for wide slots, a quarter from an hour on, a month below. Partitions of candles use the same (`store/upkeep/partition.ts`). */
export function monthsEach(interval: Interval): Months {
  const width = INTERVAL_MS[interval];
  if (width < HOUR) return 1;
  return width < 6 * HOUR ? 3 : 12;
}

/** The periods from that of `first` to that of `last`, clipped to `clip`; none when nothing is left. */
export function* periodsOf(months: Months, first: Instant, last: Instant, clip: Span): Generator<Period> {
  for (let at = Math.max(first, clip.from); at <= last && at < clip.to; ) {
    const { from, to, ...rest } = periodAt(months, at);
    yield { ...rest, from: Math.max(from, clip.from), to: Math.min(to, clip.to) };
    at = to;
  }
}

function periodAt(months: Months, at: Instant): Period {
  const { year, month, from, to } = periodOfMonths(at, months);
  const name = { 12: 'part', 3: `part-q${month / 3 + 1}`, 1: `part-${String(month + 1).padStart(2, '0')}` }[months];
  return { year, name, from, to };
}
