/** The value of fiat currencies in dollars. Each moves like a market around its level of 2024: a pure function of seed and time, at random access. */
import type { Instant } from '../clock.ts';
import { DAY, MINUTE } from '../core/interval.ts';
import { hashText, mix, unit } from './hash.ts';

/** Dollars per unit, approximately those of 2024, and the typical move of a day in percent. */
const CURRENCIES: Readonly<Record<string, readonly [dollars: number, dayPercent: number]>> = {
  EUR: [1.08, 0.45],
  PLN: [0.25, 0.6],
  KRW: [0.00073, 0.5],
  GBP: [1.27, 0.5],
  CAD: [0.73, 0.4],
  JPY: [0.0066, 0.6],
  RUB: [0.011, 1.1],
  TRY: [0.03, 0.7],
  NZD: [0.6, 0.6],
  AUD: [0.66, 0.6],
  CHF: [1.12, 0.5],
  UAH: [0.025, 0.4],
  HKD: [0.128, 0.03],
  SGD: [0.74, 0.25],
  NGN: [0.0007, 0.9],
  PHP: [0.0175, 0.35],
  MXN: [0.055, 0.8],
  BRL: [0.19, 0.9],
  THB: [0.028, 0.4],
  CLP: [0.00105, 0.7],
  CNY: [0.138, 0.2],
  CZK: [0.043, 0.5],
  DKK: [0.145, 0.45],
  HUF: [0.0027, 0.7],
  IDR: [0.000062, 0.35],
  ILS: [0.27, 0.5],
  INR: [0.012, 0.25],
  MYR: [0.21, 0.35],
  NOK: [0.093, 0.7],
  PKR: [0.0036, 0.4],
  SEK: [0.095, 0.6],
  TWD: [0.031, 0.3],
  ZAR: [0.054, 0.9],
  VND: [0.00004, 0.15],
  BOB: [0.145, 0.03],
  COP: [0.00025, 0.8],
  PEN: [0.27, 0.35],
  ARS: [0.001, 0.6],
  ISK: [0.0072, 0.5],
};

/** Dollars per unit of a currency by its upper-case symbol; `undefined` when it is not a fiat currency (BTC and ETH are coins). */
export function dollarsPer(symbol: string, at: Instant, seed: number): number | undefined {
  if (symbol === 'USD') return 1;
  const currency = CURRENCIES[symbol];
  if (currency === undefined) return undefined;
  const [dollars, dayPercent] = currency;
  // The rate is constant within a minute: all answers with the same `last_updated` have the same rate.
  return dollars * Math.exp((dayPercent / 100) * walk(hashText(seed, symbol), Math.floor(at / MINUTE)));
}

/** Octaves from a minute to two years. */
const OCTAVES = 21;
/** The height of the swing that lasts a minute, so that the moves of a day are typically 1. */
const FINEST = 0.7 * Math.sqrt(MINUTE / DAY);

/** Value noise. Each octave lasts twice as long as the one below it and is √2 times as high, like the moves of a random walk. */
function walk(key: number, minute: number): number {
  let sum = 0;
  let height = FINEST;
  for (let octave = 0; octave < OCTAVES; octave++) {
    const width = 2 ** octave;
    const cell = Math.floor(minute / width);
    const salt = mix(key, octave);
    const a = unit(mix(salt, cell));
    const b = unit(mix(salt, cell + 1));
    sum += height * (2 * (a + (b - a) * (minute / width - cell)) - 1);
    height *= Math.SQRT2;
  }
  return sum;
}
