/**
 * Exchanges of the made-up market and what is traded on them. Whether an exchange trades a coin, and in which pairs, follows from
 * the two; volumes are shares of the coins' own, so what an exchange sums up to is the sum of its markets.
 */
import type { Instant } from '../../clock.ts';
import type { CoinExchange, CoinMarket, ExchangeMarket } from '../../contract/record/catalogue.ts';
import type { Exchange } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { hashText, mix, unit } from '../hash.ts';
import { dollarsPer } from '../rates.ts';
import type { MadeUpCoin } from './made-up-coin.ts';
import { dollarsNow, type Spot, spotOf } from './made-up-ticker.ts';
import type { MadeUpWorld } from './made-up-world.ts';

export const EXCHANGE_NAMES =
  'Abacus Bellwether Caravel Driftwood Estuary Foundry Galleon Harbour Ironwood Juniper Keystone Lantern'.split(' ');
/** So many coins more than the next smaller one may an exchange trade: those of the best ranks. */
const COINS_STEP = 40;
const US_DOLLARS = { id: 'usd-us-dollars', name: 'US Dollars', symbol: 'USD' };

type Venue = {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly key: number;
  readonly type: readonly string[];
  /** Of a coin's volume. */
  readonly share: number;
  /** Of the reported volume. */
  readonly adjusted: number;
};
type Money = { readonly id: string; readonly name: string; readonly symbol: string };
type Pair = { readonly base: MadeUpCoin; readonly quote: Money; readonly dollars: number };

export type MadeUpExchanges = {
  all(quotes: readonly string[], now: Instant): Exchange[];
  /** Null when there is no such exchange. */
  one(exchangeId: string, quotes: readonly string[], now: Instant): Exchange | null;
  markets(exchangeId: string, quotes: readonly string[], now: Instant): ExchangeMarket[] | null;
  ofCoin(coin: MadeUpCoin, now: Instant): CoinExchange[];
  marketsOfCoin(coin: MadeUpCoin, quotes: readonly string[], now: Instant): CoinMarket[];
};

export function createMadeUpExchanges(world: MadeUpWorld): MadeUpExchanges {
  const venues = EXCHANGE_NAMES.map((name, index): Venue => {
    const key = hashText(world.seed, name);
    const type = unit(mix(key, 3)) < 0.7 ? ['cex', 'spot'] : ['dex'];
    const share = (0.5 ** (index + 1) * (1 + unit(mix(key, 1)))) / 2;
    return { index, id: name.toLowerCase(), name, key, type, share, adjusted: 0.7 + 0.3 * unit(mix(key, 2)) };
  });
  const listable = world.coins.slice(0, COINS_STEP * venues.length);

  /** Dollars of each coin that some exchange may trade: every answer of a minute uses the same ones. */
  let minute = NaN;
  let spots: (Spot | undefined)[] = [];
  const spot = (coin: MadeUpCoin, now: Instant): Spot => {
    if (Math.floor(now / 60_000) !== minute) spots = [];
    minute = Math.floor(now / 60_000);
    spots[coin.index] ??= spotOf(world, coin, 'USD', now);
    return spots[coin.index]!;
  };
  const pairs = (venue: Venue, coin: MadeUpCoin, now: Instant): Pair[] => {
    if (!trades(venue, coin, now)) return [];
    const monies = (isCentral(venue) ? [US_DOLLARS, world.coins[0]!] : [world.coins[1], world.coins[0]!]).filter(
      (money) =>
        money !== undefined && money.id !== coin.id && (money === US_DOLLARS || isAlive(money as MadeUpCoin, now)),
    ) as Money[];
    const volume = (spot(coin, now).volume ?? 0) * venue.share;
    return monies.map((quote, i) => ({
      base: coin,
      quote,
      dollars: monies.length === 1 ? volume : volume * (i === 0 ? 0.7 : 0.3),
    }));
  };
  const pairsOf = (venue: Venue, now: Instant) => listable.flatMap((coin) => pairs(venue, coin, now));
  const perUnit = (symbol: string, now: Instant) => dollarsPer(symbol) ?? dollarsNow(world, symbol, now);

  const answerMarket = (venue: Venue, { base, quote, dollars }: Pair, quotes: readonly string[], now: Instant) => {
    const off = 1 + 0.002 * (unit(mix(mix(venue.key, base.key), Math.floor(now / 60_000))) - 0.5);
    const price = spot(base, now).price;
    return {
      fields: fieldsOf(venue, base, quote),
      quotes: Object.fromEntries(
        quotes.map((symbol) => {
          const by = perUnit(symbol, now);
          return [symbol, { price: price === null ? null : (price * off) / by, volume_24h: dollars / by }];
        }),
      ),
      last_updated: formatTime(Math.floor(now / 60_000) * 60_000),
    };
  };
  const exchangeOf = (venue: Venue, quotes: readonly string[], now: Instant): Exchange => {
    const all = pairsOf(venue, now);
    const dollars = all.reduce((sum, pair) => sum + pair.dollars, 0);
    const currencies = new Set(all.flatMap(({ base, quote }) => [base.id, quote.id]));
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
      markets: all.length,
      fiats: fiatsOf(venue),
      quotes: Object.fromEntries(quotes.map((symbol) => [symbol, volumesOf(venue, dollars / perUnit(symbol, now))])),
      last_updated: formatTime(Math.floor(now / 60_000) * 60_000),
    };
  };
  const find = (exchangeId: string) => venues.find(({ id }) => id === exchangeId);
  return {
    all: (quotes, now) => venues.map((venue) => exchangeOf(venue, quotes, now)),
    one: (exchangeId, quotes, now) => {
      const venue = find(exchangeId);
      return venue ? exchangeOf(venue, quotes, now) : null;
    },
    markets: (exchangeId, quotes, now) => {
      const venue = find(exchangeId);
      if (!venue) return null;
      const all = pairsOf(venue, now);
      const total = all.reduce((sum, pair) => sum + pair.dollars, 0);
      return all.map((pair) => {
        const { fields, ...rest } = answerMarket(venue, pair, quotes, now);
        return { ...fields, reported_volume_24h_share: total === 0 ? 0 : percent(pair.dollars / total), ...rest };
      });
    },
    ofCoin: (coin, now) =>
      venues
        .filter((venue) => trades(venue, coin, now))
        .map((venue) => ({
          id: venue.id,
          name: venue.name,
          fiats: fiatsOf(venue),
          adjusted_volume_24h_share: percent(venue.share * venue.adjusted),
        })),
    marketsOfCoin: (coin, quotes, now) =>
      venues.flatMap((venue) =>
        pairs(venue, coin, now).map((pair) => {
          const { fields, ...rest } = answerMarket(venue, pair, quotes, now);
          const whole = spot(coin, now).volume ?? 0;
          return {
            exchange_id: venue.id,
            exchange_name: venue.name,
            ...fields,
            adjusted_volume_24h_share: whole === 0 ? 0 : percent((pair.dollars / whole) * venue.adjusted),
            ...rest,
          };
        }),
      ),
  };
}

function isAlive(coin: MadeUpCoin, now: Instant): boolean {
  return coin.start < now && now < coin.end;
}

/** The best known are traded everywhere, most others on most exchanges that are large enough. */
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

function fieldsOf(venue: Venue, base: MadeUpCoin, quote: Money) {
  return {
    pair: `${base.symbol}/${quote.symbol}`,
    base_currency_id: base.id,
    base_currency_name: base.name,
    quote_currency_id: quote.id,
    quote_currency_name: quote.name,
    market_url: `https://${venue.id}.example/trade/${base.symbol}-${quote.symbol}`,
    category: 'Spot',
    fee_type: 'Percentage',
    outlier: false,
  };
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

function percent(fraction: number): number {
  return Math.round(fraction * 1e8) / 1e6;
}
