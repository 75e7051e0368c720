/**
 * SQL that makes one coarser candle from the finer candles of its slot: first open, highest high, lowest low, last close, sum of the
 * volumes, and the last market cap (decision 25). Both statements return the same bits, because they add the volumes in order of time.
 */
import { type CandleInterval, INTERVAL_MS } from '../../core/interval.ts';

export const CANDLE_VALUES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

/** The width as a Postgres interval. It is in seconds, so that a day is 24 hours in every time zone. */
export function widthOf(interval: CandleInterval): string {
  return `interval '${INTERVAL_MS[interval] / 1000} seconds'`;
}

/** The sum of ten thousand such volumes still fits a double. If a part is larger, the sum could overflow in Postgres, so it is null. */
const MOST_VOLUME = '1e304';

/**
 * SQL for the values of one candle, from the finer ones of a group. `ordered` is the `order by` for rows that are not in order of time.
 *
 * A value is null if a part of it is null. For this, a null is replaced by a value that no candle can have and that wins the
 * comparison: NaN is greater than all other numbers. (Counting the parts of each value would cost half as much again.)
 */
const valuesOf = (ordered = '') => `
      (array_agg(open${ordered}))[1] as open,
      nullif(max(coalesce(high, 'NaN')), 'NaN') as high, nullif(min(coalesce(low, '-Infinity')), '-Infinity') as low,
      (array_agg(close${ordered}))[count(*)] as close,
      case when max(coalesce(volume, 'NaN')) <= ${MOST_VOLUME} then sum(least(volume, ${MOST_VOLUME})${ordered}) end as volume,
      (array_agg(market_cap${ordered}))[count(*)] as market_cap`;

/**
 * SQL that selects `CANDLE_VALUES` for the slot that opens at `slot` (an expression), from the candles of the series `id`. It returns no row
 * if the slot has none of them. It handles one slot, so a query with a limit stops after the last slot that it needs.
 */
export function coarseCandle(
  fine: CandleInterval,
  coarse: CandleInterval,
  { id, slot, where = 'true' }: { readonly id: string; readonly slot: string; readonly where?: string },
): string {
  return `
    select ${valuesOf()}
    from (
      select ${CANDLE_VALUES.join(', ')} from market.candle
      where series_id = ${id} and interval = '${fine}'
        and open_time >= ${slot} and open_time < ${slot} + ${widthOf(coarse)} and ${where}
      order by open_time
      -- Without this, Postgres would not keep the order.
      offset 0) finer
    having count(*) > 0`;
}

/** SQL that selects `open_time`, `CANDLE_VALUES` and the row count for each `slot` (an expression) of the rows of `from`: many slots at once. */
export function candlesBySlot(slot: string, from: string): string {
  return `
    select ${slot} as open_time, ${valuesOf(' order by open_time')}, count(*) as slots
    from ${from} group by 1`;
}
