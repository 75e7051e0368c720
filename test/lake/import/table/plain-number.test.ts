import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readPlainNumber } from '../../../../src/lake/import/table/plain-number.ts';

const read = (text: string) => {
  const bytes = Buffer.from(`7${text}7`);
  return readPlainNumber(bytes, 1, bytes.length - 1);
};

const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 20 });
/** Numbers as candles have them, with all digits of a double. */
const double = fc.double({ min: 1e-6, max: 1e15, noNaN: true }).map(String);
/** Numbers halfway between two doubles, and close to halfway. */
const middle = fc
  .tuple(fc.bigInt({ min: 2n ** 53n, max: 2n ** 54n - 1n }), fc.integer({ min: 1, max: 16 }))
  .map(([number, decimals]) => `${String(number).slice(0, -decimals)}.${String(number).slice(-decimals)}`);

test('reads the same number as Number, to the last bit, or leaves it to Number', () => {
  const point = fc.tuple(digits, digits).map(([whole, part]) => `${whole}.${part}`);
  fc.assert(
    fc.property(fc.oneof(digits, point, double, middle), (text) => {
      const found = read(text);
      if (!Number.isNaN(found)) expect(found).toBe(Number(text));
    }),
    { numRuns: 20_000 },
  );
});

test('reads numbers with all digits of a double without Number', () => {
  const texts = ['2141.6573130926477', '0.05', '40724691034.55932', '1', '000.10', '123456789012345678', '0'];
  expect(texts.map(read)).toEqual(texts.map(Number));
});

test.each(['', '.', '1.', '.5', '1.2.3', '-1', '+1', '1e5', ' 1', '1 ', '0x10', 'NaN', '1,5', '1234567890123456789'])(
  'leaves %j to Number',
  (text) => {
    expect(read(text)).toBeNaN();
  },
);
