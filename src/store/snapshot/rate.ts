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

/** The currencies whose rate was not stored since this run was due, the oldest rate first: a run that was held continues with them. */
export async function readCurrenciesLeft(
  sql: SqlOrTransaction,
  currencies: readonly string[],
  run: { readonly endpoint: string; readonly accountId: string; readonly tick: Instant },
): Promise<string[]> {
  // A cached answer may be older than the tick.
  const rows = await sql<{ currency: string }[]>`
    with begun as (
      select min(as_of) - interval '1 ms' as at from ops.fetch
      where series_id is null and endpoint = ${run.endpoint} and account_id = ${run.accountId} and outcome = 'stored' and sent_at >= ${run.tick}
    )
    select u.currency from unnest(${currencies as string[]}::text[]) with ordinality u(currency, place) cross join begun
    left join lateral (select max(at) as at from market.rate r where r.currency = u.currency) latest on true
    where latest.at is null or begun.at is null or latest.at < begun.at
    order by latest.at nulls first, u.place`;
  return rows.map(({ currency }) => currency);
}

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
