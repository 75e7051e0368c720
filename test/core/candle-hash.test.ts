import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { addCandleHash, CANDLE_WORDS, sumAsBigint } from '../../src/core/candle-hash.ts';
import { randomOf } from '../support/random.ts';

function byLibrary(words: Int32Array): bigint {
  const bytes = Buffer.alloc(words.length * 4);
  for (const [i, word] of words.entries()) bytes.writeInt32BE(word, i * 4);
  return createHash('sha256').update(bytes).digest().readBigInt64BE(0);
}

test('the hash of candles is the sum of the first eight bytes of each SHA-256, modulo 2^64', () => {
  const random = randomOf(1);
  const sum = { upper: 0, lower: 0 };
  let expected = 0n;
  for (let i = 0; i < 2_000; i++) {
    const words = Int32Array.from({ length: CANDLE_WORDS }, () => Math.floor(random() * 2 ** 32) | 0);
    addCandleHash(sum, words);
    expected = BigInt.asIntN(64, expected + byLibrary(words));
    expect(sumAsBigint(sum)).toBe(expected);
  }
});
