/** Tickers: the newest of every coin, and all of every snapshot. */
import { max } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import { inPieces, TICKER_NUMBERS, type TickerColumns, type TickerNumber } from '../../core/ticker.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { ticker } from '../schema/snapshots.ts';
import { writeArray, writeInstants, writeNumbers } from '../values/array-types.ts';
import { lockCatalogue, recordTickers } from './coin.ts';

const HISTORY_NUMBERS: readonly TickerNumber[] = ['price', 'volume_24h', 'market_cap', 'circulating_supply'];
const NUMBERS = TICKER_NUMBERS.join(', ');

/** What the row has beside the coin and the instants: which of two tickers of one instant stays must not depend on their order. */
const valuesOf = (alias: string) =>
  `row(${['rank', 'ath_at', 'answer', ...TICKER_NUMBERS].map((name) => `${alias}.${name}`).join(', ')})::record`;
const NEWER = `((g.updated_at, g.at) > (t.updated_at, t.at)
      or (g.updated_at, g.at) = (t.updated_at, t.at) and ${valuesOf('g')} > ${valuesOf('t')})`;

/**
 * One statement, so that the numbers travel once and are parsed once. An update of what is there and an insert of what is not:
 * both for fewer coins than `on conflict` would take as long for.
 */
const WRITE = `
  with given as materialized (
    select id as coin_id, coalesce(to_timestamp(updated), s.at) as updated_at, s.at, rank, to_timestamp(ath) as ath_at, position, answer, ${NUMBERS}
    from (select $1::timestamptz as at) s,
      unnest($2::text[], $3::float8[], $4::int[], $5::float8[], $6::int[], $7::text[],
        ${TICKER_NUMBERS.map((_, i) => `$${i + 8}::float8[]`).join(', ')})
      as u(id, updated, rank, ath, position, answer, ${NUMBERS})
  ), newer as (
    update market.ticker t
    set updated_at = g.updated_at, at = g.at, rank = g.rank, ath_at = g.ath_at, answer = g.answer,
      position = case when g.at >= t.seen_at then g.position else t.position end, seen_at = greatest(t.seen_at, g.at),
      ${TICKER_NUMBERS.map((name) => `${name} = g.${name}`).join(', ')}
    from given g where t.coin_id = g.coin_id and ${NEWER}
  ), seen as (
    -- Those of which something newer is known have been seen all the same.
    update market.ticker t set seen_at = g.at, position = g.position
    from given g where t.coin_id = g.coin_id and t.seen_at < g.at and not ${NEWER}
  ), first as (
    insert into market.ticker (coin_id, updated_at, at, rank, ath_at, position, answer, ${NUMBERS}, seen_at)
    select coin_id, updated_at, at, rank, ath_at, position, answer, ${NUMBERS}, at
    from given g where not exists (select from market.ticker t where t.coin_id = g.coin_id)
  )
  insert into market.ticker_history as h (at, updated_at, rank, coin_id, ${HISTORY_NUMBERS.join(', ')})
  select at, updated_at, rank, coin_id, ${HISTORY_NUMBERS.join(', ')} from given`;

/** Of two answers of one instant the same one stays, whichever came first. */
const OVERWRITE = `
  on conflict (coin_id, at) do update
  set updated_at = excluded.updated_at, rank = excluded.rank, ${HISTORY_NUMBERS.map((name) => `${name} = excluded.${name}`).join(', ')}
  where excluded > h`;

/** Rows of one statement: the driver keeps a buffer as long as its longest. */
const PIECE = 10_000;

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
    // Under the lock nobody adds to this instant: where nothing is yet, a plain insert is enough.
    const [there] = await tx<{ any: boolean }[]>`
      select exists (select from market.ticker_history where at = ${at}) as any`;
    let written = 0;
    for (const piece of inPieces(tickers, PIECE)) {
      const result = await tx.unsafe(there!.any ? WRITE + OVERWRITE : WRITE, parametersOf(piece, at), {
        prepare: true,
      });
      written += result.count;
    }
    return written;
  });
}

function parametersOf({ coinId, updatedAt, rank, athAt, position, answer, numbers }: TickerColumns, at: Instant) {
  return [
    at,
    writeArray(coinId),
    writeInstants(updatedAt),
    writeNumbers(rank),
    writeInstants(athAt),
    writeNumbers(position),
    writeArray(answer),
    ...TICKER_NUMBERS.map((name) => writeNumbers(numbers[name])),
  ];
}

/** As of when the tickers were last read; null when they never were. */
export async function tickersSeenAt(sql: SqlOrTransaction): Promise<Instant | null> {
  const [row] = await tables(sql)
    .select({ at: max(ticker.at) })
    .from(ticker);
  return row!.at;
}
