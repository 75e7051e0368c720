/** SQL that reads the stored rows of a series as candles. */
import { type Interval, isInterval, isPriceInterval } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

/** The columns of `market.price` as those of a candle whose four prices are equal. */
export const PRICE_AS_CANDLE =
  'time as open_time, price as open, price as high, price as low, price as close, volume_24h as volume, market_cap';

/**
 * SQL for the rows of a series of `interval`, to use after `from` or `join lateral`; `id` is an expression. It returns the same as `ops.stored`, but
 * the interval is known here. So it reads one table by its key, which Postgres plans faster than the function. The interval is part of the
 * statement's text, so that no plan opens the partitions of other intervals.
 */
export function storedRows(sql: SqlOrTransaction, id: ReturnType<SqlOrTransaction>, interval: Interval) {
  // It becomes a part of the statement, and one read from a file may be anything.
  if (!isInterval(interval)) throw new RangeError(`not an interval: ${interval}`);
  return isPriceInterval(interval)
    ? sql`(select ${sql.unsafe(PRICE_AS_CANDLE)} from market.price where series_id = ${id})`
    : sql`(select * from market.candle where series_id = ${id} and interval = ${sql.unsafe(`'${interval}'`)})`;
}
