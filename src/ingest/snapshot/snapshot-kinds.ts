/** The kinds of snapshots: what each requests, how its answer is validated, and what is stored of it. */
import { COINS_PATH, EXCHANGES_PATH, GLOBAL_PATH, TICKERS_PATH } from '../../contract/interface/paths.ts';
import { pickTickers, type TickerColumns } from '../../core/ticker.ts';
import { releaseRecords } from '../../store/candle/quarantine.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { coinsGoneAt, countListed, type ListedCoin, recordCoins, unknownCoins } from '../../store/snapshot/coin.ts';
import { type ExchangeFacts, writeExchanges } from '../../store/snapshot/exchange.ts';
import { type GlobalFacts, writeGlobal } from '../../store/snapshot/global-history.ts';
import { writeTickers } from '../../store/snapshot/ticker.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../store/upkeep/partition.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { idOf, rowsOf, type Validated } from '../answer/record-list.ts';
import { validateCoins, validateExchanges, validateGlobal } from './validate-snapshot.ts';
import { validateTickers } from './validate-tickers.ts';

export const SNAPSHOTS = ['tickers', 'global', 'coins', 'exchanges'] as const;
export type SnapshotName = (typeof SNAPSHOTS)[number];

/** What a snapshot shows beside its rows: new coins, and coins that may have been renamed. */
export type SnapshotNews = {
  /** Coins that were not in the list of coins before. */
  readonly appeared: readonly string[];
  /** Active coins that are no longer in the list of coins: the upstream deletes none, so they may have a new id. */
  readonly gone: readonly string[];
  /** Ids of tickers that are not in the list of coins (yet). */
  readonly unknown: readonly string[];
};
export const NO_NEWS: SnapshotNews = { appeared: [], gone: [], unknown: [] };

export type Written = { readonly stored: number; readonly told: SnapshotNews };

export type SnapshotKind<T> = {
  /** Requested without parameters: prices are then in US dollars. */
  readonly path: string;
  /** Why it cannot be requested yet; null when it can. */
  readonly notYet?: (sql: Sql) => Promise<string | null>;
  /** The rows of the answer before, if no record of a request says so any more; null: unknown. */
  readonly knownRows?: (sql: Sql) => Promise<number>;
  readonly check: (sql: Sql, body: unknown, exchange: Exchange) => Promise<Validated<T>>;
  /** Runs before the transaction. */
  readonly prepare?: (sql: Sql, at: number) => Promise<void>;
  readonly write: (tx: SqlOrTransaction, value: T, at: number) => Promise<Written>;
};

export const NO_CATALOGUE = 'the list of coins is not there yet';
export const UNKNOWN_COIN = 'the list of coins does not hold it';
/** So many tickers of unknown coins are quarantined as received: they are valid, but their coin is missing in our list. */
const MOST_UNKNOWN_KEPT = 1_000;

export const tickersKind: SnapshotKind<{ readonly tickers: TickerColumns; readonly unknown: readonly string[] }> = {
  path: TICKERS_PATH,
  notYet: async (sql) => ((await countListed(sql)) === 0 ? NO_CATALOGUE : null),
  check: (sql, body, exchange) => checkTickers(sql, body, exchange),
  prepare: (sql, at) => ensurePartitionsOf(sql, TICKER_HISTORY, { from: at, to: at + 1 }),
  write: async (tx, { tickers, unknown }, at) => {
    const stored = await writeTickers(tx, tickers, at);
    return { stored, told: { ...NO_NEWS, unknown } };
  },
};

/** Validates an answer of `/tickers`: tickers of coins that are not in the list of coins are quarantined as well. */
export async function checkTickers(
  sql: SqlOrTransaction,
  body: unknown,
  { latest }: Pick<Exchange, 'latest'>,
): Promise<Validated<{ readonly tickers: TickerColumns; readonly unknown: readonly string[] }>> {
  const validated = validateTickers(body, latest);
  if (!validated.ok) return validated;
  const unknown = await unknownCoins(sql, validated.value.coinId);
  if (unknown.length === 0) return { ...validated, value: { tickers: validated.value, unknown } };
  const ids = new Set(unknown);
  const { coinId } = validated.value;
  const tickers = pickTickers(validated.value, (position) => !ids.has(coinId[position]!));
  const setAside = [...validated.setAside];
  for (const row of rowsOf(body)!) {
    if (setAside.length === validated.setAside.length + MOST_UNKNOWN_KEPT) break;
    if (ids.has(idOf(row))) setAside.push({ id: idOf(row), reason: UNKNOWN_COIN, row });
  }
  return { ...validated, value: { tickers, unknown }, setAside };
}

export const coinsKind: SnapshotKind<readonly ListedCoin[]> = {
  path: COINS_PATH,
  knownRows: countListed,
  check: async (_, body) => validateCoins(body),
  write: async (tx, coins, at) => {
    const appeared = await recordCoins(tx, coins, at);
    await releaseRecords(tx, 'tickers', { ids: appeared, reason: UNKNOWN_COIN });
    return { stored: coins.length, told: { ...NO_NEWS, appeared, gone: await coinsGoneAt(tx, at) } };
  },
};

export const globalKind: SnapshotKind<GlobalFacts | null> = {
  path: GLOBAL_PATH,
  check: async (_, body, { latest }) => validateGlobal(body, latest),
  write: async (tx, facts, at) => ({
    stored: facts === null ? 0 : await writeGlobal(tx, facts, at),
    told: NO_NEWS,
  }),
};

export const exchangesKind: SnapshotKind<readonly ExchangeFacts[]> = {
  path: EXCHANGES_PATH,
  check: async (_, body, { latest }) => validateExchanges(body, latest),
  write: async (tx, exchanges, at) => ({ stored: await writeExchanges(tx, exchanges, at), told: NO_NEWS }),
};
