/**
 * Search by name, symbol or id: the whole word first, then its beginning, then any part of it; the better known before the lesser. Of each
 * category one text holds all words in that order, so that the first places where the wanted one stands are the best.
 */
import type { Instant } from '../clock.ts';
import { type Basis, NOTHING, partAsOf, standingOn, together, wholeAsOf } from '../contract/basis.ts';
import type { SearchCategory, SearchResult } from '../contract/catalogue.ts';
import type { Catalogue, SearchQuery } from '../contract/market-data.ts';
import type { Sql } from '../store/connect.ts';
import { documentsSeenAt } from '../store/document.ts';
import { createKept } from './kept.ts';
import type { Topics, Versions } from './versions.ts';

type Found<C extends SearchCategory> = NonNullable<SearchResult[C]>[number];

/** Names can hold neither. */
const BEFORE = '\u0001';
const AFTER = '\u0002';

export type Index<T> = {
  /** At most `limit`, the best first. */
  find(q: string, limit: number): T[];
};

/** `items` from the best known to the least; `wordsOf` what each is found by. */
export function createIndex<T>(items: readonly T[], wordsOf: (item: T) => readonly string[]): Index<T> {
  const starts = new Array<number>(items.length);
  const parts: string[] = [];
  let length = 0;
  items.forEach((item, i) => {
    starts[i] = length;
    const words = wordsOf(item).map(
      (word) => BEFORE + word.toLowerCase().replaceAll(BEFORE, ' ').replaceAll(AFTER, ' ') + AFTER,
    );
    const text = words.join('');
    parts.push(text);
    length += text.length;
  });
  const text = parts.join('');
  const itemAt = (place: number): number => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  return {
    find: (q, limit) => {
      const wanted = q.trim().toLowerCase();
      const found = new Set<number>();
      if (wanted === '' || wanted.includes(BEFORE) || wanted.includes(AFTER)) return [];
      for (const pattern of [BEFORE + wanted + AFTER, BEFORE + wanted, wanted]) {
        for (let at = text.indexOf(pattern); at >= 0 && found.size < limit; ) {
          const item = itemAt(at);
          found.add(item);
          // On with the next one: once is enough.
          at = item + 1 < starts.length ? text.indexOf(pattern, starts[item + 1]) : -1;
        }
      }
      return [...found].map((i) => items[i]!);
    },
  };
}

type CoinFound = Found<'currencies'>;
/** What is searched, and what that stands on. */
type Searched<T> = { readonly index: Index<T>; readonly basis: Basis };
type Currencies = Searched<CoinFound> & { readonly bySymbol: ReadonlyMap<string, readonly CoinFound[]> };

export function createSearchView({
  sql,
  versions,
}: {
  readonly sql: Sql;
  readonly versions: Versions;
}): Catalogue['search'] {
  const currencies = createKept<Currencies>({ onGet: versions.counted('search'), most: 1 });
  const others = createKept<Searched<never>>({ onGet: versions.counted('search'), most: 3 });
  const indexOf = async (category: 'exchanges' | 'people' | 'tags', topics: Topics) => {
    const version = { exchanges: topics.exchange, people: topics['document person'], tags: topics['document tag'] }[
      category
    ];
    return others.get(category, String(version), () => READ[category](sql) as Promise<Searched<never>>);
  };
  return async (query: SearchQuery) => {
    const { q, categories, symbolOnly, limit } = query;
    const topics = await versions.topics();
    const result: { -readonly [C in SearchCategory]?: readonly never[] } = {};
    const bases: Basis[] = [];
    const wants = (category: SearchCategory) =>
      categories.includes(category) && (category === 'currencies' || !symbolOnly);
    if (wants('currencies')) {
      const { index, bySymbol, basis } = await currencies.get('all', `${topics.coin} ${topics.coin_rename}`, () =>
        readCurrencies(sql),
      );
      const found = symbolOnly ? (bySymbol.get(q.trim().toLowerCase()) ?? []).slice(0, limit) : index.find(q, limit);
      result.currencies = found as never[];
      bases.push(basis);
    }
    // Upstream names no ICO anywhere but here.
    if (wants('icos')) {
      result.icos = [];
      bases.push(NOTHING);
    }
    for (const category of ['exchanges', 'people', 'tags'] as const) {
      if (!wants(category)) continue;
      const { index, basis } = await indexOf(category, topics);
      result[category] = index.find(q, limit);
      bases.push(basis);
    }
    return standingOn(result as SearchResult, bases.length === 0 ? NOTHING : together(bases));
  };
}

async function readCurrencies(sql: Sql): Promise<Currencies> {
  const rows: CoinFound[] = [];
  // Not all at once: others are answered meanwhile.
  const query = sql<CoinFound[]>`
    select id, name, symbol, rank, is_new, is_active, type from market.coin c
    where not exists (select from market.coin_rename r where r.old_id = c.id and not c.is_active)
    order by is_active desc, nullif(rank, 0) nulls last, id`;
  for await (const piece of query.cursor(5_000)) rows.push(...piece);
  const bySymbol = new Map<string, CoinFound[]>();
  for (const coin of rows) {
    const symbol = coin.symbol.toLowerCase();
    const same = bySymbol.get(symbol);
    if (same) same.push(coin);
    else bySymbol.set(symbol, [coin]);
  }
  const [newest] = await sql<Newest[]>`
    select (extract(epoch from max(last_seen_at)) * 1000)::float8 as at from market.coin`;
  const index = createIndex(rows, (coin) => [coin.symbol, coin.name, coin.id]);
  return { index, bySymbol, basis: wholeAsOf(newest!.at) };
}

type Newest = { readonly at: Instant | null };

const READ = {
  exchanges: async (sql: Sql) => {
    const rows = await sql<Found<'exchanges'>[]>`
      select id, name, adjusted_rank as rank from market.exchange order by is_active desc, adjusted_rank nulls last, id`;
    const [newest] = await sql<Newest[]>`
      select (extract(epoch from max(last_seen_at)) * 1000)::float8 as at from market.exchange`;
    return { index: createIndex(rows, (exchange) => [exchange.name, exchange.id]), basis: wholeAsOf(newest!.at) };
  },
  people: async (sql: Sql) => {
    const rows = await sql<Found<'people'>[]>`
      select p.id, p.name, p.teams as teams_count from market.person p
      join market.document d on d.kind = 'person' and d.id = p.id and d.gone_at is null order by p.teams desc nulls last, p.id`;
    const at = await documentsSeenAt(sql, 'person');
    // Upstream lists no people: only those of coins that are tracked are asked about.
    return {
      index: createIndex(rows, (person) => [person.name, person.id]),
      basis: at === null ? NOTHING : partAsOf(at),
    };
  },
  tags: async (sql: Sql) => {
    const rows = await sql<Found<'tags'>[]>`
      select id, name, coins as coin_counter, icos as ico_counter from market.tag where gone_at is null order by place, id`;
    const basis = wholeAsOf(await documentsSeenAt(sql, 'tag'));
    return { index: createIndex(rows, (tag) => [tag.name, tag.id]), basis };
  },
} as const;
