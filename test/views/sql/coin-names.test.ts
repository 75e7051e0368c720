/** `market.coin_of`: any name of a coin gives its id, or an error that names the candidates. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const AT = Date.UTC(2024, 0, 1);

let database: TestDatabase;
let analyst: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  const coin = (id: string, name: string, rank: number, isActive = true, symbol = id.split('-')[0]!.toUpperCase()) => ({
    id,
    name,
    symbol,
    rank,
    is_new: false,
    is_active: isActive,
    type: 'coin',
  });
  await recordCoins(
    sql,
    [
      coin('btc-bitcoin', 'Bitcoin', 1),
      coin('eth-ethereum', 'Ethereum', 2),
      coin('luna-terra', 'Terra', 90),
      coin('luna-terra-classic', 'Terra Classic', 0, false),
      coin('uni-uniswap', 'Uniswap', 20),
      coin('uni-universe', 'Universe', 900),
      coin('uni-unicorn', 'Unicorn', 0),
      coin('dead-one', 'One', 0, false, 'DEAD'),
      coin('dead-two', 'Two', 0, false, 'DEAD'),
      coin('gone-gone', 'Gone', 0, false),
      coin('pol-polygon', 'Polygon', 30),
      coin('matic-polygon', 'Polygon', 0, false),
      coin('pol-renamed-twice', 'Renamed', 31, true, 'TWICE'),
      coin('weth-weth', 'wrapped', 40, true, 'wETH'),
    ],
    AT,
  );
  const day = 86_400_000;
  await recordRenames(sql, [{ oldId: 'matic-polygon', newId: 'pol-polygon', at: AT + day }], 'changelog');
  await recordRenames(
    sql,
    [
      { oldId: 'first-id', newId: 'second-id', at: AT + day },
      { oldId: 'second-id', newId: 'pol-renamed-twice', at: AT + 2 * day },
      { oldId: 'lost-id', newId: 'nobody-has-it', at: AT + day },
    ],
    'changelog',
  );
  // This id was given to another coin later, and belongs to that one.
  await recordRenames(sql, [{ oldId: 'gone-gone', newId: 'btc-bitcoin', at: AT - day }], 'changelog');
  await sql`update market.coin set is_active = true where id = 'gone-gone'`;
  await sql`
    insert into market.platform (id, place, first_seen_at, last_seen_at) values ('eth-ethereum', 0, now(), now()), ('bnb-chain', 1, now(), now())`;
  await sql`
    insert into market.contract (platform_id, address, coin_id, valid_from, valid_to) values
      ('eth-ethereum', '0xAbC1', 'uni-uniswap', now(), null),
      ('eth-ethereum', '0xabc2', 'dead-one', now(), now()), ('eth-ethereum', '0xabc2', 'dead-two', now(), null),
      ('eth-ethereum', '0xabc3', 'uni-uniswap', now(), null), ('bnb-chain', '0xabc3', 'luna-terra', now(), null),
      ('bnb-chain', '0xabc4', 'luna-terra', now(), now())`;
  analyst = await analystIn(database);
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

const coinOf = async (name: string | null): Promise<string | null> => {
  const [row] = await analyst<{ id: string | null }[]>`select market.coin_of(${name}) as id`;
  return row!.id;
};
const refusal = (name: string) =>
  coinOf(name).then(
    (id) => `is ${id}`,
    ({ message, hint, code }: { message: string; hint: string; code: string }) => `${code} ${message} | ${hint}`,
  );

describe('market.coin_of returns the coin for', () => {
  test.each([
    ['its id', 'btc-bitcoin', 'btc-bitcoin'],
    ['its symbol', 'BTC', 'btc-bitcoin'],
    ['its symbol in other letters', 'eTH', 'eth-ethereum'],
    ['a symbol of mixed letters', 'wETH', 'weth-weth'],
    ['the same in capitals', 'WETH', 'weth-weth'],
    ['spaces around it', ' btc ', 'btc-bitcoin'],
    ['the symbol of one active coin and of dead ones', 'LUNA', 'luna-terra'],
    ['the id of a dead coin', 'luna-terra-classic', 'luna-terra-classic'],
    ['an id that it had before', 'matic-polygon', 'pol-polygon'],
    ['the symbol that goes with that', 'MATIC', 'pol-polygon'],
    ['an id that it had before the one before', 'first-id', 'pol-renamed-twice'],
    ['an old id that another coin was given since', 'gone-gone', 'gone-gone'],
    ['the address of its contract, in any letters', '0xABc1', 'uni-uniswap'],
    ['an address that another coin had before', '0xabc2', 'dead-two'],
    ['an address that only it had once', '0xabc4', 'luna-terra'],
    ['an address with its platform', 'bnb-chain:0xabc3', 'luna-terra'],
  ])('%s', async (_, name, id) => {
    expect(await coinOf(name)).toBe(id);
  });

  test('null as null: a row without a coin is a row without a price', async () => {
    expect(await coinOf(null)).toBeNull();
  });
});

describe('any other name is an error', () => {
  test('that names the coins with this symbol, the largest first', async () => {
    expect(await refusal('uni')).toBe(
      '22023 uni means several coins: uni-uniswap (Uniswap, rank 20), uni-universe (Universe, rank 900), uni-unicorn (Unicorn, no rank) | Give the id of the one that you mean.',
    );
    expect(await refusal('DEAD')).toContain(
      'DEAD means several coins: dead-one (One, no longer active), dead-two (Two, no longer active)',
    );
    expect(await refusal('0xabc3')).toContain('0xabc3 means several coins: uni-uniswap (Uniswap, rank 20), luna-terra');
  });

  test('that names coins with a similar name', async () => {
    expect(await refusal('bitcoin')).toBe('22023 no coin is called bitcoin | Did you mean: btc-bitcoin (Bitcoin)?');
    expect(await refusal('terra')).toContain('Did you mean: luna-terra (Terra), luna-terra-classic (Terra Classic)?');
    expect(await refusal("x'; drop table y")).toContain('Give the id of a coin');
    expect(await refusal('lost-id')).toContain('no coin is called lost-id');
    expect(await refusal('')).toContain('no coin is called ');
  });
});
