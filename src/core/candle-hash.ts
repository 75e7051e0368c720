/**
 * The same hash as `market.candle_hash`, computed in this process. Answers and imports sum the hashes of their rows while they process them,
 * so that Postgres need not read the rows again.
 */
import { hash } from 'node:crypto';
import type { Instant } from '../clock.ts';
import type { CandleColumns } from './candle.ts';
import { INTERVAL_MS, type Interval } from './interval.ts';
import { contains, type Spans } from './span.ts';

/** The 32-bit words of one candle: two each for the open time in seconds and for the six numbers, the upper word first. */
export const CANDLE_WORDS = 14;

/** The first word of a number that is null; its second word is 0. */
export const NULL_WORD = 0x7ff80000;

const message = Buffer.alloc(CANDLE_WORDS * 4);
// A `DataView` is five times as fast as the methods of a buffer.
const view = new DataView(message.buffer, message.byteOffset, message.length);

/** A sum of hashes modulo 2^64: its upper and its lower 32 bits, neither of them negative. */
export type HashSum = { upper: number; lower: number };

const one = new Float64Array(1);
const halves = new Int32Array(one.buffer);

type Value = number | null;

/** Writes a candle into `words`. Its values must be finite or null. */
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
  // −0 becomes 0, as in answers of the upstream: the two are equal to Postgres, but their hashes would differ.
  one[0] = value + 0;
  words[place] = halves[1]!;
  words[place + 1] = halves[0]!;
}

/** Adds the hash of the candle in `words` to `sum`. Returns the lower 32 bits of the hash, never negative. */
export function addCandleHash(sum: HashSum, words: Int32Array): number {
  for (let i = 0; i < CANDLE_WORDS; i++) view.setInt32(i * 4, words[i]!);
  // 'binary' returns a string with one character for each byte; a buffer for each row would take twice as long.
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

/** The sum as a Postgres `bigint`: signed, eight bytes. */
export function sumAsBigint({ upper, lower }: HashSum): bigint {
  return BigInt.asIntN(64, (BigInt(upper) << 32n) | BigInt(lower));
}

/** Counts and digests of candles; `ops.sums` computes the same from stored candles. */
export type CandleSums = {
  readonly candles: number;
  readonly digest: bigint;
  /** Candles that open within the spans `told`. */
  readonly toldCandles: number;
  readonly toldDigest: bigint;
  /** Sum over `told` of the lower half of each hash times its slot number. Together with the digest it locates the slot of a single difference. */
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
