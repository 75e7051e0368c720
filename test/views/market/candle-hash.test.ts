/** The hash of a candle, as its comment promises: it can be computed from the files without Postgres. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { writeNumbers } from '../../../src/store/values/array-types.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
});
afterAll(() => database?.drop());

// −0 is stored as 0.
const number = () => fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
const candle = fc.record({
  openTime: fc.integer({ min: -3_650, max: 36_500 }).map((day) => day * DAY),
  open: number(),
  high: number(),
  low: number(),
  close: number(),
  volume: fc.option(number()),
  marketCap: fc.option(number()),
});

type Candle = typeof candle extends fc.Arbitrary<infer T> ? T : never;

/** The first eight bytes of the SHA-256 of the open time in seconds and of six doubles, as a signed number. */
function hashOf({ openTime, open, high, low, close, volume, marketCap }: Candle): string {
  const bytes = Buffer.alloc(56);
  bytes.writeBigInt64BE(BigInt(openTime / 1_000));
  [open, high, low, close, volume, marketCap].forEach((value, i) => {
    if (value === null) bytes.writeBigUInt64BE(0x7ff8000000000000n, 8 + 8 * i);
    else bytes.writeDoubleBE(value, 8 + 8 * i);
  });
  return createHash('sha256').update(bytes).digest().readBigInt64BE().toString();
}

it('Postgres and Node compute the same hash from the same numbers', async () => {
  const candles = fc.sample(candle, 500);
  const columns = (name: keyof Candle) => writeNumbers(candles.map((one) => one[name]));
  const rows = await database.sql<{ hash: string }[]>`
    select market.candle_hash(to_timestamp(t), o, h, l, c, v, m)::text as hash
    from unnest(${writeNumbers(candles.map(({ openTime }) => openTime / 1_000))}::float8[], ${columns('open')}::float8[], ${columns('high')}::float8[],
      ${columns('low')}::float8[], ${columns('close')}::float8[], ${columns('volume')}::float8[], ${columns('marketCap')}::float8[])
      with ordinality as u(t, o, h, l, c, v, m, n) order by n`;
  const hashes = rows.map(({ hash }) => hash);
  expect(hashes).toEqual(candles.map(hashOf));
  // Both signs occur.
  expect(hashes.some((hash) => hash.startsWith('-'))).toBe(true);
  expect(hashes.some((hash) => !hash.startsWith('-'))).toBe(true);
});
