/**
 * `market.candle_hash`, here: answers and imports add up the hashes of their rows while they go by, so that Postgres need not read them again.
 */
import { hash } from 'node:crypto';
import type { Instant } from '../clock.ts';
import type { CandleColumns } from './candle.ts';
import { INTERVAL_MS, type Interval } from './interval.ts';
import { contains, type Spans } from './span.ts';

/** Of open time in seconds and six numbers, each eight bytes with the big end first, as pairs of 32-bit words. */
export const CANDLE_WORDS = 14;

/** A number that is null, as its first word; the second is 0. */
export const NULL_WORD = 0x7ff80000;

const message = Buffer.alloc(CANDLE_WORDS * 4);
// Five times as fast as the methods of a buffer.
const view = new DataView(message.buffer, message.byteOffset, message.length);

/** A sum of hashes modulo 2^64, as its upper and its lower 32 bits; a number of them is never negative. */
export type HashSum = { upper: number; lower: number };

const one = new Float64Array(1);
const halves = new Int32Array(one.buffer);

type Value = number | null;

/** Puts a candle into `words`. Its values are finite. */
export function setCandleWords(
  words: Int32Array,
  openTime: Instant,
  open: Value,
  high: Value,
  low: Value,
  close: Value,
  volume: Value,
  marketCap: Value,
): void {
  const seconds = Math.floor(openTime / 1_000);
  words[0] = Math.floor(seconds / 2 ** 32);
  // `|` takes a whole number modulo 2^32.
  words[1] = seconds | 0;
  setNumber(words, 2, open);
  setNumber(words, 4, high);
  setNumber(words, 6, low);
  setNumber(words, 8, close);
  setNumber(words, 10, volume);
  setNumber(words, 12, marketCap);
}

function setNumber(words: Int32Array, place: number, value: Value): void {
  if (value === null) {
    words[place] = NULL_WORD;
    words[place + 1] = 0;
    return;
  }
  // −0 becomes 0, as in answers of upstream: Postgres says that they are equal, and their hashes are not.
  one[0] = value + 0;
  words[place] = halves[1]!;
  words[place + 1] = halves[0]!;
}

/** Adds the hash of the candle of these words. Returns the lower 32 bits of it, never negative. */
export function addCandleHash(sum: HashSum, words: Int32Array): number {
  for (let i = 0; i < CANDLE_WORDS; i++) view.setInt32(i * 4, words[i]!);
  // As a text of one character for each byte: a buffer for each row takes twice as long.
  const digest = hash('sha256', message, 'binary');
  const lowerOfHash = wordAt(digest, 4);
  const lower = sum.lower + lowerOfHash;
  sum.lower = lower >>> 0;
  sum.upper = (sum.upper + wordAt(digest, 0) + (lower > 0xffffffff ? 1 : 0)) >>> 0;
  return lowerOfHash;
}

function wordAt(digest: string, at: number): number {
  let word = 0;
  for (let i = at; i < at + 4; i++) word = (word << 8) | digest.charCodeAt(i);
  return word >>> 0;
}

/** As Postgres has it: a signed integer of eight bytes. */
export function sumAsBigint({ upper, lower }: HashSum): bigint {
  return BigInt.asIntN(64, (BigInt(upper) << 32n) | BigInt(lower));
}

/** Counts and digests of candles, as `ops.sums` computes them of stored ones. */
export type CandleSums = {
  readonly candles: number;
  readonly digest: bigint;
  /** Of those in `told`. */
  readonly toldCandles: number;
  readonly toldDigest: bigint;
  /** Sum of the lower half of each hash times the number of its slot: with the digest it tells which slot a single difference is in. */
  readonly toldLocator: bigint;
};

export function sumsOfCandles(c: CandleColumns, interval: Interval, told: Spans): CandleSums {
  const words = new Int32Array(CANDLE_WORDS);
  const [outside, inside] = [
    { upper: 0, lower: 0 },
    { upper: 0, lower: 0 },
  ];
  let toldCandles = 0;
  let locator = 0n;
  for (const [i, at] of c.openTime.entries()) {
    setCandleWords(words, at, c.open[i]!, c.high[i]!, c.low[i]!, c.close[i]!, c.volume[i]!, c.marketCap[i]!);
    if (!contains(told, at)) {
      addCandleHash(outside, words);
      continue;
    }
    toldCandles++;
    locator += BigInt(addCandleHash(inside, words)) * BigInt(Math.round(at / INTERVAL_MS[interval]));
  }
  const toldDigest = sumAsBigint(inside);
  return {
    candles: c.openTime.length,
    digest: BigInt.asIntN(64, toldDigest + sumAsBigint(outside)),
    toldCandles,
    toldDigest,
    toldLocator: BigInt.asIntN(64, locator),
  };
}
