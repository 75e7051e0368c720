/** Finding records by what they are called: the whole name first, then its beginning, then any part of it. */

export type Searchable<T> = {
  readonly item: T;
  /** In lower case; the better known, the lower. */
  readonly words: readonly string[];
  readonly rank: number;
};

/** At most `limit` of them, the best first. */
export function find<T>(all: Iterable<Searchable<T>>, q: string, limit: number): T[] {
  const wanted = q.trim().toLowerCase();
  const found: { item: T; score: number; rank: number }[] = [];
  for (const { item, words, rank } of all) {
    const score = scoreOf(words, wanted);
    if (score < 3) found.push({ item, score, rank });
  }
  return found
    .sort((a, b) => a.score - b.score || a.rank - b.rank)
    .slice(0, limit)
    .map(({ item }) => item);
}

/** 0 the word itself, 1 its beginning, 2 a part of it, 3 none of these. */
function scoreOf(words: readonly string[], wanted: string): number {
  let best = 3;
  for (const word of words) {
    const at = word.indexOf(wanted);
    if (at === 0 && word.length === wanted.length) return 0;
    if (at >= 0) best = Math.min(best, at === 0 ? 1 : 2);
  }
  return best;
}
