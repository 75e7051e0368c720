/** Tickers: the newest one of every coin, and the history of all snapshots. */
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

/** The other columns of the row. They decide between two tickers of one instant, so that the result does not depend on their order. */
const valuesOf = (alias: string) =>
  `row(${['rank', 'ath_at', 'answer', ...TICKER_NUMBERS].map((name) => `${alias}.${name}`).join(', ')})::record`;
const NEWER = `((g.updated_at, g.at) > (t.updated_at, t.at)
      or (g.updated_at, g.at) = (t.updated_at, t.at) and ${valuesOf('g')} > ${valuesOf('t')})`;

/**
 * One statement, so that the numbers are sent and parsed only once. It updates existing rows and inserts new ones separately, which takes
 * less time than `on conflict`.
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
    -- Coins with a newer stored ticker were seen, too.
    update market.ticker t set seen_at = g.at, position = g.position
    from given g where t.coin_id = g.coin_id and t.seen_at < g.at and not ${NEWER}
  ), first as (
    insert into market.ticker (coin_id, updated_at, at, rank, ath_at, position, answer, ${NUMBERS}, seen_at)
    select coin_id, updated_at, at, rank, ath_at, position, answer, ${NUMBERS}, at
    from given g where not exists (select from market.ticker t where t.coin_id = g.coin_id)
  )
  insert into market.ticker_history as h (at, updated_at, rank, coin_id, ${HISTORY_NUMBERS.join(', ')})
  select at, updated_at, rank, coin_id, ${HISTORY_NUMBERS.join(', ')} from given`;

/** Of two answers of one instant, the same one stays, independent of their order. */
const OVERWRITE = `
  on conflict (coin_id, at) do update
  set updated_at = excluded.updated_at, rank = excluded.rank, ${HISTORY_NUMBERS.map((name) => `${name} = excluded.${name}`).join(', ')}
  where excluded > h`;

/** Rows of one statement. The limit is for memory: the driver keeps a buffer as long as its longest statement. */
const PIECE = 10_000;

/**
 * Writes one snapshot of coins that the catalogue contains: the history, the newest ticker of each coin, and rank and first data of the
 * coins. Reads are not monotonic (upstream-api.md, section 5 no 1): of two tickers, the one that was updated later is newer, independent of
 * the order of the answers. Resolves to the number of written rows of history. The partition for `at` must exist.
 */
export async function writeTickers(sql: SqlOrTransaction, tickers: TickerColumns, at: Instant): Promise<number> {
  if (tickers.coinId.length === 0) return 0;
  return withFreshPlans(sql, async (tx) => {
    await lockCatalogue(tx);
    // This must come before the tickers are written: it reads `seen_at` of the old tickers, to know whose ranks are older.
    await recordTickers(tx, tickers, at);
    // Under the lock, no other process adds rows of this instant. If there are none yet, a plain insert is enough.
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

/** The as-of instant of the last tickers; null when there are none. */
export async function tickersSeenAt(sql: SqlOrTransaction): Promise<Instant | null> {
  const [row] = await tables(sql)
    .select({ at: max(ticker.at) })
    .from(ticker);
  return row!.at;
}
