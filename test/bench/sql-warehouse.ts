/** A warehouse with many candles for the benchmark of SQL: a tenth daily, three tenths hourly, the rest of five minutes. */
import { type CandleInterval, DAY, INTERVAL_MS } from '../../src/core/interval.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { ensurePartitions, ensurePartitionsOf, TICKER_HISTORY } from '../../src/store/upkeep/partition.ts';
import { makeSeriesOf } from './prepared.ts';

export const TO = Date.UTC(2025, 0, 1);

const PARTS: readonly {
  readonly interval: CandleInterval;
  readonly share: number;
  readonly days: number;
  readonly least: number;
}[] = [
  // One of the questions needs the returns of a hundred coins.
  { interval: '24h', share: 0.1, days: 1_826, least: 110 },
  { interval: '1h', share: 0.3, days: 730, least: 2 },
  { interval: '5m', share: 0.6, days: 365, least: 1 },
];

/** `24h-00001`: coins of one interval each. */
export const coinOf = (interval: CandleInterval, n = 1) => `${interval}-${String(n).padStart(5, '0')}`;

/** Resolves to the number of series of each interval. Each has all candles of its span, and all are final. */
export async function fillWarehouse(sql: Sql, candles: number): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const { interval, share, days, least } of PARTS) {
    const each = (days * DAY) / INTERVAL_MS[interval];
    const count = Math.max(least, Math.round((candles * share) / each));
    const span = { from: TO - days * DAY, to: TO };
    await ensurePartitions(sql, interval, span);
    const ids = await makeSeriesOf(
      sql,
      Array.from({ length: count }, (_, i) => coinOf(interval, i + 1)),
      interval,
      span,
    );
    const literal = sql.unsafe(`'${interval}'`);
    // Series by series, as backfills leave them.
    for (const id of ids) {
      await sql`
        insert into market.candle (series_id, interval, open_time, open, high, low, close, volume, market_cap)
        select ${id}::int, ${literal}, t, open, open * 1.0371, open / 1.0293, open * 1.0113, floor(open * 1e6), floor(open * 1e9)
        from generate_series(${span.from}::timestamptz, ${span.to - 1}::timestamptz, ${INTERVAL_MS[interval] / 1000}::int * interval '1 second') t
        cross join lateral (select (1 + (extract(epoch from t)::bigint / 60 + ${id}::bigint * 7919) % 9973) / 7.3::float8 as open) o`;
    }
    await sql`
      update market.series set covered = ${[span]}, covered_candles = ${each}, candles = ${each} where id = any(${ids}::int[])`;
    counts[interval] = count;
  }
  await fillTickers(sql);
  return counts;
}

/** Three snapshots a day for a month, of all coins with daily candles. */
async function fillTickers(sql: Sql): Promise<void> {
  const span = { from: TO - 31 * DAY, to: TO };
  await ensurePartitionsOf(sql, TICKER_HISTORY, span);
  await sql`
    insert into market.ticker_history (coin_id, at, updated_at, price, market_cap, rank)
    select c.id, t, t, 1 + c.rank, 1e12 / c.rank, c.rank
    from generate_series(${span.from}::timestamptz, ${span.to - 1}::timestamptz, interval '8 hours') t
    cross join market.coin c where c.id like '24h-%'`;
  await sql`
    insert into market.rate (currency, at, updated_at, price)
    select 'EUR', t, t, 1.1 from generate_series(${TO - 400 * DAY}::timestamptz, ${TO}::timestamptz, interval '12 hours') t`;
}
