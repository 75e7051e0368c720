/**
 * The ids of made-up coins elsewhere. Each id is derived from the number of the coin, so no two coins share one. Small coins lack some ids, as real
 * ones do; the well-known coins have all of them.
 */
import type { Instant } from '../../clock.ts';
import { type CoinMapping, ID_PROVIDERS, type IdProvider } from '../../contract/record/catalogue.ts';
import type { MappingQuery } from '../../contract/record/market-data.ts';
import { formatTime } from '../../contract/time.ts';
import { below, mix, unit } from '../hash.ts';
import type { MadeUpCoin, MadeUpWorld } from './made-up-world.ts';
import { once } from './memo.ts';

export function createMadeUpMappings(world: MadeUpWorld): (query: MappingQuery, now: Instant) => CoinMapping | null {
  const byProvider = new Map(ID_PROVIDERS.map((provider) => [provider, once(() => coinsById(world, provider))]));
  return ({ provider, id }, now) => {
    const coin = byProvider.get(provider)!().get(id);
    return coin !== undefined && coin.start < now ? mappingOf(coin) : null;
  };
}

function coinsById(world: MadeUpWorld, provider: IdProvider): ReadonlyMap<string, MadeUpCoin> {
  return new Map(world.coins.flatMap((coin) => (idAt(provider, coin) === '' ? [] : [[idAt(provider, coin), coin]])));
}

/** The ids in the order of the vendor's document. */
function mappingOf(coin: MadeUpCoin): CoinMapping {
  const ids = Object.fromEntries(ID_PROVIDERS.map((provider) => [provider, idAt(provider, coin)]));
  return { ...(ids as Record<IdProvider, string>), updated_at: formatTime(coin.start) };
}

/** Empty when the coin has no id there. */
function idAt(provider: IdProvider, coin: MadeUpCoin): string {
  const has = (share: number, salt: number) => coin.index < 3 || unit(mix(coin.key, salt)) < share;
  switch (provider) {
    case 'coinpaprika':
      return coin.id;
    case 'coinmarketcap':
      return has(0.95, 901) ? String(1 + 3 * coin.index) : '';
    case 'coingecko':
      return has(0.9, 902) ? coin.name.toLowerCase().replaceAll(' ', '-') : '';
    case 'cryptocompare':
      return has(0.75, 903) ? String(1_182 + 7 * coin.index) : '';
    case 'isin':
      return has(0.3, 904) ? isinOf(coin) : '';
    case 'dti':
      return has(0.3, 904) ? dtiOf(coin) : '';
  }
}

/** Without vowels and Y. */
const DTI_CHARACTERS = '0123456789BCDFGHJKLMNPQRSTVWXZ';

/** Nine characters; four of them encode the number of the coin. */
function dtiOf({ index, key }: MadeUpCoin): string {
  const character = (digit: number) => DTI_CHARACTERS.charAt(digit % DTI_CHARACTERS.length);
  const other = (place: number) => character(below(DTI_CHARACTERS.length, mix(key, 910 + place)));
  const written = [0, 1, 2, 3].map((place) => character(Math.floor(index / DTI_CHARACTERS.length ** place)));
  return [...written, ...[0, 1, 2, 3, 4].map(other)].join('');
}

/** The ISIN of a digital token is XT, its DTI, and a digit that makes the Luhn sum a multiple of ten. */
function isinOf(coin: MadeUpCoin): string {
  const body = `XT${dtiOf(coin)}`;
  const digits = [...body].flatMap((one) => [...String(Number.parseInt(one, 36))].map(Number)).reverse();
  const sum = digits.reduce((total, digit, i) => {
    const doubled = i % 2 === 0 ? 2 * digit : digit;
    return total + Math.floor(doubled / 10) + (doubled % 10);
  }, 0);
  return `${body}${(10 - (sum % 10)) % 10}`;
}
