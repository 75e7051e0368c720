/** The kinds of snapshots: what each requests, how its answer is validated, and what is stored from it. */
import { EXCHANGES_PATH, GLOBAL_PATH, TICKERS_PATH } from '../../contract/interface/paths.ts';
import { pickTickers, type TickerColumns } from '../../core/ticker.ts';
import { releaseRecords } from '../../store/candle/quarantine.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { countListed, type ListedCoin, recordCoins, unknownCoins } from '../../store/snapshot/coin.ts';
import { type ExchangeFacts, writeExchanges } from '../../store/snapshot/exchange.ts';
import { type GlobalFacts, writeGlobal } from '../../store/snapshot/global-history.ts';
import { writeTickers } from '../../store/snapshot/ticker.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../store/upkeep/partition.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { idOf, rowsOf, type Validated } from '../answer/record-list.ts';
import { validateExchanges, validateGlobal } from './validate-snapshot.ts';
import { validateTickers } from './validate-tickers.ts';

export type SnapshotName = 'tickers' | 'global' | 'exchanges';

export type SnapshotKind<T> = {
  /** The request has no parameters, so prices are in US dollars. */
  readonly path: string;
  /** Why it cannot be requested yet; null when it can be. */
  readonly notYet?: (sql: Sql) => Promise<string | null>;
  readonly check: (sql: Sql, body: unknown, exchange: Exchange) => Promise<Validated<T>>;
  /** Runs before the transaction. */
  readonly prepare?: (sql: Sql, at: number) => Promise<void>;
  /** Resolves to the number of stored rows. */
  readonly write: (tx: SqlOrTransaction, value: T, at: number) => Promise<number>;
};

const NO_CATALOGUE = 'the list of coins is not there yet';
const UNKNOWN_COIN = 'the list of coins does not hold it';
/** At most so many tickers of unknown coins are quarantined as received: they are valid, but the list of coins does not have their coins. */
const MOST_UNKNOWN_KEPT = 1_000;

export const tickersKind: SnapshotKind<TickerColumns> = {
  path: TICKERS_PATH,
  notYet: async (sql) => ((await countListed(sql)) === 0 ? NO_CATALOGUE : null),
  check: checkTickers,
  prepare: (sql, at) => ensurePartitionsOf(sql, TICKER_HISTORY, { from: at, to: at + 1 }),
  write: writeTickers,
};

/** Validates an answer of `/tickers`. It also quarantines tickers of coins that are not in the list of coins. */
async function checkTickers(sql: Sql, body: unknown, { latest }: Exchange): Promise<Validated<TickerColumns>> {
  const validated = validateTickers(body, latest);
  if (!validated.ok) return validated;
  const { coinId } = validated.value;
  const unknown = new Set(await unknownCoins(sql, coinId));
  if (unknown.size === 0) return validated;
  const quarantined = [...validated.quarantined];
  for (const row of rowsOf(body)!) {
    if (quarantined.length === validated.quarantined.length + MOST_UNKNOWN_KEPT) break;
    if (unknown.has(idOf(row))) quarantined.push({ id: idOf(row), reason: UNKNOWN_COIN, row });
  }
  const value = pickTickers(validated.value, (position) => !unknown.has(coinId[position]!));
  return { ...validated, value, quarantined };
}

export async function writeCoins(tx: SqlOrTransaction, coins: readonly ListedCoin[], at: number): Promise<void> {
  const ids = await recordCoins(tx, coins, at);
  // Their tickers were quarantined only because the coins were not in the list.
  await releaseRecords(tx, 'tickers', { ids, reason: UNKNOWN_COIN });
}

export const globalKind: SnapshotKind<GlobalFacts | null> = {
  path: GLOBAL_PATH,
  check: async (_, body, { latest }) => validateGlobal(body, latest),
  write: async (tx, facts, at) => (facts === null ? 0 : writeGlobal(tx, facts, at)),
};

export const exchangesKind: SnapshotKind<readonly ExchangeFacts[]> = {
  path: EXCHANGES_PATH,
  check: async (_, body, { latest }) => validateExchanges(body, latest),
  write: writeExchanges,
};
