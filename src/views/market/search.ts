/**
 * Searches by name, symbol or id. Matches of the whole word come first, then those of its beginning, then of any part; equal matches by rank. Each
 * category has one text with all words by rank, so the first matches in it are the best.
 */

import type { Instant } from '../../clock.ts';
import {
  combineProvenance,
  completeAsOf,
  NO_DATA,
  type Provenance,
  partialAsOf,
  withProvenance,
} from '../../contract/answer/provenance.ts';
import type { SearchCategory, SearchResult } from '../../contract/record/catalogue.ts';
import type { Catalogue, SearchQuery } from '../../contract/record/market-data.ts';
import { yieldToEventLoop } from '../../core/concurrency/yield-to-event-loop.ts';
import { documentsSeenAt } from '../../store/catalogue/document.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createVersionedCache, type ViewDeps } from './data-versions.ts';

type Found<C extends SearchCategory> = NonNullable<SearchResult[C]>[number];

/** These characters mark a word in the text. Names contain neither. */
const BEFORE = '\u0001';
const AFTER = '\u0002';

/** The text of all words of one item. */
function textOf(words: readonly string[]): string {
  return words
    .map((word) => BEFORE + word.toLowerCase().replaceAll(BEFORE, ' ').replaceAll(AFTER, ' ') + AFTER)
    .join('');
}

type Index = {
  /** Indexes of at most `limit` texts, the best match first. */
  find(q: string, limit: number): number[];
};

/** `texts` in the order of ranks. */
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
          // Continues with the next item, because one match in each is enough.
          at = item + 1 < starts.length ? text.indexOf(pattern, starts[item + 1]) : -1;
        }
      }
      return [...found];
    },
  };
}

/** One category to search, and its provenance. `symbolOnly`: only coins whose symbol is `q`. */
type Searched = {
  find(q: string, limit: number, symbolOnly: boolean): readonly unknown[];
  readonly provenance: Provenance;
};

/** `items` in the order of ranks; `wordsOf`: the words by which each is found. */
function searched<T>(items: readonly T[], wordsOf: (item: T) => readonly string[], provenance: Provenance): Searched {
  const index = createIndex(items.map((item) => textOf(wordsOf(item))));
  return { find: (q, limit) => index.find(q, limit).map((i) => items[i]!), provenance };
}

export function createSearchView({ sql, versions }: ViewDeps): Catalogue['search'] {
  const names = createVersionedCache<Names>({ versions, maxSize: 1 });
  const currencies = createVersionedCache<Searched>({ versions, view: 'search', maxSize: 1 });
  const others = createVersionedCache<Searched>({ versions, view: 'search', maxSize: 3 });
  const namesOf = () => names(['coin names', 'coin_rename'], 'all', () => readNames(sql));
  const sources: { readonly [C in SearchCategory]: () => Promise<Searched> } = {
    currencies: () => currencies(['coin', 'coin_rename'], 'all', async () => rankNames(sql, await namesOf())),
    // Upstream names ICOs only in its own search, so the warehouse has none.
    icos: async () => ({ find: () => [], provenance: NO_DATA }),
    exchanges: () => others(['exchange'], 'exchanges', () => readExchanges(sql)),
    people: () => others(['document person'], 'people', () => readPeople(sql)),
    tags: () => others(['document tag'], 'tags', () => readTags(sql)),
  };
  return async ({ q, categories, symbolOnly, limit }: SearchQuery) => {
    const result: { [C in SearchCategory]?: readonly unknown[] } = {};
    const provenances: Provenance[] = [];
    for (const category of Object.keys(sources) as SearchCategory[]) {
      if (!categories.includes(category) || (symbolOnly && category !== 'currencies')) continue;
      const { find, provenance } = await sources[category]();
      result[category] = find(q, limit, symbolOnly);
      provenances.push(provenance);
    }
    return withProvenance(result as SearchResult, provenances.length === 0 ? NO_DATA : combineProvenance(provenances));
  };
}

type Coin = Found<'currencies'>;

/** All coins without their ranks, in the order of their ids. */
type Names = {
  readonly coins: readonly (CamelCased<Omit<Coin, 'rank'>> & { readonly isFindable: boolean })[];
  readonly texts: readonly string[];
  /** By symbol in lower case: the indexes of the coins that have it. */
  readonly symbols: ReadonlyMap<string, readonly number[]>;
};

/** Number of rows that are read at a time, in a millisecond or two, so that other requests are served in between. */
const PIECE = 1_000;

/** This is the slow part. It runs again only when a name has changed. */
async function readNames(sql: Sql): Promise<Names> {
  const coins: Names['coins'][number][] = [];
  const texts: string[] = [];
  const symbols = new Map<string, number[]>();
  // An inactive coin that has another id now is found under the new id.
  const query = sql<Names['coins'][number][]>`
    select id, name, symbol, is_new, is_active, type,
      is_active or not exists (select from market.coin_rename r where r.old_id = c.id) as is_findable
    from market.coin c order by id`;
  for await (const piece of query.cursor(PIECE)) {
    for (const coin of piece) {
      const symbol = coin.symbol.toLowerCase();
      const same = symbols.get(symbol);
      if (same) same.push(coins.length);
      else symbols.set(symbol, [coins.length]);
      coins.push(coin);
      texts.push(coin.isFindable ? textOf([coin.symbol, coin.name, coin.id]) : '');
    }
  }
  return { coins, texts, symbols };
}

type Ranks = { readonly ranks: readonly number[]; readonly at: Instant | null };

async function readRanks(sql: Sql): Promise<Ranks> {
  const [row] = await sql<{ ranks: string | null; at: Instant | null }[]>`
    select array_agg(rank order by id)::text as ranks, max(last_seen_at) as at from market.coin`;
  await yieldToEventLoop();
  return { ranks: row!.ranks === null ? [] : row!.ranks.slice(1, -1).split(',').map(Number), at: row!.at };
}

/** Sorts the coins: active ones first, by rank, those without a rank last. */
async function rankNames(sql: Sql, read: Names): Promise<Searched> {
  let names = read;
  let { ranks, at } = await readRanks(sql);
  // Coins are never deleted, so equal counts mean the same coins. Otherwise some were added between the two reads.
  while (ranks.length !== names.coins.length) {
    names = await readNames(sql);
    ({ ranks, at } = await readRanks(sql));
  }
  const { coins, texts, symbols } = names;
  await yieldToEventLoop();
  const places = coins.map(({ isActive }, i) => (isActive ? 0 : ACTIVE_BEFORE) + (ranks[i] || LAST_RANK));
  // Numbers sort ten times faster. At the same place the smaller index comes first, which is the smaller id.
  const order = new Float64Array(places.length);
  places.forEach((place, i) => {
    order[i] = place * MAX_COINS + i;
  });
  await yieldToEventLoop();
  order.sort();
  const byPlace: number[] = [];
  for (const one of order) byPlace.push(one % MAX_COINS);
  await yieldToEventLoop();
  const index = createIndex(byPlace.map((i) => texts[i]!));
  const coinAt = (i: number): Coin => {
    const { id, name, symbol, isNew, isActive, type } = coins[i]!;
    return { id, name, symbol, rank: ranks[i]!, is_new: isNew, is_active: isActive, type };
  };
  /** Several coins can share a symbol. */
  const findSymbol = (q: string, limit: number) =>
    (symbols.get(q.trim().toLowerCase()) ?? [])
      .filter((i) => coins[i]!.isFindable)
      .sort((a, b) => places[a]! - places[b]! || a - b)
      .slice(0, limit);
  return {
    provenance: completeAsOf(at),
    find: (q, limit, symbolOnly) =>
      (symbolOnly ? findSymbol(q, limit) : index.find(q, limit).map((i) => byPlace[i]!)).map(coinAt),
  };
}

/** Greater than any rank: int4. */
const LAST_RANK = 2 ** 31;
const ACTIVE_BEFORE = 2 ** 32;
/** An upper bound, small enough that every sort number is exact. */
const MAX_COINS = 2 ** 20;

/** The exchanges of the newest list: for all others, the paths and tools of an exchange answer that there is none. */
async function readExchanges(sql: Sql): Promise<Searched> {
  const rows = await sql<Found<'exchanges'>[]>`
    select id, name, adjusted_rank as rank from market.exchange
    where last_seen_at = (select max(last_seen_at) from market.exchange)
    order by is_active desc, adjusted_rank nulls last, id`;
  const [newest] = await sql<{ at: Instant | null }[]>`select max(last_seen_at) as at from market.exchange`;
  return searched(rows, (exchange) => [exchange.name, exchange.id], completeAsOf(newest!.at));
}

const personOf = createRecordReader<Found<'people'>>(['id', 'name', 'teams_count']);

async function readPeople(sql: Sql): Promise<Searched> {
  const rows = await sql<CamelCased<Found<'people'>>[]>`
    select p.id, p.name, p.teams as teams_count from market.person p
    join market.document d on d.kind = 'person' and d.id = p.id and d.gone_at is null order by p.teams desc nulls last, p.id`;
  const at = await documentsSeenAt(sql, 'person');
  // Upstream has no list of people. The warehouse reads only the people of tracked coins.
  const provenance = at === null ? NO_DATA : partialAsOf(at);
  return searched(rows.map(personOf), (person) => [person.name, person.id], provenance);
}

const tagOf = createRecordReader<Found<'tags'>>(['id', 'name', 'coin_counter', 'ico_counter']);

async function readTags(sql: Sql): Promise<Searched> {
  const rows = await sql<CamelCased<Found<'tags'>>[]>`
    select id, name, coins as coin_counter, icos as ico_counter from market.tag where gone_at is null order by place, id`;
  const provenance = completeAsOf(await documentsSeenAt(sql, 'tag'));
  return searched(rows.map(tagOf), (tag) => [tag.name, tag.id], provenance);
}
