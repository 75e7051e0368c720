/** Changes rows of a series so that nothing in the database contradicts them. */
import type { Interval } from '../../src/core/interval.ts';
import type { TestDatabase } from '../support/database.ts';

/** Changes rows as a person could who can write every table, and makes everything that follows from them agree. */
export async function forge(
  { sql }: TestDatabase,
  id: number,
  change: string,
  interval: Interval = '24h',
): Promise<void> {
  await sql.unsafe(`${change};
    update market.series s set digest = t.digest, candles = t.candles, covered_candles = t.final_candles
      from ops.sums(${id}, '${interval}', '(,)', (select covered from market.series where id = ${id}), '{}') t where s.id = ${id};
    update market.evidence e set candles = t.told_candles, digest = t.told_digest, locator = t.told_locator
      from market.evidence f cross join lateral ops.sums(f.series_id, '${interval}', range_merge(f.slots), '{}', f.slots) t
      where f.series_id = ${id} and e.series_id = f.series_id and e.number = f.number;
    update market.evidence e set link = ops.link_at(e.series_id, e.number + coalesce(cardinality(e.step_seconds), 1) - 1)
      where e.series_id = ${id} and e.number = 1;
    do $$ declare r record; begin for r in select * from market.evidence where series_id = ${id} order by number loop
      update market.evidence set link = ops.link_at(${id}, r.number + coalesce(cardinality(r.step_seconds), 1) - 1) where series_id = ${id} and number = r.number;
    end loop; end $$;
    update market.series set link = ops.link_at(id, steps) where id = ${id}`);
}
