/** Finds coins by the names that people use: symbol, name, id, or a former id. */
import type { SeriesName } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type FoundCoin = {
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  readonly rank: number;
  readonly isActive: boolean;
  /** The former id by which it was found; null: it was found by a current name. */
  readonly oldId: string | null;
  /** Whether one of its names equals the text, ignoring case. */
  readonly isExact: boolean;
};

/**
 * At most `limit` coins. First come those whose whole name is the text, then those whose name begins with it, then those that contain it; among
 * these the active ones by rank. The search of the service finds the same coins, except those by former ids.
 */
export async function findCoins(sql: Sql, text: string, limit: number): Promise<FoundCoin[]> {
  const wanted = text.trim().toLowerCase();
  const matches = sql`(position(${wanted} in lower(c.symbol)) > 0 or position(${wanted} in lower(c.name)) > 0 or position(${wanted} in lower(c.id)) > 0)`;
  const place = sql`case
    when ${wanted} in (lower(c.symbol), lower(c.name), lower(c.id)) then 0
    when starts_with(lower(c.symbol), ${wanted}) or starts_with(lower(c.name), ${wanted}) or starts_with(lower(c.id), ${wanted}) then 1
    else 2 end`;
  return sql<FoundCoin[]>`
    with found as (
      (select c.id, ${place} as place, null as old_id
      from market.coin c left join market.coin_rename r on r.old_id = c.id
      where ${matches} and (r.old_id is null or c.is_active and c.last_seen_at > r.renamed_at)
      order by 2, not c.is_active, nullif(c.rank, 0) nulls last, c.id limit ${limit})
      union all
      -- A coin that has a new id is found by its new id.
      select market.coin_of(c.id), ${place}, c.id
      from market.coin_rename r join market.coin c on c.id = r.old_id
      where ${matches} and not (c.is_active and c.last_seen_at > r.renamed_at)
      union all
      -- The new id is known only from the rename.
      select market.coin_of(r.old_id), case when r.old_id = ${wanted} then 0 when starts_with(r.old_id, ${wanted}) then 1 else 2 end, r.old_id
      from market.coin_rename r
      where position(${wanted} in r.old_id) > 0 and not exists (select from market.coin c where c.id = r.old_id)
        and exists (select from market.coin c where c.id = r.new_id)
    ), best as (
      select distinct on (id) id, place, old_id from found order by id, place, old_id nulls first
    )
    select c.id, c.name, c.symbol, c.rank, c.is_active, b.old_id, b.place = 0 as is_exact
    from best b join market.coin c on c.id = b.id
    order by b.place, not c.is_active, nullif(c.rank, 0) nulls last, c.id limit ${limit}`;
}

/**
 * The only coin that this text can mean: by id, former id, or a symbol or name of one coin (active coins go before others). Null: several, or none.
 */
export function onlyMatch(coins: readonly FoundCoin[], text: string): FoundCoin | null {
  const wanted = text.trim().toLowerCase();
  const byId = coins.find(({ id, oldId }) => id === wanted || oldId === wanted);
  if (byId !== undefined) return byId;
  const exact = coins.filter(({ isExact }) => isExact);
  const active = exact.filter(({ isActive }) => isActive);
  const [only, other] = active.length > 0 ? active : exact;
  return other === undefined ? (only ?? null) : null;
}

/** The former ids of this coin. */
export async function readOldIds(sql: Sql, coinId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    with recursive old as (
      select old_id as id from market.coin_rename where new_id = ${coinId}
      union
      select r.old_id from market.coin_rename r join old on r.new_id = old.id
    )
    select id from old where id <> ${coinId}`;
  return rows.map(({ id }) => id);
}

export type StoredSeries = SeriesName;

/** The series of these coins: candles first, and the widest interval first. */
export async function readStoredSeries(sql: Sql, coinIds: readonly string[]): Promise<StoredSeries[]> {
  return sql<StoredSeries[]>`
    select coin_id, interval, quote from market.series where coin_id = any(${coinIds as string[]}::text[]) and not isempty(covered)
    order by coin_id, interval > '24h', interval desc, quote desc`;
}
