/** Exchange rates of currencies that are not coins, at every reading. */
import type { Instant } from '../../clock.ts';
import { RATE_CHANGES, type RateChange } from '../../core/ticker.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { writeArray, writeNumbers } from '../values/array-types.ts';

export type RateFacts = {
  /** Upper-case symbol. */
  readonly currency: string;
  /** The upstream's own time of the update. */
  readonly updatedAt: Instant;
  /** The price of one unit in US dollars. */
  readonly price: number;
  readonly changes: Readonly<Record<RateChange, number | null>>;
};

/** Resolves to the number of new rates. A stored rate of the same instant does not change. */
export async function writeRates(sql: SqlOrTransaction, rates: readonly RateFacts[], at: Instant): Promise<number> {
  if (rates.length === 0) return 0;
  const columns = RATE_CHANGES.map((name) => writeNumbers(rates.map(({ changes }) => changes[name])));
  const { count } = await sql.unsafe(
    `insert into market.rate (currency, at, updated_at, price, ${RATE_CHANGES.join(', ')})
      select c, to_timestamp($2::float8), to_timestamp(u), p, ${RATE_CHANGES.map((_, i) => `v${i}`).join(', ')}
      from unnest($1::text[], $3::float8[], $4::float8[], ${RATE_CHANGES.map((_, i) => `$${i + 5}::float8[]`).join(', ')})
        as r(c, u, p, ${RATE_CHANGES.map((_, i) => `v${i}`).join(', ')})
      on conflict (currency, at) do nothing`,
    [
      writeArray(rates.map(({ currency }) => currency)),
      at / 1000,
      writeNumbers(rates.map(({ updatedAt }) => updatedAt / 1000)),
      writeNumbers(rates.map(({ price }) => price)),
      ...columns,
    ],
  );
  return count;
}
