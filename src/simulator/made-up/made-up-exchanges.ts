/**
 * Exchanges of the made-up market and their markets. The exchange and the coin alone decide whether the exchange trades the coin, and in which pairs.
 * Volumes are shares of the coins' own volumes, so the volume of an exchange is the sum of its markets.
 */
import type { Instant } from '../../clock.ts';
import type { CoinExchange, CoinMarket, ExchangeMarket } from '../../contract/record/catalogue.ts';
import type { Exchange } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { percentOf, spotMarket, US_DOLLARS } from '../currencies.ts';
import { dollarsPer } from '../exchange-rates.ts';
import { hashText, mix, unit } from '../hash.ts';
import { dollarsNow, type Spot, spotOf } from './made-up-ticker.ts';
import type { MadeUpCoin, MadeUpWorld } from './made-up-world.ts';
import { memoPerMinute } from './memo.ts';

/** The first is a well-known one, so that examples can rely on it. */
export const EXCHANGE_NAMES =
  'Binance Bellwether Caravel Driftwood Estuary Foundry Galleon Harbour Ironwood Juniper Keystone Lantern'.split(' ');
/** Each exchange may trade this many more coins than the next smaller exchange: those with the best ranks. */
const COINS_STEP = 40;

type Venue = {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly key: number;
  readonly type: readonly string[];
  /** Share of a coin's volume. */
  readonly share: number;
  /** Adjusted volume as a share of the reported volume. */
  readonly adjusted: number;
};
type Money = { readonly id: string; readonly name: string; readonly symbol: string };
/** The market, with the dollar price of each coin: all responses within a minute use the same prices. */
type SpotMarket = { readonly world: MadeUpWorld; spot(coin: MadeUpCoin, now: Instant): Spot };
type Pair = { readonly base: MadeUpCoin; readonly quote: Money; readonly dollars: number };

export type MadeUpExchanges = {
  all(quotes: readonly string[], now: Instant): Exchange[];
  /** Null when the exchange does not exist. */
  one(exchangeId: string, quotes: readonly string[], now: Instant): Exchange | null;
  markets(exchangeId: string, quotes: readonly string[], now: Instant): ExchangeMarket[] | null;
  ofCoin(coin: MadeUpCoin, now: Instant): CoinExchange[];
  marketsOfCoin(coin: MadeUpCoin, quotes: readonly string[], now: Instant): CoinMarket[];
};

export function createMadeUpExchanges(world: MadeUpWorld): MadeUpExchanges {
  const venues = EXCHANGE_NAMES.map((name, index) => venueOf(world.seed, name, index));
  const listable = world.coins.slice(0, COINS_STEP * venues.length);
  const market = { world, spot: memoPerMinute((coin: MadeUpCoin, now): Spot => spotOf(world, coin, 'USD', now)) };
  const pairsOf = (venue: Venue, now: Instant) => listable.flatMap((coin) => pairsOn(venue, coin, market, now));
  const at = <T>(exchangeId: string, make: (venue: Venue) => T): T | null => {
    const venue = venues.find(({ id }) => id === exchangeId);
    return venue ? make(venue) : null;
  };
  const exchangeAt = (venue: Venue, quotes: readonly string[], now: Instant) =>
    exchangeOf(venue, pairsOf(venue, now), (symbol) => perUnit(world, symbol, now), quotes, now);
  return {
    all: (quotes, now) => venues.map((venue) => exchangeAt(venue, quotes, now)),
    one: (exchangeId, quotes, now) => at(exchangeId, (venue) => exchangeAt(venue, quotes, now)),
    markets: (exchangeId, quotes, now) =>
      at(exchangeId, (venue) => {
        const all = pairsOf(venue, now);
        const total = sumOf(all);
        return all.map((pair) => {
          const { fields, ...rest } = marketOf(venue, pair, market, quotes, now);
          return { ...fields, reported_volume_24h_share: percentOf(pair.dollars, total), ...rest };
        });
      }),
    ofCoin: (coin, now) =>
      venues
        .filter((venue) => trades(venue, coin, now))
        .map((venue) => ({
          id: venue.id,
          name: venue.name,
          fiats: fiatsOf(venue),
          adjusted_volume_24h_share: percentOf(venue.share * venue.adjusted, 1),
        })),
    marketsOfCoin: (coin, quotes, now) =>
      venues.flatMap((venue) =>
        pairsOn(venue, coin, market, now).map((pair) => {
          const { fields, ...rest } = marketOf(venue, pair, market, quotes, now);
          return {
            exchange_id: venue.id,
            exchange_name: venue.name,
            ...fields,
            adjusted_volume_24h_share: percentOf(pair.dollars * venue.adjusted, market.spot(coin, now).volume ?? 0),
            ...rest,
          };
        }),
      ),
  };
}

function venueOf(seed: number, name: string, index: number): Venue {
  const key = hashText(seed, name);
  const type = index === 0 || unit(mix(key, 3)) < 0.7 ? ['cex', 'spot'] : ['dex'];
  const share = (0.5 ** (index + 1) * (1 + unit(mix(key, 1)))) / 2;
  return { index, id: name.toLowerCase(), name, key, type, share, adjusted: 0.7 + 0.3 * unit(mix(key, 2)) };
}

/** The pairs of a coin on an exchange: against dollars and bitcoin, or on a decentralised exchange against ether and bitcoin. */
function pairsOn(venue: Venue, coin: MadeUpCoin, { world, spot }: SpotMarket, now: Instant): Pair[] {
  if (!trades(venue, coin, now)) return [];
  const [bitcoin, ether] = world.coins;
  const quotes: Money[] = [bitcoin, ether].flatMap((one) => (one && one !== coin && isAlive(one, now) ? [one] : []));
  const traded = isCentral(venue) ? [US_DOLLARS, ...quotes.filter((one) => one === bitcoin)] : quotes.reverse();
  const volume = (spot(coin, now).volume ?? 0) * venue.share;
  const shares = traded.length === 1 ? [1] : [0.7, 0.3];
  return traded.map((quote, i) => ({ base: coin, quote, dollars: volume * shares[i]! }));
}

function marketOf(
  venue: Venue,
  { base, quote, dollars }: Pair,
  { world, spot }: SpotMarket,
  quotes: readonly string[],
  now: Instant,
) {
  const off = 1 + 0.002 * (unit(mix(mix(venue.key, base.key), Math.floor(now / 60_000))) - 0.5);
  const { price } = spot(base, now);
  const quoteOf = (symbol: string) => {
    const by = perUnit(world, symbol, now);
    return { price: price === null ? null : (price * off) / by, volume_24h: dollars / by };
  };
  return {
    fields: spotMarket(base, quote, `https://${venue.id}.example/trade/${base.symbol}-${quote.symbol}`),
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, quoteOf(symbol)])),
    last_updated: formatTime(Math.floor(now / 60_000) * 60_000),
  };
}

function exchangeOf(
  venue: Venue,
  pairs: readonly Pair[],
  perUnit: (symbol: string) => number,
  quotes: readonly string[],
  now: Instant,
): Exchange {
  const currencies = new Set(pairs.flatMap(({ base, quote }) => [base.id, quote.id]));
  currencies.delete(US_DOLLARS.id);
  return {
    id: venue.id,
    name: venue.name,
    type: [...venue.type],
    active: true,
    website_status: true,
    api_status: true,
    description: null,
    message: null,
    links: { website: [`https://${venue.id}.example/`], twitter: [] },
    markets_data_fetched: true,
    adjusted_rank: venue.index + 1,
    reported_rank: venue.index + 1,
    currencies: currencies.size,
    markets: pairs.length,
    fiats: fiatsOf(venue),
    quotes: Object.fromEntries(quotes.map((symbol) => [symbol, volumesOf(venue, sumOf(pairs) / perUnit(symbol))])),
    last_updated: formatTime(Math.floor(now / 60_000) * 60_000),
  };
}

function sumOf(pairs: readonly Pair[]): number {
  return pairs.reduce((sum, pair) => sum + pair.dollars, 0);
}

function perUnit(world: MadeUpWorld, symbol: string, now: Instant): number {
  return dollarsPer(symbol, now, world.seed) ?? dollarsNow(world, symbol, now);
}

function isAlive(coin: MadeUpCoin, now: Instant): boolean {
  return coin.start < now && now < coin.end;
}

/** All exchanges trade the well-known coins. The other coins are traded on most of the exchanges that are large enough. */
function trades(venue: Venue, coin: MadeUpCoin, now: Instant): boolean {
  const reach = COINS_STEP * (EXCHANGE_NAMES.length - venue.index);
  return coin.index < reach && isAlive(coin, now) && (coin.index < 3 || unit(mix(venue.key, coin.key)) < 0.8);
}

function isCentral(venue: Venue): boolean {
  return venue.type.includes('cex');
}

function fiatsOf(venue: Venue) {
  return isCentral(venue) ? [{ name: US_DOLLARS.name, symbol: US_DOLLARS.symbol }] : [];
}

function volumesOf(venue: Venue, reported: number) {
  const day = Math.floor(reported);
  const adjusted = Math.floor(reported * venue.adjusted);
  return {
    reported_volume_24h: day,
    adjusted_volume_24h: adjusted,
    reported_volume_7d: day * 7,
    adjusted_volume_7d: adjusted * 7,
    reported_volume_30d: day * 30,
    adjusted_volume_30d: adjusted * 30,
  };
}
