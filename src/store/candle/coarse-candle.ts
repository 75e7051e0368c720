/**
 * Makes one coarser candle of the finer candles of its slot: first, highest, lowest, last, sum; the market cap is that of the last
 * (decision 25). Both texts give the same bits: the volumes are added in the order of time.
 */
import { type CandleInterval, INTERVAL_MS } from '../../core/interval.ts';

export const CANDLE_VALUES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

/** As Postgres reads it. In seconds: a day is 24 hours in every time zone. */
export function widthOf(interval: CandleInterval): string {
  return `interval '${INTERVAL_MS[interval] / 1000} seconds'`;
}

/** The sum of ten thousand such volumes is still a double; where a part has more, Postgres could not add them, and the sum is null. */
const MOST_VOLUME = '1e304';

/**
 * The values of one candle, of the finer ones of a group; `ordered` says how to put them in the order of time, where they are not.
 *
 * As a whole or not at all: null where a part is. What stands in for null is what no candle can have, and what wins: NaN is
 * greater than all other numbers. (Counting the parts of each would cost half as much again.)
 */
const valuesOf = (ordered = '') => `
      (array_agg(open${ordered}))[1] as open,
      nullif(max(coalesce(high, 'NaN')), 'NaN') as high, nullif(min(coalesce(low, '-Infinity')), '-Infinity') as low,
      (array_agg(close${ordered}))[count(*)] as close,
      case when max(coalesce(volume, 'NaN')) <= ${MOST_VOLUME} then sum(least(volume, ${MOST_VOLUME})${ordered}) end as volume,
      (array_agg(market_cap${ordered}))[count(*)] as market_cap`;

/**
 * A select of `CANDLE_VALUES` for the slot that opens at `slot` (an expression), of the candles of the series `id`; no row where there is
 * none of them. Slot by slot: it ends with the last one that is wanted.
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
      -- Or the order would be forgotten.
      offset 0) finer
    having count(*) > 0`;
}

/** A select of `open_time` and `CANDLE_VALUES` for each `slot` (an expression) of the rows of `from`: for many slots at once. */
export function candlesBySlot(slot: string, from: string): string {
  return `
    select ${slot} as open_time, ${valuesOf(' order by open_time')}, count(*) as slots
    from ${from} group by 1`;
}
