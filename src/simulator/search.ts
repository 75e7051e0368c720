/** Search in a simulated market: first by the whole name, then by its beginning, then by any part of it. */
import type { SearchCategory, SearchResult } from '../contract/record/catalogue.ts';
import type { SearchQuery } from '../contract/record/market-data.ts';

type Searchable<T> = {
  readonly item: T;
  /** In lower case. */
  readonly words: readonly string[];
  /** A lower rank is better known. */
  readonly rank: number;
};

export function searchable<T>(item: T, words: readonly string[], rank = 0): Searchable<T> {
  return { item, words: words.map((word) => word.toLowerCase()), rank };
}

/** The results of the requested categories; a search by symbol finds only currencies. */
export function searchBy(
  { categories, symbolOnly }: SearchQuery,
  finders: { readonly [C in SearchCategory]: () => SearchResult[C] },
): SearchResult {
  const wanted = (Object.keys(finders) as SearchCategory[]).filter(
    (category) => categories.includes(category) && (category === 'currencies' || !symbolOnly),
  );
  return Object.fromEntries(wanted.map((category) => [category, finders[category]()]));
}

/** At most `limit` coins, the best first. With `symbolOnly`, only coins whose symbol is `q`, ignoring case. */
export function findCoins<T extends { readonly symbol: string }>(
  all: readonly Searchable<T>[],
  { q, symbolOnly, limit }: SearchQuery,
): T[] {
  const symbol = q.trim().toLowerCase();
  return find(symbolOnly ? all.filter(({ item }) => item.symbol.toLowerCase() === symbol) : all, q, limit);
}

/** At most `limit` items, the best first. */
export function find<T>(all: readonly Searchable<T>[], q: string, limit: number): T[] {
  const wanted = q.trim().toLowerCase();
  return all
    .map((one) => ({ ...one, score: scoreOf(one.words, wanted) }))
    .filter(({ score }) => score < 3)
    .sort((a, b) => a.score - b.score || a.rank - b.rank)
    .slice(0, limit)
    .map(({ item }) => item);
}

/** 0: the word itself, 1: its beginning, 2: a part of it, 3: none of these. */
function scoreOf(words: readonly string[], wanted: string): number {
  const scores = words.map((word) => {
    const at = word.indexOf(wanted);
    if (at < 0) return 3;
    return at > 0 ? 2 : word.length === wanted.length ? 0 : 1;
  });
  return Math.min(...scores);
}
