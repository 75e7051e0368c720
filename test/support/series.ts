/** A series as the tables have it. */
import type { SqlOrTransaction } from '../../src/store/connection/connect.ts';
import type { series } from '../../src/store/schema/candles.ts';

type Series = Pick<typeof series.$inferSelect, 'id' | 'coinId' | 'quote' | 'interval' | 'wanted' | 'covered'> & {
  readonly firstDataAt: number | null;
};

/** Null when there is no such series. */
export async function readSeries(sql: SqlOrTransaction, id: number): Promise<Series | null> {
  const [row] = await sql<Series[]>`
    select s.id, s.coin_id, s.quote, s.interval, s.wanted, s.covered, c.first_data_at
    from market.series s join market.coin c on c.id = s.coin_id where s.id = ${id}`;
  return row ?? null;
}
