/** The figures of the whole market at every snapshot. */
import { sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { GlobalOverview } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { globalHistory } from '../schema/snapshots.ts';

export type GlobalFacts = Readonly<Omit<typeof globalHistory.$inferSelect, 'at' | 'updatedAt'>> & {
  /** The upstream's own time of the update; null when it sends none. */
  readonly updatedAt: Instant | null;
};

/** Resolves to 1 when the row is written, else to 0. Of two rows for one instant, the one that was updated later stays. */
export async function writeGlobal(sql: SqlOrTransaction, facts: GlobalFacts, at: Instant): Promise<number> {
  const row = { ...facts, at, updatedAt: facts.updatedAt ?? at };
  const { count } = await tables(sql)
    .insert(globalHistory)
    .values(row)
    .onConflictDoUpdate({ target: globalHistory.at, set: row, setWhere: raw`excluded > global_history` });
  return count;
}

/** The whole market in the form of the upstream's record. */
export function globalRecord(facts: Omit<GlobalFacts, 'answer'>): GlobalOverview {
  const time = (at: Instant | null) => (at === null ? null : formatTime(at));
  return {
    market_cap_usd: facts.marketCap,
    volume_24h_usd: facts.volume24h,
    bitcoin_dominance_percentage: facts.bitcoinDominance,
    cryptocurrencies_number: facts.coins,
    market_cap_ath_value: facts.marketCapAth,
    market_cap_ath_date: time(facts.marketCapAthAt),
    volume_24h_ath_value: facts.volume24hAth,
    volume_24h_ath_date: time(facts.volume24hAthAt),
    volume_24h_percent_from_ath: facts.volume24hPercentFromAth,
    volume_24h_percent_to_ath: facts.volume24hPercentToAth,
    market_cap_change_24h: facts.marketCapChange24h,
    volume_24h_change_24h: facts.volume24hChange24h,
    last_updated: facts.updatedAt === null ? null : facts.updatedAt / 1000,
  };
}
