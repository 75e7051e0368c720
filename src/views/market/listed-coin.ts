/**
 * A coin whose own document was never received, built from the lists: the list of coins, those of tags and of contracts, and the tickers. Fields
 * that no list has are omitted (decision 75).
 */
import type { Instant } from '../../clock.ts';
import { partialAsOf, provenanceOf, withProvenance } from '../../contract/answer/provenance.ts';
import type { CoinDetails } from '../../contract/record/catalogue.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** The topics on which such a coin depends. Its own document is among them, because it replaces the built one as soon as it is there. */
export const LISTED_COIN_TOPICS = ['coin', 'tag', 'document tag', 'contract', 'document contracts', 'document coin'];

type ListedRow = {
  readonly firstDataAt: Instant | null;
  /** Null: the list of tags was never received. */
  readonly tags: NonNullable<CoinDetails['tags']> | null;
  readonly tagsSeenAt: Instant | null;
  /** Null: upstream named none. Upstream omits the key for a coin without contracts, too. */
  readonly contracts: NonNullable<CoinDetails['contracts']> | null;
  readonly contractsSeenAt: Instant | null;
};

export async function readListedCoin(sql: Sql, coin: CoinSummary): Promise<CoinDetails> {
  const { id, name, symbol, rank, is_new, is_active, type } = coin;
  const [row] = await sql<ListedRow[]>`
    select c.first_data_at, t.tags, t.seen as tags_seen_at, k.contracts, k.seen as contracts_seen_at
    from market.coin c
    cross join lateral (
      select coalesce(
          json_agg(json_strip_nulls(json_build_object('id', t.id, 'name', t.name, 'coin_counter', t.coins, 'ico_counter', t.icos))
            order by t.place, t.id),
          (select '[]'::json where exists (select from market.tag))) as tags,
        max(t.last_seen_at) as seen
      from market.coin_tag m join market.tag t on t.id = m.tag_id and t.gone_at is null
      where m.coin_id = c.id and m.valid_to is null) t
    cross join lateral (
      select json_agg(json_strip_nulls(json_build_object('contract', k.address, 'platform', k.platform_id, 'type', k.type))
          order by k.is_active is not false desc, k.platform_id, k.address) as contracts,
        max(d.as_of) as seen
      from market.contract k left join market.document d on d.kind = 'contracts' and d.id = k.platform_id
      where k.coin_id = c.id and k.valid_to is null) k
    where c.id = ${id}`;
  const { firstDataAt = null, tags = null, contracts = null, tagsSeenAt, contractsSeenAt } = row ?? {};
  const details: CoinDetails = {
    ...{ id, name, symbol, rank, is_new, is_active, type },
    ...(tags !== null && { tags }),
    ...(contracts !== null && { contracts }),
    ...(firstDataAt !== null && { first_data_at: formatTime(firstDataAt) }),
  };
  const seen = [provenanceOf(coin)?.asOf, tagsSeenAt, contractsSeenAt].filter((at) => typeof at === 'number');
  return withProvenance(details, partialAsOf(seen.length === 0 ? null : Math.max(...seen)));
}
