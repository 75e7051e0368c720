/**
 * `market.candle_hash`, here: an import adds up the hashes of millions of rows while they go by, so that Postgres need not read them again.
 */
import { hash } from 'node:crypto';

/** Of open time in seconds and six numbers, each eight bytes with the big end first, as pairs of 32-bit words. */
export const CANDLE_WORDS = 14;

/** A number that is null, as its first word; the second is 0. */
export const NULL_WORD = 0x7ff80000;

const message = Buffer.alloc(CANDLE_WORDS * 4);
// Five times as fast as the methods of a buffer.
const view = new DataView(message.buffer, message.byteOffset, message.length);

/** A sum of hashes modulo 2^64, as its upper and its lower 32 bits; a number of them is never negative. */
export type HashSum = { upper: number; lower: number };

/** Adds the hash of the candle of these words. */
export function addCandleHash(sum: HashSum, words: Int32Array): void {
  for (let i = 0; i < CANDLE_WORDS; i++) view.setInt32(i * 4, words[i]!);
  // As a text of one character for each byte: a buffer for each row takes twice as long.
  const digest = hash('sha256', message, 'binary');
  const lower = sum.lower + wordAt(digest, 4);
  sum.lower = lower >>> 0;
  sum.upper = (sum.upper + wordAt(digest, 0) + (lower > 0xffffffff ? 1 : 0)) >>> 0;
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
