/** A made-up world: its coins, each a pure function of seed and index, so that 50,000 of them need no storage. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { DAY, floorToGrid } from '../../core/interval.ts';
import { below, mix, unit } from '../hash.ts';

export type MadeUpCoin = {
  /** 0 = btc-bitcoin. `rank` is `index + 1` while the coin lives. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  readonly type: 'coin' | 'token';
  readonly kind: CoinKind;
  /** The seed of every number of this coin. */
  readonly key: number;
  /** Open time of its first 5m candle, which exists. */
  readonly start: Instant;
  /** End of its last 5m candle, which exists; Infinity while it lives. */
  readonly end: Instant;
  readonly logPrice: number;
  /** Typical move of a day, as a fraction of the price. */
  readonly volatility: number;
  /** Typical dollars a day. */
  readonly turnover: number;
  readonly supply: number;
  readonly gaps: { readonly node: number; readonly day: number; readonly block: number };
  /** Share of days whose volume is null, and share of days whose market cap is null. */
  readonly nulls: { readonly volume: number; readonly marketCap: number };
};

/** One quote of one coin. `reference` is bitcoin: its price in dollars converts prices from dollars to btc. */
export type MadeUpSeries = { readonly coin: MadeUpCoin; readonly quote: Quote; readonly reference: MadeUpCoin };

/** The kinds of coins alternate from index 3 on, so that a small world has one of each. */
const KINDS = ['plain', 'gappy', 'late', 'dead', 'tiny', 'sparse'] as const;
type CoinKind = (typeof KINDS)[number];

const NO_GAPS = { node: 0, day: 0, block: 0 };
const NO_NULLS = { volume: 0, marketCap: 0 };

/** The well-known coins: complete and never null, so that examples can rely on them. */
const FAMOUS = [
  {
    id: 'btc-bitcoin',
    name: 'Bitcoin',
    symbol: 'BTC',
    start: Date.UTC(2013, 3, 28),
    price: 40_000,
    supply: 19_500_000,
  },
  {
    id: 'eth-ethereum',
    name: 'Ethereum',
    symbol: 'ETH',
    start: Date.UTC(2015, 7, 7),
    price: 2_400,
    supply: 120_200_000,
  },
  { id: 'ltc-litecoin', name: 'Litecoin', symbol: 'LTC', start: Date.UTC(2013, 3, 28), price: 85, supply: 74_000_000 },
] as const;

const MAX_COINS = 65_000;

/** Everything about the market that does not depend on the time of day. Markets with different clocks can share it. */
export type MadeUpWorld = {
  readonly seed: number;
  readonly coins: readonly MadeUpCoin[];
  find(coinId: string): MadeUpCoin | undefined;
  series(coin: MadeUpCoin, quote: Quote): MadeUpSeries;
};

/** @throws RangeError unless `coins` is a whole number from 1 to 65,000 */
export function createMadeUpWorld({ seed, coins: count }: { seed: number; coins: number }): MadeUpWorld {
  if (!Number.isInteger(count) || count < 1 || count > MAX_COINS) {
    throw new RangeError(`coins must be a whole number from 1 to ${MAX_COINS}, got ${count}`);
  }
  const coins = Array.from({ length: count }, (_, index) => madeUpCoin(seed, index));
  const byId = new Map(coins.map((coin) => [coin.id, coin]));
  return {
    seed,
    coins,
    find: (coinId) => byId.get(coinId),
    series: (coin, quote) => ({ coin, quote, reference: coins[0]! }),
  };
}

function madeUpCoin(seed: number, index: number): MadeUpCoin {
  const key = mix(mix(seed, 0x636f696e), index);
  const famous = FAMOUS[index];
  if (famous) {
    const { id, name, symbol, start, price, supply } = famous;
    const logPrice = Math.log(price);
    const common = {
      index,
      key,
      kind: 'plain',
      type: 'coin',
      gaps: NO_GAPS,
      nulls: NO_NULLS,
      volatility: 0.03,
    } as const;
    return { ...common, id, name, symbol, start, end: Infinity, logPrice, turnover: price * supply * 0.04, supply };
  }
  const kind = KINDS[(index - FAMOUS.length) % KINDS.length]!;
  const random = (salt: number) => unit(mix(key, salt));
  const name = madeUpName(seed, index);
  const symbol = name
    .split(' ')[0]!
    .slice(0, 3 + below(3, mix(key, 1)))
    .toUpperCase();
  const { start, end } = lifetime(kind, random);
  const size = 9e11 / (index + 1) ** 1.15;
  const supply = kind === 'tiny' ? 1e15 : Math.floor(10 ** (6 + 6 * random(2)));
  const price = kind === 'tiny' ? 10 ** (-12 + 3 * random(3)) : size / supply;
  return {
    index,
    id: `${symbol}-${name.replaceAll(' ', '-')}`.toLowerCase(),
    name,
    symbol,
    type: random(4) < 0.7 ? 'token' : 'coin',
    kind,
    key,
    start,
    end,
    logPrice: Math.log(price),
    volatility: 0.02 + 0.06 * random(5),
    turnover: price * supply * 10 ** (-3 + 2 * random(6)),
    supply,
    gaps: kind === 'gappy' ? { node: 0.02, day: 0.02, block: 0.3 } : NO_GAPS,
    nulls: kind === 'sparse' ? { volume: 0.25, marketCap: 0.5 } : NO_NULLS,
  };
}

function lifetime(kind: CoinKind, random: (salt: number) => number): { start: Instant; end: Instant } {
  const [first, last] =
    kind === 'late' ? [Date.UTC(2022, 6, 1), Date.UTC(2025, 6, 1)] : [Date.UTC(2014, 0, 1), Date.UTC(2021, 0, 1)];
  const start = floorToGrid(first + (last - first) * random(7), '5m');
  const end = kind === 'dead' ? floorToGrid(start + (60 + 1_400 * random(8)) * DAY, '5m') : Infinity;
  return { start, end };
}

const CONSONANTS = 'bdfghjklmnprstvz';
const ENDINGS = ['a', 'e', 'i', 'o', 'u', 'an', 'en', 'in', 'on', 'un', 'ar', 'er', 'or', 'ax', 'ex', 'ox'];
const SUFFIXES = ['', '', '', ' Coin', ' Token', ' Network', ' Protocol', ' Finance'];

/** Two syllables that encode the scrambled index, so no two coins share them. Symbols are shorter, and may collide as real ones do. */
export function madeUpName(seed: number, index: number): string {
  const scramble = mix(seed, 0x6e616d65);
  const code = (Math.imul(index, (scramble & 0xfffe) | 1) + (scramble >>> 16)) & 0xffff;
  return writeSyllables(code) + SUFFIXES[below(SUFFIXES.length, mix(scramble, index))]!;
}

/** A capitalised word of two syllables that encodes sixteen bits. */
export function writeSyllables(code: number): string {
  const word = syllable(code >> 8) + syllable(code & 0xff);
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function syllable(byte: number): string {
  return CONSONANTS.charAt(byte >> 4) + ENDINGS[byte & 15]!;
}
