/** Digests the tables with facts other than candles: each month of a history, and each other table as a whole. */
import { createHash } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import { monthReset, monthStart } from '../../core/calendar.ts';
import { DAY, HOUR } from '../../core/interval.ts';
import { RATE_CHANGES } from '../../core/ticker.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { nameOf } from './series-line.ts';

type Table = {
  readonly name: string;
  /** In a history: the column by whose months its rows are digested. Rows are only added to it, at its newest end. */
  readonly time?: string;
  /** The retention setting for its rows, as `Keep` names it; absent: they are kept for ever. */
  readonly kept?: 'tickers' | 'global' | 'exchanges';
  /** The columns that are digested. Columns of later versions are not included. */
  readonly columns: string;
  readonly key: string;
};

const TICKER = 'coin_id, at, updated_at, price, volume_24h, market_cap, circulating_supply, rank';
const EXCHANGE =
  'exchange_id, at, updated_at, adjusted_rank, reported_rank, currencies, markets, reported_volume_24h, adjusted_volume_24h';
const GLOBAL =
  'at, updated_at, market_cap, volume_24h, bitcoin_dominance, coins, market_cap_change_24h, volume_24h_change_24h, market_cap_ath, ' +
  'market_cap_ath_at, volume_24h_ath, volume_24h_ath_at, volume_24h_percent_from_ath, volume_24h_percent_to_ath, answer';

export const TABLES: readonly Table[] = [
  { name: 'market.coin', columns: 'id, name, symbol, is_active, first_data_at', key: 'id' },
  {
    name: 'market.coin_change',
    time: 'seen_at',
    columns: 'coin_id, seen_at, field, old_value, new_value',
    key: 'seen_at, coin_id, field',
  },
  { name: 'market.coin_rename', columns: 'old_id, new_id, renamed_at', key: 'old_id' },
  { name: 'market.document', columns: 'kind, id, as_of, gone_at, received::text', key: 'kind, id' },
  {
    name: 'market.document_revision',
    time: 'valid_to',
    columns: 'kind, id, valid_from, valid_to, received::text',
    key: 'valid_to, kind, id, valid_from',
  },
  { name: 'market.exchange_history', time: 'at', kept: 'exchanges', columns: EXCHANGE, key: 'at, exchange_id' },
  { name: 'market.global_history', time: 'at', kept: 'global', columns: GLOBAL, key: 'at' },
  {
    name: 'market.rate',
    time: 'at',
    columns: `currency, at, updated_at, price, ${RATE_CHANGES.join(', ')}`,
    key: 'at, currency',
  },
  {
    name: 'market.ticker_history',
    time: 'at',
    kept: 'tickers',
    columns: TICKER,
    key: 'at, coin_id',
  },
];

export type TableDigest = {
  readonly table: string;
  /** `2024-01`; absent: the whole of a table that changes as answers come, or a history that is empty. */
  readonly month?: string;
  /** The digest has only the rows of the month before this instant. */
  readonly before?: Instant;
  readonly rows: number;
  /** Hexadecimal. */
  readonly sha256: string;
};

/**
 * Rows of the newest hour of a history are left to the next attestation. An answer that is being stored meanwhile may be a little older than one
 * that is stored already.
 */
export const MARGIN_MS = HOUR;

/** The as-of instant of an answer is at most so far behind our clock: a `Date` of the server by seven days, an `Age` by one (decision 77). */
export const MOST_BEHIND_MS = 8 * DAY;

export async function* readTables(sql: SqlOrTransaction): AsyncGenerator<TableDigest> {
  for (const table of TABLES) {
    if (table.time === undefined) yield { table: table.name, ...(await digestRows(sql, table)) };
    else yield* readHistory(sql, { ...table, time: table.time });
  }
}

async function* readHistory(
  sql: SqlOrTransaction,
  table: Table & { readonly time: string },
): AsyncGenerator<TableDigest> {
  const { name, time } = table;
  // Reads only months that have rows, whatever times somebody wrote by hand.
  const months = await sql<{ month: Instant; last: Instant }[]>`
    select date_trunc('month', ${sql(time)}, 'UTC') as month, max(${sql(time)}) as last from ${sql(name)}
    where ${sql(time)} >= '0001-01-01Z' and ${sql(time)} < '10000-01-01Z' group by 1 order by 1`;
  const last = months.at(-1)?.last;
  // An empty history gets a line, too, because older rows are never added later.
  if (last === undefined) {
    yield { table: name, ...(await digestRows(sql, table)) };
    return;
  }
  const end = Math.floor(last) - MARGIN_MS + 1;
  // The newest month always gets a line, because it shows how far the history is attested.
  const newest = monthStart(end - 1);
  const earlier = months.flatMap(({ month }) => (month < newest ? [month] : []));
  for (const from of [...earlier, newest]) {
    const before = Math.min(monthReset(from), end);
    const digest = await digestRows(sql, table, { from, before });
    if (digest.rows > 0 || from === newest) yield { table: name, month: nameOf(from), before, ...digest };
  }
}

/**
 * SHA-256 of the SHA-256 of each hour (for a whole table: of one part with all rows). Each of these is the SHA-256 of the SHA-256 of each row, in
 * the order of the key. A row is its text in Postgres, in UTC. Hours keep the memory of both sides small.
 */
export async function digestRows(
  sql: SqlOrTransaction,
  { name, columns, key, time }: Table,
  within?: { readonly from: Instant; readonly before: Instant },
): Promise<{ readonly rows: number; readonly sha256: string }> {
  const where = within
    ? sql`where ${sql(time!)} >= ${within.from}::timestamptz and ${sql(time!)} < ${within.before}::timestamptz`
    : sql``;
  const hour = within ? sql`date_trunc('hour', ${sql(time!)}, 'UTC')` : null;
  const query = sql<{ rows: number; sha256: Buffer }[]>`
    select count(*) as rows, sha256(string_agg(sha256(convert_to(row(${sql.unsafe(columns)})::text, 'UTF8')), ''::bytea
      order by ${sql.unsafe(key)})) as sha256
    from ${sql(name)} ${where} ${hour === null ? sql`having count(*) > 0` : sql`group by ${hour} order by ${hour}`}`;
  const hash = createHash('sha256');
  let rows = 0;
  for await (const hours of query.cursor(1000)) {
    for (const one of hours) {
      rows += one.rows;
      hash.update(one.sha256);
    }
  }
  return { rows, sha256: hash.digest('hex') };
}
