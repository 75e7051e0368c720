/**
 * The change fingerprint of a record: the record without what changes all the time (ranks, counters, followers, the minute of its data). If
 * two answers have the same fingerprint, the older one is not kept as a version.
 */
import type { CoinDetails, Person, Tag } from '../../contract/record/catalogue.ts';

export function coinFingerprint(coin: CoinDetails): string {
  const { rank: _rank, is_new: _new, last_data_at: _last, ...rest } = coin;
  const tags = coin.tags?.map(({ id, name }) => ({ id, name }));
  const links = coin.links_extended?.map(({ stats: _stats, ...link }) => link);
  return JSON.stringify({ ...rest, tags, links_extended: links });
}

/** The coins of a tag are stored row by row. */
export function tagFingerprint(tag: Tag): string {
  const { coin_counter: _coins, ico_counter: _icos, coins: _members, icos: _others, ...rest } = tag;
  return JSON.stringify(rest);
}

export function personFingerprint(person: Person): string {
  const links = Object.entries(person.links ?? {}).map(([kind, list]) => [kind, list?.map(({ url }) => url)]);
  return JSON.stringify({ ...person, links });
}
