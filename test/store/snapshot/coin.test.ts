/** The catalogue of coins: recorded, found, and ranked. */
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
  test('keeps every change of name, symbol and activity, with when it was seen', async () => {
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

  test('never forgets a coin that the list no longer holds', async () => {
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2)], MONDAY);
    await recordCoins(database.sql, [coin('a-a', 1)], TUESDAY);
    const [gone] = await findCoins(database.sql, ['b-b']);
    expect(gone).toMatchObject({ id: 'b-b', lastSeenAt: MONDAY });
    expect(await catalogueSeenAt(database.sql)).toBe(TUESDAY);
    // But whoever takes what there is does not take it.
    expect((await topCoins(database.sql, 5)).map((c) => c.id)).toEqual(['a-a']);
    expect((await activeCoins(database.sql)).map((c) => c.id)).toEqual(['a-a']);
    expect(await countListed(database.sql)).toBe(1);
  });

  test('an older list changes nothing that a newer one has said', async () => {
    await recordCoins(database.sql, [coin('a-a', 1, { name: 'new' })], TUESDAY);
    await recordCoins(database.sql, [coin('a-a', 9, { name: 'old' }), coin('b-b', 2)], MONDAY);
    expect(await findCoins(database.sql, ['a-a', 'b-b'])).toMatchObject([
      { name: 'new', rank: 1 },
      { id: 'b-b', firstSeenAt: MONDAY },
    ]);
    expect(await database.sql`select from market.coin_change`).toHaveLength(0);
  });

  test('a coin listed twice, a missing type and an empty list do no harm', async () => {
    const rest = { type: null, is_new: null } as never;
    await recordCoins(database.sql, [coin('a-a', 1), { ...coin('a-a', 2), ...(rest as object) }], MONDAY);
    await recordCoins(database.sql, [], TUESDAY);
    expect(await findCoins(database.sql, ['a-a'])).toMatchObject([{ rank: 2, type: null, isNew: false }]);
  });
});

describe('recordTickers', () => {
  test('tells rank and first data of known coins only, and forgets no first data', async () => {
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
    // The list of coins, not the tickers, is what says that the catalogue was read.
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

  test('the top are active, ranked, best first', async () => {
    expect((await topCoins(database.sql, 10)).map((c) => c.id)).toEqual([
      'btc-bitcoin',
      'eth-ethereum',
      'bch-bitcoin-cash',
    ]);
    expect((await topCoins(database.sql, 1)).map((c) => c.id)).toEqual(['btc-bitcoin']);
  });

  test('the active ones come with those without a rank at the end', async () => {
    expect((await activeCoins(database.sql)).map((c) => c.id)).toEqual([
      'btc-bitcoin',
      'eth-ethereum',
      'bch-bitcoin-cash',
      'btc-fake',
    ]);
  });

  test('are found in the order asked for, unknown ones left out', async () => {
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
  ])('%s was probably meant to be %s', async (given, meant) => {
    expect((await nearestCoinIds(database.sql, given, 3))[0]).toBe(meant);
  });

  test('nothing is suggested when nothing is near', async () => {
    expect(await nearestCoinIds(database.sql, 'completely-different', 3)).toEqual([]);
    expect(await nearestCoinIds(database.sql, '', 3)).toEqual([]);
  });
});
