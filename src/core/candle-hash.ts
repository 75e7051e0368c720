/**
 * `market.candle_hash`, here: an import adds up the hashes of millions of rows while they go by, so that Postgres need not read them again.
 * By hand: a call of node:crypto for each row takes several times as long as the hash itself. A candle is 56 bytes, which SHA-256 takes as
 * two blocks, of which the second is the same for every candle.
 */

/** Of open time in seconds and six numbers, each eight bytes with the big end first, as pairs of 32-bit words. */
export const CANDLE_WORDS = 14;

/** A number that is null, as its first word; the second is 0. */
export const NULL_WORD = 0x7ff80000;

const INITIAL = firstBits((prime) => Math.sqrt(prime), 8);
const ROUNDS = firstBits((prime) => Math.cbrt(prime), 64);

/** The first 32 bits behind the point of a root of each of the first primes, as the standard defines its constants. */
function firstBits(root: (prime: number) => number, count: number): Int32Array {
  const out = new Int32Array(count);
  for (let found = 0, candidate = 2; found < count; candidate++) {
    let isPrime = true;
    for (let i = 2; i * i <= candidate; i++) if (candidate % i === 0) isPrime = false;
    if (isPrime) out[found++] = Math.floor((root(candidate) % 1) * 2 ** 32) | 0;
  }
  return out;
}

/** The message schedule of a block whose first sixteen words are in `w`. */
function schedule(w: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const a = w[i - 15]!;
    const b = w[i - 2]!;
    const s0 = ((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3);
    const s1 = ((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
}

const WHOLE = new Int32Array(64);
/** Of the second block, with the constants of the rounds added. */
const SECOND = new Int32Array(64);
SECOND[15] = CANDLE_WORDS * 32;
schedule(SECOND);
for (let i = 0; i < 64; i++) SECOND[i] = (SECOND[i]! + ROUNDS[i]!) | 0;

const state = new Int32Array(8);

/** `w`: of each round the word of the schedule and its constant, added. */
function compress(w: Int32Array): void {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + (g ^ (e & (f ^ g))) + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] = (state[0]! + a) | 0;
  state[1] = (state[1]! + b) | 0;
  state[2] = (state[2]! + c) | 0;
  state[3] = (state[3]! + d) | 0;
  state[4] = (state[4]! + e) | 0;
  state[5] = (state[5]! + f) | 0;
  state[6] = (state[6]! + g) | 0;
  state[7] = (state[7]! + h) | 0;
}

/** A sum of hashes modulo 2^64, as its upper and its lower 32 bits; a number of them is never negative. */
export type HashSum = { upper: number; lower: number };

/** Adds the hash of the candle of these words. */
export function addCandleHash(sum: HashSum, words: Int32Array): void {
  for (let i = 0; i < CANDLE_WORDS; i++) WHOLE[i] = words[i]!;
  // Behind the message comes one bit.
  WHOLE[14] = 0x80000000 | 0;
  WHOLE[15] = 0;
  schedule(WHOLE);
  for (let i = 0; i < 64; i++) WHOLE[i] = (WHOLE[i]! + ROUNDS[i]!) | 0;
  for (let i = 0; i < 8; i++) state[i] = INITIAL[i]!;
  compress(WHOLE);
  compress(SECOND);
  const lower = sum.lower + (state[1]! >>> 0);
  sum.lower = lower >>> 0;
  sum.upper = (sum.upper + (state[0]! >>> 0) + (lower > 0xffffffff ? 1 : 0)) >>> 0;
}

/** As Postgres has it: a signed integer of eight bytes. */
export function sumAsBigint({ upper, lower }: HashSum): bigint {
  return BigInt.asIntN(64, (BigInt(upper) << 32n) | BigInt(lower));
}
