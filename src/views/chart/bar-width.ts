/** The widths of the bars of a chart: those of stored series, and those that consist of whole candles, including weeks and months. */
import type { Instant } from '../../clock.ts';
import { A_MONDAY, monthOf, startOfMonth, WEEK } from '../../core/calendar.ts';
import {
  type CandleInterval,
  DAY,
  HOUR,
  INTERVAL_MS,
  INTERVALS,
  MINUTE,
  type PriceInterval,
} from '../../core/interval.ts';

/** The width of a bar of candles. Either `ms` or `months` is 0. */
export type BarWidth = {
  /** As in the URL: `24h`, `90m`, `1w`, `3mo`. */
  readonly name: string;
  readonly ms: number;
  readonly months: number;
  /** A slot of the grid begins here, and every `ms` before and after. */
  readonly anchor: Instant;
  /** The widest interval of which a bar has a whole number of candles, as in `market.base_of`. */
  readonly base: CandleInterval;
};

/** Offered beside the intervals of the upstream, if finer candles are stored. */
export const MADE_WIDTHS = ['2h', '4h', '2d', '1w', '1mo', '3mo'] as const;

const UNIT_MS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY, w: WEEK };
const MOST_MONTHS = 120;
const MOST_MS = 366 * DAY;

/** Null: the text is no width of whole candles, or is longer than a year (in months: ten years). */
export function parseBarWidth(text: string): BarWidth | null {
  const [, digits, unit] = /^([1-9]\d{0,3})(mo|[mhdw])$/.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return null;
  const count = Number(digits);
  if (unit === 'mo') return count > MOST_MONTHS ? null : { name: text, ms: 0, months: count, anchor: 0, base: '24h' };
  const ms = count * UNIT_MS[unit]!;
  const base = INTERVALS.findLast((interval) => ms % INTERVAL_MS[interval] === 0);
  if (base === undefined || ms > MOST_MS) return null;
  const own = INTERVALS.find((interval) => INTERVAL_MS[interval] === ms);
  return { name: own ?? text, ms, months: 0, anchor: ms % WEEK === 0 ? A_MONDAY : 0, base };
}

/** The grid of a price series. It follows the stored slots, so weeks do not begin on Mondays. */
export function widthOfPrices(interval: PriceInterval): Omit<BarWidth, 'base'> {
  return { name: interval, ms: INTERVAL_MS[interval], months: 0, anchor: 0 };
}

type Grid = Pick<BarWidth, 'ms' | 'months' | 'anchor'>;

/** The start of the slot that holds an instant, as in `market.slot_of`. */
export function slotOf({ ms, months, anchor }: Grid, at: Instant): Instant {
  if (months === 0) return anchor + Math.floor((at - anchor) / ms) * ms;
  const month = monthOf(at);
  return startOfMonth(month - (month % months));
}

/** The start of the slot that is `count` slots later, or earlier when it is negative. `slot`: the start of a slot. */
export function slotAfter({ ms, months }: Grid, slot: Instant, count = 1): Instant {
  return months === 0 ? slot + count * ms : startOfMonth(monthOf(slot) + count * months);
}

/** The number of slots that begin in the span, whose ends are starts of slots. */
export function countSlots({ ms, months }: Grid, from: Instant, to: Instant): number {
  return months === 0 ? (to - from) / ms : (monthOf(to) - monthOf(from)) / months;
}

/** The text of the interval for Postgres. */
export function asSqlInterval({ ms, months }: Grid): string {
  return months > 0 ? `${months} months` : `${ms / 1000} seconds`;
}
