/** The list of coins: recording, finding and ranking. */
import { beforeEach, describe, expect, test } from 'vitest';
import {
  activeCoins,
  catalogueSeenAt,
  countListed,
  findCoins,
  nearestCoinIds,
  recordCoins,
  recordTickers,
  topCoins,
} from '../../../src/store/snapshot/coin.ts';
import { coin, database, MONDAY, TUESDAY, useDatabase } from './coin.ts';

useDatabase();

describe('recordCoins', () => {
  test('stores every change of name, symbol and activity, with when it was seen', async () => {
    await recordCoins(database.sql, [coin('matic-polygon', 14), coin('btc-bitcoin', 1)], MONDAY);
    await recordCoins(
      database.sql,
      [coin('matic-polygon', 15, { name: 'POL', symbol: 'POL', is_active: false }), coin('btc-bitcoin', 1)],
      TUESDAY,
    );
    const changes = await database.sql`
      select coin_id, field, old_value, new_value, seen_at = ${TUESDAY} as tuesday
      from market.coin_change order by field`;
    expect([...changes]).toEqual([
      { coinId: 'matic-polygon', field: 'is_active', oldValue: 'true', newValue: 'false', tuesday: true },
      { coinId: 'matic-polygon', field: 'name', oldValue: 'polygon', newValue: 'POL', tuesday: true },
      { coinId: 'matic-polygon', field: 'symbol', oldValue: 'MATIC', newValue: 'POL', tuesday: true },
    ]);
    expect(await findCoins(database.sql, ['matic-polygon'])).toEqual([
      {
        id: 'matic-polygon',
        name: 'POL',
        symbol: 'POL',
        rank: 15,
        type: 'coin',
        isNew: false,
        isActive: false,
        firstDataAt: null,
        firstSeenAt: MONDAY,
        lastSeenAt: TUESDAY,
      },
    ]);
  });

  test('keeps a coin that the list no longer has', async () => {
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2)], MONDAY);
    await recordCoins(database.sql, [coin('a-a', 1)], TUESDAY);
    const [gone] = await findCoins(database.sql, ['b-b']);
    expect(gone).toMatchObject({ id: 'b-b', lastSeenAt: MONDAY });
    expect(await catalogueSeenAt(database.sql)).toBe(TUESDAY);
    // A query for the top coins leaves it out.
    expect((await topCoins(database.sql, 5)).map((c) => c.id)).toEqual(['a-a']);
    expect((await activeCoins(database.sql)).map((c) => c.id)).toEqual(['a-a']);
    expect(await countListed(database.sql)).toBe(1);
  });

  test('an older list does not overwrite a newer one', async () => {
    await recordCoins(database.sql, [coin('a-a', 1, { name: 'new' })], TUESDAY);
    await recordCoins(database.sql, [coin('a-a', 9, { name: 'old' }), coin('b-b', 2)], MONDAY);
    expect(await findCoins(database.sql, ['a-a', 'b-b'])).toMatchObject([
      { name: 'new', rank: 1 },
      { id: 'b-b', firstSeenAt: MONDAY },
    ]);
    expect(await database.sql`select from market.coin_change`).toHaveLength(0);
  });

  test('accepts a coin that is listed twice, a missing type and an empty list', async () => {
    const rest = { type: null, is_new: null } as never;
    await recordCoins(database.sql, [coin('a-a', 1), { ...coin('a-a', 2), ...(rest as object) }], MONDAY);
    await recordCoins(database.sql, [], TUESDAY);
    expect(await findCoins(database.sql, ['a-a'])).toMatchObject([{ rank: 2, type: null, isNew: false }]);
  });
});

describe('recordTickers', () => {
  test('updates rank and first data of known coins only, and never clears first data', async () => {
    await recordCoins(database.sql, [coin('a-a', 7)], MONDAY);
    const first = Date.UTC(2013, 3, 28);
    await recordTickers(
      database.sql,
      { coinId: ['a-a', 'unknown'], rank: [3, 1], firstDataAt: [first, null] },
      TUESDAY,
    );
    await recordTickers(database.sql, { coinId: ['a-a'], rank: [4], firstDataAt: [null] }, TUESDAY + 1);
    expect(await findCoins(database.sql, ['a-a', 'unknown'])).toMatchObject([
      { id: 'a-a', rank: 4, firstDataAt: first },
    ]);
    // The time of the catalogue is that of the list of coins, not of the tickers.
    expect(await catalogueSeenAt(database.sql)).toBe(MONDAY);
  });

  test('an older ticker does not overwrite a newer rank', async () => {
    await recordCoins(database.sql, [coin('a-a', 7)], TUESDAY);
    await recordTickers(database.sql, { coinId: ['a-a'], rank: [99], firstDataAt: [null] }, MONDAY);
    expect(await findCoins(database.sql, ['a-a'])).toMatchObject([{ rank: 7 }]);
  });
});

describe('choosing coins', () => {
  beforeEach(() =>
    recordCoins(
      database.sql,
      [
        coin('eth-ethereum', 2),
        coin('btc-bitcoin', 1),
        coin('bch-bitcoin-cash', 20),
        coin('btc-fake', 0),
        coin('dead-dead', 0, { is_active: false }),
        coin('weth-weth', 3, { is_active: false }),
      ],
      MONDAY,
    ),
  );

  test('the top coins are active and ranked, best rank first', async () => {
    expect((await topCoins(database.sql, 10)).map((c) => c.id)).toEqual([
      'btc-bitcoin',
      'eth-ethereum',
      'bch-bitcoin-cash',
    ]);
    expect((await topCoins(database.sql, 1)).map((c) => c.id)).toEqual(['btc-bitcoin']);
  });

  test('the active coins end with those that have no rank', async () => {
    expect((await activeCoins(database.sql)).map((c) => c.id)).toEqual([
      'btc-bitcoin',
      'eth-ethereum',
      'bch-bitcoin-cash',
      'btc-fake',
    ]);
  });

  test('named coins are returned in the order requested, without unknown ones', async () => {
    const found = await findCoins(database.sql, ['eth-ethereum', 'nope', 'btc-bitcoin']);
    expect(found.map((c) => c.id)).toEqual(['eth-ethereum', 'btc-bitcoin']);
  });

  test.each([
    ['btc', 'btc-bitcoin'],
    ['BTC', 'btc-bitcoin'],
    ['bitcoin', 'btc-bitcoin'],
    ['Bitcoin Cash', 'bch-bitcoin-cash'],
    ['bitcion', 'btc-bitcoin'],
    ['btc-bitcon', 'btc-bitcoin'],
    ['eth_ethereum', 'eth-ethereum'],
    ['etherium', 'eth-ethereum'],
  ])('%s suggests %s', async (given, meant) => {
    expect((await nearestCoinIds(database.sql, given, 3))[0]).toBe(meant);
  });

  test('a name that resembles no coin suggests nothing', async () => {
    expect(await nearestCoinIds(database.sql, 'completely-different', 3)).toEqual([]);
    expect(await nearestCoinIds(database.sql, '', 3)).toEqual([]);
  });
});
