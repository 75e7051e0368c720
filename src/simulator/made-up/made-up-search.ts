/** Search in the made-up market by name, symbol or id. */
import type { Instant } from '../../clock.ts';
import type { SearchResult, Tag } from '../../contract/record/catalogue.ts';
import type { SearchQuery } from '../../contract/record/market-data.ts';
import type { CoinSummary } from '../../contract/record/records.ts';
import { find, findCoins, searchable, searchBy } from '../search.ts';
import { EXCHANGE_NAMES } from './made-up-exchanges.ts';
import { type MadeUpName, positionsOf } from './made-up-people.ts';
import type { MadeUpIco } from './made-up-tags.ts';
import type { MadeUpCoin, MadeUpWorld } from './made-up-world.ts';
import { once } from './memo.ts';

export function createMadeUpSearch({
  world,
  icos,
  everybody,
  summaryOf,
  tags,
}: {
  world: MadeUpWorld;
  icos: readonly MadeUpIco[];
  everybody: () => readonly MadeUpName[];
  summaryOf: (coin: MadeUpCoin, now: Instant) => CoinSummary;
  tags: () => readonly Tag[];
}): (query: SearchQuery, now: Instant) => SearchResult {
  const coins = once(() => world.coins.map((coin) => searchable(coin, [coin.symbol, coin.name, coin.id])));
  const people = once(() => everybody().map((person) => searchable(person, [person.name, person.id])));
  const projects = once(() => icos.map((ico) => searchable(ico, [ico.symbol, ico.name, ico.id])));
  const exchanges = EXCHANGE_NAMES.map((name, i) =>
    searchable({ id: name.toLowerCase(), name, rank: i + 1 }, [name], i),
  );

  const currencies = (query: SearchQuery, now: Instant) => {
    const known = coins()
      .filter(({ item }) => item.start < now)
      // Inactive coins have no rank: they come last.
      .map((one) => ({ ...one, rank: now < one.item.end ? one.item.index : 1e6 + one.item.index }));
    return findCoins(known, query).map((coin) => summaryOf(coin, now));
  };
  const foundPeople = ({ q, limit }: SearchQuery, now: Instant) =>
    find(people(), q, Number.MAX_SAFE_INTEGER)
      .map(({ number, id, name }) => ({ id, name, teams_count: positionsOf(world, number, now).length }))
      .filter(({ teams_count }) => teams_count > 0)
      .slice(0, limit);
  const foundIcos = ({ q, limit }: SearchQuery, now: Instant) => {
    const known = projects().filter(({ item }) => item.start < now);
    return find(known, q, limit).map(({ id, name, symbol }) => ({ id, name, symbol, is_new: false }));
  };
  const foundTags = ({ q, limit }: SearchQuery) => {
    const all = tags().map((tag, i) => searchable(tag, [tag.name, tag.id], i));
    return find(all, q, limit).map(({ id, name, coin_counter, ico_counter }) => ({
      id,
      name,
      coin_counter: Number(coin_counter),
      ico_counter: Number(ico_counter),
    }));
  };

  return (query, now) =>
    searchBy(query, {
      currencies: () => currencies(query, now),
      icos: () => foundIcos(query, now),
      exchanges: () => find(exchanges, query.q, query.limit),
      people: () => foundPeople(query, now),
      tags: () => foundTags(query),
    });
}
