import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { seedSeries } from '../support/warehouse.ts';
import { type CoinWorld, createCoinWorld } from './coin-world.ts';

const AT = Date.UTC(2024, 0, 1);
let world: CoinWorld;

beforeAll(async () => {
  world = await createCoinWorld();
  const coin = (id: string, name: string, symbol: string, rank: number, is_active = true) =>
    ({ id, name, symbol, rank, is_active, is_new: false, type: 'coin' }) as const;
  await recordCoins(
    world.sql,
    [
      coin('btc-bitcoin', 'Bitcoin', 'BTC', 1),
      coin('bch-bitcoin-cash', 'Bitcoin Cash', 'BCH', 20),
      coin('bsv-bitcoin-sv', 'Bitcoin SV', 'BSV', 0, false),
      coin('uni-uniswap', 'Uniswap', 'UNI', 30),
      coin('uni-unicorn', 'Unicorn', 'UNI', 900),
      coin('matic-polygon', 'Polygon', 'MATIC', 0, false),
      coin('pol-polygon', 'Polygon Ecosystem', 'POL', 25),
      coin('x-<script>alert(1)</script>', '<script>alert(1)</script>', '<b>X</b>', 4000),
    ],
    AT,
  );
  await world.sql`insert into market.coin_rename (old_id, new_id, renamed_at, source) values ('matic-polygon', 'pol-polygon', ${AT}, 'coins')`;
  await seedSeries(world.sql, {
    ...{ coinId: 'bch-bitcoin-cash', interval: '24h', candles: [AT] },
    ...{ wanted: [{ from: AT, to: AT + 864e5 }], covered: [{ from: AT, to: AT + 864e5 }] },
  });
  // Seeding overwrites the coin.
  await world.sql`update market.coin set name = 'Bitcoin Cash', rank = 20 where id = 'bch-bitcoin-cash'`;
});
afterAll(() => world.close());

const rowsOf = (text: string) =>
  [...text.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].slice(1).map(([, row]) =>
    row!
      .replace(/<[^>]+>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  );

describe('a search that can mean only one coin', () => {
  test.each([
    ['an id', 'uni-uniswap', '/ui/coins/uni-uniswap'],
    ['a symbol, in any case', 'bch', '/ui/coins/bch-bitcoin-cash'],
    ['a name, among others that contain it', 'Bitcoin', '/ui/coins/btc-bitcoin?q=Bitcoin'],
    ['an old id, which stays in the address', 'matic-polygon', '/ui/coins/matic-polygon'],
    ['the symbol that it had under its old id', 'MATIC', '/ui/coins/pol-polygon'],
    ['a hostile id', 'x-<script>alert(1)</script>', '/ui/coins/x-%3Cscript%3Ealert(1)%3C%2Fscript%3E'],
  ])('by %s leads to its page', async (_, q, to) => {
    const { status, location } = await world.get(`/ui/search?${new URLSearchParams({ q })}`);
    expect({ status, location }).toEqual({ status: 303, location: to });
  });

  test('leads to a page that shows a hostile id as text', async () => {
    const { status, text } = await world.get('/ui/coins/x-%3Cscript%3Ealert(1)%3C%2Fscript%3E');
    expect(status).toBe(200);
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt; (&lt;b&gt;X&lt;/b&gt;)');
    expect(text).not.toContain('<script>alert');
  });
});

test('a symbol of two coins lists both, the better-ranked first', async () => {
  const { status, text } = await world.get('/ui/search?q=UNI');
  expect(status).toBe(200);
  expect(rowsOf(text)).toEqual(['30 Uniswap UNI uni-uniswap yes', '900 Unicorn UNI uni-unicorn yes']);
});

test('all=true lists every coin that the text can mean, with what is stored of each', async () => {
  const { text } = await world.get('/ui/search?q=bitcoin&all=true');
  expect(rowsOf(text)).toEqual([
    '1 Bitcoin BTC btc-bitcoin yes',
    '20 Bitcoin Cash BCH bch-bitcoin-cash yes 24h usd',
    'Bitcoin SV BSV bsv-bitcoin-sv no',
  ]);
});

test('a part of an old id finds the coin of today and shows its old id', async () => {
  const { text } = await world.get('/ui/search?q=matic-p');
  expect(rowsOf(text)).toEqual(['25 Polygon Ecosystem POL pol-polygon was matic-polygon yes']);
});

test('a search that finds nothing, an empty one and one that is too long each say so', async () => {
  expect((await world.get('/ui/search?q=%25')).text).toContain(
    'No coin matches this text by its symbol, name, id or an old id',
  );
  expect((await world.get('/ui/search')).text).toContain('Enter the symbol, the name or the id of a coin');
  const { status, text } = await world.get(`/ui/search?q=${'a'.repeat(101)}`);
  expect(status).toBe(400);
  expect(text).toContain('q must be one line of at most 100 characters, got 101.');
});

test('a control character is refused, because no id has one', async () => {
  for (const code of ['%00', '%0A1', '%1F', '%7F']) {
    const { status, text } = await world.get(`/ui/search?q=a${code}b`);
    expect({ code, status, text }).toEqual({
      code,
      status: 400,
      text: expect.stringContaining('q must be one line of'),
    });
    const page = await world.get(`/ui/coins/btc-bitcoin${code}`);
    expect({ code, status: page.status, text: page.text }).toEqual({
      code,
      status: 404,
      text: expect.stringContaining('There is no such coin'),
    });
    expect((await world.get(`/ui/coins/btc-bitcoin${code}/candles`)).status).toBe(400);
  }
});

test('the list shows hostile names as text', async () => {
  const { text } = await world.get('/ui/search?q=%3Cscript%3E&all=true');
  expect(rowsOf(text)).toHaveLength(1);
  expect(text).not.toContain('<script>alert');
});
