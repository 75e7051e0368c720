/** Values and times that no candle can have, whether it comes from an answer of the upstream or from a file. */
import type { Instant } from '../clock.ts';
import { INTERVAL_MS, type Interval, widthOf } from './interval.ts';

/** True for a value that is negative or not finite. Null is possible: it means that there is no value. */
export function isImpossible(value: number | null): boolean {
  return value !== null && !(value >= 0 && value < Number.POSITIVE_INFINITY);
}

/** Why no candle of this interval can open at `at`; null when one can. `latest` is the newest instant that is not in the future. */
export function impossibleTime(
  at: Instant,
  { interval, latest, name }: { readonly interval: Interval; readonly latest: Instant; readonly name: string },
): string | null {
  if (at < 0) return `${name} lies before 1970`;
  if (at % INTERVAL_MS[interval] !== 0) return `${name} is not on the ${widthOf(interval)} grid`;
  return at > latest ? `${name} lies in the future` : null;
}

type Value = number | null;

/** Why no candle can have these values; null when one can. Six arguments instead of an object, because an import checks millions of rows. */
export function impossibleValues(
  open: Value,
  high: Value,
  low: Value,
  close: Value,
  volume: Value,
  marketCap: Value,
): string | null {
  if (isImpossible(open) || isImpossible(high) || isImpossible(low) || isImpossible(close))
    return 'a price is negative or not finite';
  if (isImpossible(volume)) return 'volume is negative or not finite';
  if (isImpossible(marketCap)) return 'market_cap is negative or not finite';
  if (high !== null && low !== null && high < low) return 'high is below low';
  if (high !== null && ((open !== null && open > high) || (close !== null && close > high)))
    return 'open or close is above high';
  if (low !== null && ((open !== null && open < low) || (close !== null && close < low)))
    return 'open or close is below low';
  return null;
}

/** The reason against all rows of a slot when there are several and their values differ: nobody can know which row is right. */
export const TWO_ROWS_OF_A_SLOT = 'two different rows for one open time';
