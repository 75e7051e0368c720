/**
 * Search by name, symbol or id: the whole word first, then its beginning, then any part of it; the better known before the lesser. Of each
 * category one text holds all words in that order, so that the first places where the wanted one stands are the best.
 */

import type { Instant } from '../../clock.ts';
import { type Basis, NOTHING, partAsOf, standingOn, together, wholeAsOf } from '../../contract/answer/provenance.ts';
import type { SearchCategory, SearchResult } from '../../contract/record/catalogue.ts';
import type { Catalogue, SearchQuery } from '../../contract/record/market-data.ts';
import { othersFirst } from '../../core/yield-to-event-loop.ts';
import { documentsSeenAt } from '../../store/catalogue/document.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { Topics, Versions } from './data-versions.ts';
import { createKept } from './versioned-cache.ts';

type Found<C extends SearchCategory> = NonNullable<SearchResult[C]>[number];

/** Names can hold neither. */
const BEFORE = '\u0001';
const AFTER = '\u0002';

/** What something is found by. */
function textOf(words: readonly string[]): string {
  return words
    .map((word) => BEFORE + word.toLowerCase().replaceAll(BEFORE, ' ').replaceAll(AFTER, ' ') + AFTER)
    .join('');
}

type Index = {
  /** Numbers of at most `limit`, the best first. */
  find(q: string, limit: number): number[];
};

/** Of `texts` from the best known to the least. */
function createIndex(texts: readonly string[]): Index {
  const starts = new Uint32Array(texts.length);
  let length = 0;
  texts.forEach((one, i) => {
    starts[i] = length;
    length += one.length;
  });
  const text = texts.join('');
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
      return [...found];
    },
  };
}

/** What is searched, and what that stands on. */
type Searched<T> = { find(q: string, limit: number): readonly T[]; readonly basis: Basis };

/** `items` from the best known to the least; `wordsOf` what each is found by. */
function searched<T>(items: readonly T[], wordsOf: (item: T) => readonly string[], basis: Basis): Searched<T> {
  const index = createIndex(items.map((item) => textOf(wordsOf(item))));
  return { find: (q, limit) => index.find(q, limit).map((i) => items[i]!), basis };
}

export function createSearchView({
  sql,
  versions,
}: {
  readonly sql: Sql;
  readonly versions: Versions;
}): Catalogue['search'] {
  const names = createKept<Names>({ most: 1 });
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
      const { find, findSymbol, basis } = await currencies.get(
        'all',
        `${topics.coin} ${topics.coin_rename}`,
        async () =>
          rankNames(sql, await names.get('all', `${topics['coin names']} ${topics.coin_rename}`, () => readNames(sql))),
      );
      result.currencies = (symbolOnly ? findSymbol(q, limit) : find(q, limit)) as never[];
      bases.push(basis);
    }
    // Upstream names no ICO anywhere but here.
    if (wants('icos')) {
      result.icos = [];
      bases.push(NOTHING);
    }
    for (const category of ['exchanges', 'people', 'tags'] as const) {
      if (!wants(category)) continue;
      const { find, basis } = await indexOf(category, topics);
      result[category] = find(q, limit) as never[];
      bases.push(basis);
    }
    return standingOn(result as SearchResult, bases.length === 0 ? NOTHING : together(bases));
  };
}

type Coin = Found<'currencies'>;
/** Symbols are shared: by many, now and then. */
type Currencies = Searched<Coin> & { findSymbol(q: string, limit: number): readonly Coin[] };

/** All coins but for their ranks, in the order of their ids. */
type Names = {
  readonly coins: readonly (CamelCased<Omit<Coin, 'rank'>> & { readonly isFound: boolean })[];
  readonly texts: readonly string[];
  /** In lower case, with the numbers of those that have them. */
  readonly symbols: ReadonlyMap<string, readonly number[]>;
};

/** So many at a time, in a millisecond or two: others are answered meanwhile. */
const PIECE = 1_000;

/** What takes long: it is read anew only when a name has changed. */
async function readNames(sql: Sql): Promise<Names> {
  const coins: Names['coins'][number][] = [];
  const texts: string[] = [];
  const symbols = new Map<string, number[]>();
  // An inactive coin that has another id now is found by that.
  const query = sql<Names['coins'][number][]>`
    select id, name, symbol, is_new, is_active, type,
      is_active or not exists (select from market.coin_rename r where r.old_id = c.id) as is_found
    from market.coin c order by id`;
  for await (const piece of query.cursor(PIECE)) {
    for (const coin of piece) {
      const symbol = coin.symbol.toLowerCase();
      const same = symbols.get(symbol);
      if (same) same.push(coins.length);
      else symbols.set(symbol, [coins.length]);
      coins.push(coin);
      texts.push(coin.isFound ? textOf([coin.symbol, coin.name, coin.id]) : '');
    }
  }
  return { coins, texts, symbols };
}

type Ranks = { readonly ranks: readonly number[]; readonly at: Instant | null };

async function readRanks(sql: Sql): Promise<Ranks> {
  const [row] = await sql<{ ranks: string | null; at: Instant | null }[]>`
    select array_agg(rank order by id)::text as ranks, max(last_seen_at) as at from market.coin`;
  await othersFirst();
  return { ranks: row!.ranks === null ? [] : row!.ranks.slice(1, -1).split(',').map(Number), at: row!.at };
}

/** Puts them into their order: the active ones first, by rank, those without one last. */
async function rankNames(sql: Sql, read: Names): Promise<Currencies> {
  let names = read;
  let { ranks, at } = await readRanks(sql);
  // Coins are never taken away: as many are the same. Some came between the two readings.
  while (ranks.length !== names.coins.length) {
    names = await readNames(sql);
    ({ ranks, at } = await readRanks(sql));
  }
  const { coins, texts, symbols } = names;
  await othersFirst();
  const places = coins.map(({ isActive }, i) => (isActive ? 0 : ACTIVE_BEFORE) + (ranks[i] || LAST_RANK));
  // As numbers, which are sorted in a tenth of the time: of the same place the lesser number, which is the lesser id.
  const order = new Float64Array(places.length);
  places.forEach((place, i) => {
    order[i] = place * MOST_COINS + i;
  });
  await othersFirst();
  order.sort();
  const byPlace: number[] = [];
  for (const one of order) byPlace.push(one % MOST_COINS);
  await othersFirst();
  const index = createIndex(byPlace.map((i) => texts[i]!));
  const told = (i: number): Coin => {
    const { id, name, symbol, isNew, isActive, type } = coins[i]!;
    return { id, name, symbol, rank: ranks[i]!, is_new: isNew, is_active: isActive, type };
  };
  return {
    basis: wholeAsOf(at),
    find: (q, limit) => index.find(q, limit).map((i) => told(byPlace[i]!)),
    findSymbol: (q, limit) =>
      (symbols.get(q.trim().toLowerCase()) ?? [])
        .filter((i) => coins[i]!.isFound)
        .sort((a, b) => places[a]! - places[b]! || a - b)
        .slice(0, limit)
        .map(told),
  };
}

/** Greater than any rank: int4. */
const LAST_RANK = 2 ** 31;
const ACTIVE_BEFORE = 2 ** 32;
/** More than there can be: with it the greatest number is still exact. */
const MOST_COINS = 2 ** 20;

type Newest = { readonly at: Instant | null };

const personOf = createRecordReader<Found<'people'>>(['id', 'name', 'teams_count']);
const tagOf = createRecordReader<Found<'tags'>>(['id', 'name', 'coin_counter', 'ico_counter']);

const READ = {
  exchanges: async (sql: Sql) => {
    const rows = await sql<Found<'exchanges'>[]>`
      select id, name, adjusted_rank as rank from market.exchange order by is_active desc, adjusted_rank nulls last, id`;
    const [newest] = await sql<Newest[]>`select max(last_seen_at) as at from market.exchange`;
    return searched(rows, (exchange) => [exchange.name, exchange.id], wholeAsOf(newest!.at));
  },
  people: async (sql: Sql) => {
    const rows = await sql<CamelCased<Found<'people'>>[]>`
      select p.id, p.name, p.teams as teams_count from market.person p
      join market.document d on d.kind = 'person' and d.id = p.id and d.gone_at is null order by p.teams desc nulls last, p.id`;
    const at = await documentsSeenAt(sql, 'person');
    // Upstream lists no people: only those of coins that are tracked are asked about.
    return searched(rows.map(personOf), (person) => [person.name, person.id], at === null ? NOTHING : partAsOf(at));
  },
  tags: async (sql: Sql) => {
    const rows = await sql<CamelCased<Found<'tags'>>[]>`
      select id, name, coins as coin_counter, icos as ico_counter from market.tag where gone_at is null order by place, id`;
    const basis = wholeAsOf(await documentsSeenAt(sql, 'tag'));
    return searched(rows.map(tagOf), (tag) => [tag.name, tag.id], basis);
  },
} as const;
