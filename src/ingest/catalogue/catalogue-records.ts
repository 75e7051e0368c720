/**
 * What is impossible about a row of the catalogue, and the change fingerprints of its records. Each fault function returns the reason, or null. A
 * fingerprint is the record without the fields that change all the time (ranks, counters, followers, the minute of its data). If two answers have the
 * same fingerprint, the older one is not kept as a version.
 */
import type { Instant } from '../../clock.ts';
import type {
  CoinDetails,
  CoinEvent,
  CoinMapping,
  CoinMarket,
  ExchangeMarket,
  Person,
  PlatformContract,
  Tag,
} from '../../contract/record/catalogue.ts';
import { parseTime } from '../../contract/time.ts';
import { isImpossible } from '../../core/possible-candle.ts';
import { isId, NO_ID, ROUNDED_MS } from '../answer/record-list.ts';

export function idFault({ id }: { readonly id: string }): string | null {
  return isId(id) ? null : NO_ID;
}

export function eventFault(event: CoinEvent): string | null {
  if (!isId(event.id)) return NO_ID;
  const from = parseTime(event.date);
  if (Number.isNaN(from)) return 'date: expected RFC 3339 time';
  const to = event.date_to ? parseTime(event.date_to) : null;
  if (to !== null && Number.isNaN(to)) return 'date_to: expected RFC 3339 time';
  return to !== null && to < from ? 'date_to lies before date' : null;
}

export function contractFault({ id, address }: PlatformContract): string | null {
  if (!isId(id)) return NO_ID;
  return isId(address) ? null : 'address: expected the address of a contract';
}

export function marketFault(market: CoinMarket | ExchangeMarket, latest: Instant): string | null {
  if ('exchange_id' in market && !isId(market.exchange_id)) return 'exchange_id: expected the id of an exchange';
  if (!isId(market.base_currency_id)) return 'base_currency_id: expected the id of a coin';
  if (!isId(market.quote_currency_id)) return 'quote_currency_id: expected the id of a currency';
  for (const [symbol, quote] of Object.entries(market.quotes ?? {})) {
    for (const name of ['price', 'volume_24h'] as const) {
      const value = quote[name];
      if (typeof value === 'number' && isImpossible(value)) return `quotes.${symbol}.${name} is negative or not finite`;
    }
  }
  const updated = market.last_updated ? parseTime(market.last_updated) : null;
  if (updated !== null && Number.isNaN(updated)) return 'last_updated: expected RFC 3339 time';
  return updated !== null && updated > latest + ROUNDED_MS ? 'last_updated lies in the future' : null;
}

export function coinFingerprint(coin: CoinDetails): string {
  const { rank: _rank, is_new: _new, last_data_at: _last, ...rest } = coin;
  const tags = coin.tags?.map(({ id, name }) => ({ id, name }));
  const links = coin.links_extended?.map(({ stats: _stats, ...link }) => link);
  return JSON.stringify({ ...rest, tags, links_extended: links });
}

export function mappingFingerprint({ updated_at: _updated, ...ids }: CoinMapping): string {
  return JSON.stringify(ids);
}

/** The coins of a tag are not part of it, because they are stored row by row. */
export function tagFingerprint(tag: Tag): string {
  const { coin_counter: _coins, ico_counter: _icos, coins: _members, icos: _others, ...rest } = tag;
  return JSON.stringify(rest);
}

export function personFingerprint(person: Person): string {
  const links = Object.entries(person.links ?? {}).map(([kind, list]) => [kind, list?.map(({ url }) => url)]);
  return JSON.stringify({ ...person, links });
}
