/** Tickers: the newest of every coin, and all of every snapshot. */
import type { Instant } from '../clock.ts';
import { TICKER_NUMBERS, type TickerColumns, type TickerNumber } from '../core/ticker.ts';
import { writeArray, writeInstants, writeNumbers } from './array-types.ts';
import { lockCatalogue, recordTickers } from './coin.ts';
import { type SqlOrTransaction, withFreshPlans } from './connect.ts';

const HISTORY_NUMBERS: readonly TickerNumber[] = ['price', 'volume_24h', 'market_cap', 'circulating_supply'];

const LATEST = `
  insert into market.ticker as t (coin_id, updated_at, at, rank, ath_at, ${TICKER_NUMBERS.join(', ')}, seen_at)
  select id, coalesce(to_timestamp(updated), to_timestamp($1::float8)), to_timestamp($1::float8), rank, to_timestamp(ath),
    ${TICKER_NUMBERS.join(', ')}, to_timestamp($1::float8)
  from unnest($2::text[], $3::float8[], $4::int[], $5::float8[], ${TICKER_NUMBERS.map((_, i) => `$${i + 6}::float8[]`).join(', ')})
    as u(id, updated, rank, ath, ${TICKER_NUMBERS.join(', ')})
  order by id
  on conflict (coin_id) do update
  set updated_at = excluded.updated_at, at = excluded.at, rank = excluded.rank, ath_at = excluded.ath_at,
    ${TICKER_NUMBERS.map((name) => `${name} = excluded.${name}`).join(', ')},
    seen_at = greatest(t.seen_at, excluded.seen_at)
  -- As rows: by updated_at, then at, then the values, so that of any two tickers it is always the same one that stays.
  where excluded > t`;

const HISTORY = `
  insert into market.ticker_history as h (at, updated_at, rank, coin_id, ${HISTORY_NUMBERS.join(', ')})
  select to_timestamp($1::float8), coalesce(to_timestamp(updated), to_timestamp($1::float8)), rank, id, ${HISTORY_NUMBERS.join(', ')}
  from unnest($2::text[], $3::float8[], $4::int[], ${HISTORY_NUMBERS.map((_, i) => `$${i + 5}::float8[]`).join(', ')})
    as u(id, updated, rank, ${HISTORY_NUMBERS.join(', ')})
  order by id
  on conflict (coin_id, at) do update
  set updated_at = excluded.updated_at, rank = excluded.rank, ${HISTORY_NUMBERS.map((name) => `${name} = excluded.${name}`).join(', ')}
  where excluded > h`;

/**
 * Writes one snapshot of coins that the catalogue knows: its history, what of it is the newest, and rank and first data of the
 * coins. Reads are not monotonic (upstream-api.md, section 5 no 1): of two tickers the one updated later is the newer, whichever
 * was answered first. Resolves to how many rows of history are new. The partition for `at` must exist.
 */
export async function writeTickers(sql: SqlOrTransaction, tickers: TickerColumns, at: Instant): Promise<number> {
  if (tickers.coinId.length === 0) return 0;
  return withFreshPlans(sql, async (tx) => {
    await lockCatalogue(tx);
    // Before the tickers, which tell what was known of the ranks until now.
    await recordTickers(tx, tickers, at);
    const [instant, ids, updated] = [at / 1000, writeArray(tickers.coinId), writeInstants(tickers.updatedAt)];
    const rank = writeNumbers(tickers.rank);
    const numbers = (names: readonly TickerNumber[]) => names.map((name) => writeNumbers(tickers.numbers[name]));
    const ath = writeInstants(tickers.athAt);
    await tx.unsafe(LATEST, [instant, ids, updated, rank, ath, ...numbers(TICKER_NUMBERS)], { prepare: true });
    // Those of which something newer is known have been seen all the same.
    await tx`
      update market.ticker t set seen_at = to_timestamp(${instant})
      from unnest(${ids}::text[]) as u(id) where t.coin_id = u.id and t.seen_at < to_timestamp(${instant})`;
    const written = await tx.unsafe(HISTORY, [instant, ids, updated, rank, ...numbers(HISTORY_NUMBERS)], {
      prepare: true,
    });
    return written.count;
  });
}
