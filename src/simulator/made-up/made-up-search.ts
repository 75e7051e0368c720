/** Search in the made-up market: everything that has a name, by name, symbol or id. */
import type { Instant } from '../../clock.ts';
import type { SearchResult, Tag } from '../../contract/record/catalogue.ts';
import type { SearchQuery } from '../../contract/record/market-data.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { find, type Searchable } from '../search.ts';
import type { MadeUpCoin } from './made-up-coin.ts';
import { EXCHANGE_NAMES } from './made-up-exchanges.ts';
import { everybody, positionsOf } from './made-up-people.ts';
import type { MadeUpIco } from './made-up-tags.ts';
import type { MadeUpWorld } from './made-up-world.ts';

export function createMadeUpSearch({
  world,
  icos,
  summaryOf,
  tags,
}: {
  world: MadeUpWorld;
  icos: readonly MadeUpIco[];
  summaryOf: (coin: MadeUpCoin, now: Instant) => CoinSummary;
  tags: () => readonly Tag[];
}): (query: SearchQuery, now: Instant) => SearchResult {
  const coins = once(() => world.coins.map((coin) => searchable(coin, [coin.symbol, coin.name, coin.id])));
  const people = once(() => everybody(world).map((person) => searchable(person, [person.name, person.id])));
  const projects = once(() => icos.map((ico) => searchable(ico, [ico.symbol, ico.name, ico.id])));
  const exchanges = EXCHANGE_NAMES.map((name, i) =>
    searchable({ id: name.toLowerCase(), name, rank: i + 1 }, [name], i),
  );

  const currencies = ({ q, symbolOnly, limit }: SearchQuery, now: Instant) => {
    const known = coins()
      .filter(({ item }) => item.start < now)
      // The dead have no rank: they come last.
      .map((one) => ({ ...one, rank: now < one.item.end ? one.item.index : 1e6 + one.item.index }));
    const symbol = q.trim().toLowerCase();
    const candidates = symbolOnly ? known.filter(({ item }) => item.symbol.toLowerCase() === symbol) : known;
    return find(candidates, q, limit).map((coin) => summaryOf(coin, now));
  };
  const persons = ({ q, limit }: SearchQuery, now: Instant) =>
    find(people(), q, Number.MAX_SAFE_INTEGER)
      .map(({ number, id, name }) => ({ id, name, teams_count: positionsOf(world, number, now).length }))
      .filter(({ teams_count }) => teams_count > 0)
      .slice(0, limit);

  return (query, now) => {
    const { q, categories, symbolOnly, limit } = query;
    const wants = (category: (typeof categories)[number]) =>
      categories.includes(category) && (category === 'currencies' || !symbolOnly);
    return {
      ...(wants('currencies') && { currencies: currencies(query, now) }),
      ...(wants('icos') && {
        icos: find(
          projects().filter(({ item }) => item.start < now),
          q,
          limit,
        ).map(({ id, name, symbol }) => ({ id, name, symbol, is_new: false })),
      }),
      ...(wants('exchanges') && { exchanges: find(exchanges, q, limit) }),
      ...(wants('people') && { people: persons(query, now) }),
      ...(wants('tags') && {
        tags: find(
          tags().map((tag, i) => searchable(tag, [tag.name, tag.id], i)),
          q,
          limit,
        ).map(({ id, name, coin_counter, ico_counter }) => ({
          id,
          name,
          coin_counter: Number(coin_counter),
          ico_counter: Number(ico_counter),
        })),
      }),
    };
  };
}

function searchable<T>(item: T, words: readonly string[], rank = 0): Searchable<T> {
  return { item, words: words.map((word) => word.toLowerCase()), rank };
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
