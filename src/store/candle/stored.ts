/** The stored rows of a series, as candles, in statements. */
import { type Interval, isPriceInterval } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

/**
 * What stands for the rows of a series of `interval` after `from` or `join lateral`; `id` is an expression. Of candles it is a look into their
 * table by its key, which Postgres plans faster than the function.
 */
export function storedRows(sql: SqlOrTransaction, id: ReturnType<SqlOrTransaction>, interval: Interval) {
  return isPriceInterval(interval)
    ? sql`ops.stored(${id}, ${interval}::market.candle_interval)`
    : sql`(select * from market.candle where series_id = ${id} and interval = ${interval}::market.candle_interval)`;
}
