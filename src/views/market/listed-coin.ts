/**
 * A coin that nobody has asked about by itself, out of what the lists say of it: the list of coins, those of tags and of contracts, and
 * the tickers. Of all the rest nothing was told, and nothing is said (decision 75).
 */
import type { Instant } from '../../clock.ts';
import { basisOf, partAsOf, standingOn } from '../../contract/answer/provenance.ts';
import type { CoinDetails } from '../../contract/record/catalogue.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createKeptByTopics, type Versions } from './data-versions.ts';

const MOST_COINS = 2_000;

export type ListedCoinDeps = {
  readonly sql: Sql;
  readonly versions: Versions;
  readonly findCoin: (coinId: string) => Promise<CoinSummary | null>;
};

export function createListedCoinView({ sql, versions, findCoin }: ListedCoinDeps) {
  const kept = createKeptByTopics<CoinDetails | null>({
    versions,
    view: 'catalogue',
    most: MOST_COINS,
    // That of the coins' own documents, because one of them is answered instead as soon as it is there.
    versionOf: (topics) =>
      ['coin', 'tag', 'document tag', 'contract', 'document contracts', 'document coin']
        .map((topic) => topics[topic])
        .join(' '),
  });
  return (coinId: string): Promise<CoinDetails | null> =>
    kept(coinId, async () => {
      const coin = await findCoin(coinId);
      return coin === null ? null : readListed(sql, coin);
    });
}

type ListedRow = {
  readonly firstDataAt: Instant | null;
  /** Null: nobody has asked which tags there are. */
  readonly tags: NonNullable<CoinDetails['tags']> | null;
  readonly tagsSeenAt: Instant | null;
  /** Null: upstream has told of none. A coin that has none lacks the key there, too. */
  readonly contracts: NonNullable<CoinDetails['contracts']> | null;
  readonly contractsSeenAt: Instant | null;
};

async function readListed(sql: Sql, coin: CoinSummary): Promise<CoinDetails> {
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
  const seen = [basisOf(coin)?.asOf, tagsSeenAt, contractsSeenAt].filter((at) => typeof at === 'number');
  return standingOn(details, partAsOf(seen.length === 0 ? null : Math.max(...seen)));
}
