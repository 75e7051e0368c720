/** The market as a whole, at every snapshot. */
import type { Instant } from '../../clock.ts';
import type { GlobalOverview } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

export type GlobalFacts = {
  /** As upstream says itself; null when it does not. */
  readonly updatedAt: Instant | null;
  readonly marketCap: number | null;
  readonly volume24h: number | null;
  readonly bitcoinDominance: number | null;
  readonly coins: number | null;
  readonly marketCapChange24h: number | null;
  readonly volume24hChange24h: number | null;
  readonly marketCapAth: number | null;
  readonly marketCapAthAt: Instant | null;
  readonly volume24hAth: number | null;
  readonly volume24hAthAt: Instant | null;
  readonly volume24hPercentFromAth: number | null;
  readonly volume24hPercentToAth: number | null;
  /** The JSON of it, where it is written otherwise than `globalRecord` writes it. */
  readonly answer: string | null;
};

/** Resolves to 1 when it is new. Of two for one instant the one updated later stays. */
export async function writeGlobal(sql: SqlOrTransaction, facts: GlobalFacts, at: Instant): Promise<number> {
  const written = await sql`
    insert into market.global_history as g (at, updated_at, market_cap, volume_24h, bitcoin_dominance, coins,
      market_cap_change_24h, volume_24h_change_24h, market_cap_ath, market_cap_ath_at, volume_24h_ath, volume_24h_ath_at,
      volume_24h_percent_from_ath, volume_24h_percent_to_ath, answer)
    values (${at}, ${facts.updatedAt ?? at}, ${facts.marketCap},
      ${facts.volume24h}, ${facts.bitcoinDominance}, ${facts.coins}, ${facts.marketCapChange24h},
      ${facts.volume24hChange24h}, ${facts.marketCapAth}, ${facts.marketCapAthAt},
      ${facts.volume24hAth}, ${facts.volume24hAthAt}, ${facts.volume24hPercentFromAth},
      ${facts.volume24hPercentToAth}, ${facts.answer})
    on conflict (at) do update
    set updated_at = excluded.updated_at, market_cap = excluded.market_cap, volume_24h = excluded.volume_24h,
      bitcoin_dominance = excluded.bitcoin_dominance, coins = excluded.coins,
      market_cap_change_24h = excluded.market_cap_change_24h, volume_24h_change_24h = excluded.volume_24h_change_24h,
      market_cap_ath = excluded.market_cap_ath, market_cap_ath_at = excluded.market_cap_ath_at,
      volume_24h_ath = excluded.volume_24h_ath, volume_24h_ath_at = excluded.volume_24h_ath_at,
      volume_24h_percent_from_ath = excluded.volume_24h_percent_from_ath,
      volume_24h_percent_to_ath = excluded.volume_24h_percent_to_ath, answer = excluded.answer
    where excluded > g`;
  return written.count;
}

/** The market as a whole, as upstream writes it. */
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
