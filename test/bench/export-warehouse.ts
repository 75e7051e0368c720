/** Candles for the benchmark of exports: the recorded hours for as many coins as needed, each with its own noise in all digits. */
import { HOUR } from '../../src/core/interval.ts';
import { readRecordedSeries } from '../../src/simulator/recorded/recorded-series.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { makeSeriesOf } from './prepared.ts';

/** Resolves to the ids of the coins and the number of candles of each. Market caps were not recorded: they are null, unless `withCaps`. */
export async function fillRecorded(
  sql: Sql,
  rows: number,
  {
    withCaps = false,
    prefix = 'coin',
    isPossible = false,
  }: {
    readonly withCaps?: boolean;
    readonly prefix?: string;
    /** High and low stay the highest and the lowest despite the noise. */
    readonly isPossible?: boolean;
  } = {},
): Promise<{ readonly coinIds: readonly string[]; readonly each: number }> {
  const { candles } = readRecordedSeries().find(({ interval }) => interval === '1h')!;
  const span = { from: candles[0]!.openTime, to: candles.at(-1)!.openTime + HOUR };
  await ensurePartitions(sql, '1h', span);
  const coinIds = Array.from(
    { length: Math.max(1, Math.round(rows / candles.length)) },
    (_, i) => `${prefix}-${String(i).padStart(5, '0')}`,
  );
  const ids = await makeSeriesOf(sql, coinIds, '1h', span);
  const column = (name: 'open' | 'high' | 'low' | 'close' | 'volume') => candles.map((candle) => candle[name]!);
  for (const id of ids) {
    const noise = sql.unsafe('* f.scale * (1 + random() * 1e-6)');
    // One coin per statement, as a backfill leaves them: series by series.
    await sql`
      insert into market.candle (series_id, interval, open_time, open, high, low, close, volume, market_cap)
      select ${id}::int, '1h', to_timestamp(at), open, case when ${isPossible} then greatest(open, high, low, close) else high end,
        case when ${isPossible} then least(open, high, low, close) else low end, close, volume, cap
      from (select c.at, c.open ${noise} as open, c.high ${noise} as high, c.low ${noise} as low, c.close ${noise} as close,
        c.volume ${noise} as volume, case when ${withCaps} then c.close * 19e6 ${noise} end as cap
      from (select 0.1 + random() * 10 as scale offset 0) f, unnest(${candles.map(({ openTime }) => openTime / 1_000)}::float8[],
        ${column('open')}::float8[], ${column('high')}::float8[], ${column('low')}::float8[], ${column('close')}::float8[],
        ${column('volume')}::float8[]) c (at, open, high, low, close, volume) offset 0) noisy`;
  }
  await sql`
    update market.series set covered = ${[span]}, covered_candles = ${candles.length}, candles = ${candles.length}
    where id = any(${ids}::int[])`;
  await sql`select ops.adopt_evidence()`;
  await sql`vacuum analyze`;
  return { coinIds, each: candles.length };
}
