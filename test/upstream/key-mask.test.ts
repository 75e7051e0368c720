import { describe, expect, test } from 'vitest';
import { createKeyMask } from '../../src/upstream/key-mask.ts';

// With characters that addresses, JSON and Base64 encode.
const KEY = 'cHJv/ZmVzc2lv+bmFs7"x&y';
const mask = createKeyMask(KEY);
const hex = Buffer.from(KEY).toString('hex');
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** No run of the key of this length may remain, however it is encoded. */
const LEFT = 8;

const SPELLINGS: readonly (readonly [string, string])[] = [
  ['as it is', KEY],
  ['in small letters', KEY.toLowerCase()],
  ['in capitals', KEY.toUpperCase()],
  ['in an address', encodeURIComponent(KEY)],
  ['in an address, with small digits', encodeURIComponent(KEY).replaceAll(/%../g, (code) => code.toLowerCase())],
  ['in an address, all of it encoded', [...hex.matchAll(/../g)].map(([code]) => `%${code}`).join('')],
  ['in JSON', JSON.stringify(KEY).slice(1, -1)],
  ['in JSON, all of it escaped', [...hex.matchAll(/../g)].map(([code]) => `\\u00${code}`).join('')],
  ['in HTML, all of it escaped', [...hex.matchAll(/../g)].map(([code]) => `&#x${code};`).join('')],
  ['as hexadecimal digits', hex],
  ['as hexadecimal digits in capitals', hex.toUpperCase()],
  ['in Base64', base64(KEY)],
  ['in Base64 as a header', base64(`Bearer ${KEY}`)],
  ['in Base64 as a user', base64(`${KEY}:`)],
  ['in Base64 as a password', base64(`u:${KEY}`)],
  ['in Base64 for addresses', Buffer.from(`xx${KEY}`).toString('base64url')],
  ['its beginning', KEY.slice(0, 8)],
  ['its end', KEY.slice(-9)],
  ['its middle', KEY.slice(5, 14)],
  ['in Base64, cut', base64(`Bearer ${KEY}`).slice(0, 26)],
  ['as hexadecimal digits, cut', hex.slice(0, 18)],
];

describe('the mask of a key', () => {
  test.each(SPELLINGS)('hides %s everywhere in a text', (_, spelt) => {
    for (let before = 0; before < 11; before++) {
      const text = `${'ü'.repeat(before)}<${spelt}> and ${spelt}`;
      const clean = mask.text(text);
      expect(clean).toContain('[key]');
      expect(mask.bytes(Buffer.from(text)).toString()).toContain('[key]');
      for (let at = 0; at + LEFT <= spelt.length; at++) {
        // Base64 needs eleven characters for eight.
        const run = spelt.slice(
          at,
          at + (spelt.includes('&#x') || spelt.includes('\\u') ? 48 : /%..%..%/.test(spelt) ? 24 : 16),
        );
        if (run.length >= 16) expect(clean).not.toContain(run);
      }
      expect(clean.startsWith(`${'ü'.repeat(before)}<`)).toBe(true);
      expect(clean).toContain(' and ');
    }
  });

  test('returns the same buffer when it contains no key', () => {
    const body = Buffer.from(JSON.stringify({ id: 'btc-bitcoin', price: 1234.5e-7, text: 'cHJv ZmVzc2l bmFs7' }));
    expect(mask.bytes(body)).toBe(body);
    expect(mask.text('the key cHJv… is unknown')).toBe('the key cHJv… is unknown');
  });

  test('keeps words and numbers of the data that also occur in the key', () => {
    const wordy = createKeyMask('my-bitcoin-12345678-key');
    expect(wordy.text('["btc-bitcoin-cash", 12345678, 0.12345678]')).toBe('["btc-bitcoin-cash", 12345678, 0.12345678]');
    expect(wordy.text('no such key: my-bitcoin-12345678-key')).toBe('no such key: [key]');
    // A key that could be a number is hidden in messages only, and only as a whole.
    const number = createKeyMask('123456789012');
    expect(number.bytes(Buffer.from('[123456789012]')).toString()).toBe('[123456789012]');
    expect(number.text('no such key: 123456789012')).toBe('no such key: [key]');
    expect(createKeyMask('short').text('no such key: short')).toBe('no such key: [key]');
    expect(createKeyMask(null).text('no key')).toBe('no key');
  });

  test('searches the longest possible body in less time than parsing takes', () => {
    const row = { id: 'btc-bitcoin', name: 'Bitcoin', quotes: { USD: { price: 67_123.456, volume_24h: 1e9 } } };
    const body = Buffer.from(JSON.stringify(Array.from({ length: 300_000 }, (_, i) => ({ ...row, rank: i }))));
    const timed = (work: () => unknown) => {
      const began = performance.now();
      work();
      return performance.now() - began;
    };
    const times = [1, 2, 3].map(() => timed(() => expect(mask.bytes(body)).toBe(body)));
    expect(Math.min(...times)).toBeLessThan(timed(() => JSON.parse(body.toString())));
  });
});
