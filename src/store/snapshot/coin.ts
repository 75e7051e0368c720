/** The coins. No coin is ever deleted, and every change of name, symbol and activity is stored. */
import { and, desc, getTableColumns, gt, max, not, or, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { nearestNames } from '../../core/settings/did-you-mean.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { tables } from '../connection/tables.ts';
import { coin } from '../schema/coins.ts';
import { writeArray, writeInstants, writeNumbers } from '../values/array-types.ts';
import { storableText } from '../values/storable-text.ts';

const { rankSeenAt: _rank, position: _position, answer: _answer, ...COLUMNS } = getTableColumns(coin);
type Coin = Readonly<Pick<typeof coin.$inferSelect, keyof typeof COLUMNS>>;

/** A row of the list of coins, ready to be stored. */
export type ListedCoin = CoinSummary & {
  /** The place in the list, from 0. */
  readonly position?: number;
  /** The JSON of the row, if JSON made from its fields would differ. */
  readonly answer?: string | null;
};

/** The facts in tickers about their coins, as parallel arrays; each coin once. */
type TickerFacts = {
  readonly coinId: readonly string[];
  readonly rank: readonly number[];
  /** Instants; null or NaN where the ticker has none. */
  readonly firstDataAt: readonly (Instant | null)[];
};

/** True for coins of the latest list. The upstream renamed or removed all other ids, and has no data for them. */
const IS_LISTED = raw`${coin.lastSeenAt} = (select max(last_seen_at) from market.coin)`;
/** Sorts by rank; coins without a rank (0) come last. */
const BEST_FIRST = raw`nullif(${coin.rank}, 0) nulls last`;

/** Locks coins and tickers until the transaction ends: answers of both have ranks and compare their instants, so only one is written at a time. */
export function lockCatalogue(tx: SqlOrTransaction) {
  return takeLock(tx, 'coins and tickers');
}

/**
 * Stores these coins as seen at `at`. Later facts stay. Changes go to `market.coin_change`. Resolves to the new ids.
 */
export async function recordCoins(
  sql: SqlOrTransaction,
  coins: readonly ListedCoin[],
  at: Instant,
): Promise<readonly string[]> {
  const once = [...new Map(coins.map((coin) => [coin.id, coin])).values()];
  if (once.length === 0) return [];
  return withFreshPlans(sql, async (tx) => {
    await lockCatalogue(tx);
    const appeared = await tx<{ id: string }[]>`
    with given as (
      select id, name, symbol, rank, type, coalesce(is_new, false) as is_new, is_active, position, answer,
        ${at}::timestamptz as at
      from unnest(${once.map((c) => c.id)}::text[], ${once.map((c) => storableText(c.name))}::text[],
        ${once.map((c) => storableText(c.symbol))}::text[], ${once.map((c) => c.rank ?? 0)}::int[],
        ${once.map((c) => (c.type == null ? null : storableText(c.type)))}::text[],
        ${once.map((c) => String(c.is_new ?? false))}::text[]::bool[], ${once.map((c) => String(c.is_active))}::text[]::bool[],
        ${once.map((c) => c.position ?? null)}::int[], ${once.map((c) => c.answer ?? null)}::text[])
        as g(id, name, symbol, rank, type, is_new, is_active, position, answer)
    ), changed as (
      insert into market.coin_change (coin_id, seen_at, field, old_value, new_value)
      select c.id, g.at, v.field, v.old_value, v.new_value
      from given g
      join market.coin c on c.id = g.id and c.last_seen_at <= g.at
        and (c.name, c.symbol, c.is_active) is distinct from (g.name, g.symbol, g.is_active)
      cross join lateral (values
        ('name', c.name, g.name), ('symbol', c.symbol, g.symbol), ('is_active', c.is_active::text, g.is_active::text)
      ) v(field, old_value, new_value)
      where v.old_value <> v.new_value
      on conflict do nothing
    ), ranked as (
      -- A ticker with the same rank does not change the coin.
      select g.*, greatest(c.rank_seen_at, t.seen_at) as rank_seen_at
      from given g left join market.coin c on c.id = g.id left join market.ticker t on t.coin_id = g.id
    ), written as (
      insert into market.coin as c (id, name, symbol, rank, type, is_new, is_active, position, answer,
        first_seen_at, last_seen_at, rank_seen_at)
      select id, name, symbol, rank, type, is_new, is_active, position, answer, at, at, greatest(at, rank_seen_at)
      from ranked order by id
      on conflict (id) do update
      set name = excluded.name, symbol = excluded.symbol, type = excluded.type, is_new = excluded.is_new,
        is_active = excluded.is_active, position = excluded.position, answer = excluded.answer,
        last_seen_at = excluded.last_seen_at,
        rank = case when excluded.rank_seen_at <= excluded.last_seen_at then excluded.rank else c.rank end,
        rank_seen_at = excluded.rank_seen_at
      where c.last_seen_at <= excluded.last_seen_at
      returning id, xmax = 0 as is_new
    )
    select id from written where is_new`;
    return appeared.map((row) => row.id);
  });
}

/**
 * Stores rank and first data of known coins, as seen at `at`; it ignores other coins. An older answer changes no rank, and adds the
 * first data only if they are unknown.
 */
export async function recordTickers(sql: SqlOrTransaction, tickers: TickerFacts, at: Instant): Promise<void> {
  if (tickers.coinId.length === 0) return;
  await withFreshPlans(sql, async (tx) => {
    await lockCatalogue(tx);
    await tx`
    with given as (
      select id, rank, to_timestamp(first) as first_data_at, ${at}::timestamptz as at
      from unnest(${writeArray(tickers.coinId)}::text[], ${writeNumbers(tickers.rank)}::int[],
        ${writeInstants(tickers.firstDataAt)}::float8[]) as g(id, rank, first)
    ), told as (
      select g.id, g.at,
        case when y.is_younger then c.rank else g.rank end as rank,
        case when y.is_younger then coalesce(c.first_data_at, g.first_data_at)
          else coalesce(g.first_data_at, c.first_data_at) end as first_data_at
      from given g
      join market.coin c on c.id = g.id
      left join market.ticker t on t.coin_id = g.id
      cross join lateral (select greatest(c.rank_seen_at, t.seen_at) > g.at as is_younger) y
    )
    update market.coin c
    set rank = t.rank, first_data_at = t.first_data_at, rank_seen_at = greatest(c.rank_seen_at, t.at)
    from told t
    where c.id = t.id and (c.rank, c.first_data_at) is distinct from (t.rank, t.first_data_at)`;
  });
}

/** The ids that belong to no known coin. */
export async function unknownCoins(sql: SqlOrTransaction, ids: readonly string[]): Promise<string[]> {
  const rows = await withFreshPlans(
    sql,
    (tx) => tx<{ id: string }[]>`
      select u.id from unnest(${writeArray(ids)}::text[]) as u(id)
      where not exists (select from market.coin c where c.id = u.id)`,
  );
  return rows.map((row) => row.id);
}

/** The coins in the order of `ids`; unknown ids are left out. */
export async function findCoins(sql: SqlOrTransaction, ids: readonly string[]): Promise<Coin[]> {
  const isRequested = raw`${coin.id} = any(${raw.param(ids)}::text[])`;
  const found = await tables(sql).select(COLUMNS).from(coin).where(isRequested);
  const byId = new Map(found.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** Active coins of the latest list that have a rank, best first. */
export async function topCoins(sql: SqlOrTransaction, limit: number): Promise<Coin[]> {
  const isRanked = and(coin.isActive, gt(coin.rank, 0), IS_LISTED);
  return tables(sql).select(COLUMNS).from(coin).where(isRanked).orderBy(coin.rank, coin.id).limit(limit);
}

/** Active coins of the latest list, best rank first; coins without a rank last. */
export async function activeCoins(sql: SqlOrTransaction): Promise<Coin[]> {
  const isActive = and(coin.isActive, IS_LISTED);
  return tables(sql).select(COLUMNS).from(coin).where(isActive).orderBy(BEST_FIRST, coin.id);
}

/** Coins that are no longer active, or no longer in the list; the last seen first. */
export async function inactiveCoins(sql: SqlOrTransaction): Promise<Coin[]> {
  const isInactive = or(not(coin.isActive), not(IS_LISTED));
  return tables(sql).select(COLUMNS).from(coin).where(isInactive).orderBy(desc(coin.lastSeenAt), coin.id);
}

/**
 * Coins that were among the first `limit` by market capitalisation at the end of any month, according to stored data: final daily candles and
 * prices in US dollars, tickers of that day, and the present ranks. The best place is first. So coins that lost rank, or died, are included.
 */
export async function coinsEverInTop(sql: SqlOrTransaction, limit: number): Promise<Coin[]> {
  const found = await sql<{ id: string }[]>`
    with day_end as (
      select s.coin_id, c.open_time as day, c.market_cap
      from market.series s join market.candle c on c.series_id = s.id and c.interval = '24h' and s.covered @> c.open_time
      where s.interval = '24h' and s.quote = 'usd' and c.market_cap > 0
        and extract(day from (c.open_time + interval '1 day') at time zone 'UTC') = 1
      union all
      select s.coin_id, p.time, p.market_cap
      from market.series s join market.price p on p.series_id = s.id and s.covered @> p.time
      where s.interval = 'prices-1d' and s.quote = 'usd' and p.market_cap > 0
        and extract(day from (p.time + interval '1 day') at time zone 'UTC') = 1
      union all
      select coin_id, date_trunc('day', at, 'UTC'), max(market_cap) from market.ticker_history
      where market_cap > 0 and extract(day from (at + interval '1 day') at time zone 'UTC') = 1 group by 1, 2
    ), placed as (
      select coin_id, rank() over (partition by day order by max(market_cap) desc) as place from day_end group by day, coin_id
      union all
      select id, rank from market.coin where is_active and rank > 0
    ), best as (
      select coin_id, min(place) as place from placed group by coin_id
    )
    select coin_id as id from best where place <= ${limit} order by place, coin_id`;
  return findCoins(
    sql,
    found.map(({ id }) => id),
  );
}

/** The number of coins in the latest list. */
export async function countListed(sql: SqlOrTransaction): Promise<number> {
  return tables(sql).$count(coin, IS_LISTED);
}

/** When the list of coins was last read; null when it never was. */
export async function catalogueSeenAt(sql: SqlOrTransaction): Promise<Instant | null> {
  const [row] = await tables(sql)
    .select({ at: max(coin.lastSeenAt) })
    .from(coin);
  return row!.at;
}

/**
 * The ids that `text` probably means, nearest first. The text may be a misspelt id, or a symbol or a name (`btc`, `Bitcoin`).
 * Of coins with the same symbol, the better rank comes first.
 */
export async function nearestCoinIds(sql: SqlOrTransaction, text: string, limit: number): Promise<string[]> {
  const coins = await tables(sql)
    .select({ id: coin.id, symbol: coin.symbol, name: coin.name })
    .from(coin)
    .orderBy(desc(coin.isActive), BEST_FIRST, coin.id);
  const idsByName = new Map<string, string[]>();
  for (const { id, symbol, name } of coins) {
    for (const key of new Set([id, symbol, name].map(asIdPart))) {
      const ids = idsByName.get(key);
      if (ids) ids.push(id);
      else idsByName.set(key, [id]);
    }
  }
  const near = nearestNames(asIdPart(text), idsByName.keys(), limit);
  return [...new Set(near.flatMap((key) => idsByName.get(key) ?? []))].slice(0, limit);
}

/** The spelling of ids: `Bitcoin Cash` → `bitcoin-cash`. */
function asIdPart(text: string): string {
  return text.trim().toLowerCase().replaceAll(/\s+/g, '-');
}
