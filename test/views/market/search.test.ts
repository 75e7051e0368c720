/** Search finds what the last commit contains, in order, and does not read data again that a snapshot left unchanged. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { isFound } from '../../../src/contract/answer/not-found.ts';
import { EXCHANGE_VOLUMES } from '../../../src/core/exchange.ts';
import { HOUR } from '../../../src/core/interval.ts';
import { noTickers, TICKER_NUMBERS, type TickerColumns } from '../../../src/core/ticker.ts';
import { type ListedCoin, recordCoins } from '../../../src/store/snapshot/coin.ts';
import { type ExchangeFacts, writeExchanges } from '../../../src/store/snapshot/exchange.ts';
import { writeTickers } from '../../../src/store/snapshot/ticker.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { createWarehouse } from '../../../src/views/market/warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const NOON = Date.UTC(2025, 8, 25, 12);
let database: TestDatabase;
let data: ReturnType<typeof createWarehouse>;
const asked: string[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  data = createWarehouse({
    sql: database.sql,
    clock: systemClock,
    onCacheLookup: (view, isHit) => asked.push(`${view} ${isHit ? 'kept' : 'read'}`),
  });
  await ensurePartitionsOf(database.sql, TICKER_HISTORY, { from: NOON, to: NOON + 100 * HOUR });
});
afterAll(() => database.drop());

const coin = (id: string, rank: number, more: Partial<ListedCoin> = {}): ListedCoin => ({
  id,
  name: `Name of ${id}`,
  symbol: id.slice(0, 3).toUpperCase(),
  rank,
  is_new: false,
  is_active: true,
  type: 'coin',
  ...more,
});

let snapshots = 0;
const later = () => NOON + ++snapshots * 60_000;

function snapshot(ranks: Readonly<Record<string, number>>): Promise<number> {
  const columns: TickerColumns = noTickers();
  for (const [id, rank] of Object.entries(ranks)) {
    columns.coinId.push(id);
    columns.rank.push(rank);
    columns.position.push(0);
    columns.answer.push(null);
    for (const name of ['updatedAt', 'athAt', 'firstDataAt'] as const) columns[name].push(Number.NaN);
    for (const name of TICKER_NUMBERS) columns.numbers[name].push(rank + snapshots);
  }
  return writeTickers(database.sql, columns, later());
}

const find = async (q: string, { symbolOnly = false, limit = 10 } = {}) =>
  ((await data.search({ q, categories: ['currencies'], symbolOnly, limit })).currencies ?? []).map(
    ({ id, rank }) => `${id} ${rank}`,
  );
/** Which caches the requests of `work` used or filled. */
async function kept(work: () => Promise<unknown>): Promise<string[]> {
  asked.length = 0;
  await work();
  return asked.filter((one) => /^(search|overview)/.test(one));
}

const exchange = (id: string, position: number): ExchangeFacts => ({
  ...{ id, name: `Name of ${id}`, types: [], description: null, message: null, links: {}, fiats: [], updatedAt: null },
  flags: { is_active: true, website_status: true, api_status: true, markets_data_fetched: true },
  whole: { adjusted_rank: position + 1, reported_rank: null, currencies: null, markets: null },
  volumes: Object.fromEntries(EXCHANGE_VOLUMES.map((name) => [name, null])) as ExchangeFacts['volumes'],
  ...{ position, answer: null },
});

describe('search', () => {
  it('finds no exchange that the list of exchanges no longer has', async () => {
    const found = async () =>
      (await data.search({ q: 'name', categories: ['exchanges'], symbolOnly: false, limit: 10 })).exchanges;
    const names = async () => (await found())?.map(({ id }) => id);
    await writeExchanges(database.sql, [exchange('gone', 0), exchange('here', 1)], later());
    expect(await names()).toEqual(['gone', 'here']);
    await writeExchanges(database.sql, [exchange('here', 0)], later());
    expect(isFound(await data.exchange({ exchangeId: 'gone', quotes: ['USD'] }))).toBe(false);
    expect(await names()).toEqual(['here']);
  });

  it('keeps its index, and the list of coins its text, when a snapshot of tickers has the same ranks', async () => {
    await recordCoins(database.sql, [coin('aaa-one', 1), coin('aab-two', 2), coin('abb-three', 0)], later());
    await snapshot({ 'aaa-one': 1, 'aab-two': 2 });
    expect(await find('name')).toEqual(['aaa-one 1', 'aab-two 2', 'abb-three 0']);
    await data.coins();
    await snapshot({ 'aaa-one': 1, 'aab-two': 2 });
    const again = await kept(async () => {
      expect(await find('name')).toEqual(['aaa-one 1', 'aab-two 2', 'abb-three 0']);
      await data.coins();
    });
    expect(again).toEqual(['search kept', 'overview kept']);
  });

  it('uses new ranks at once', async () => {
    await snapshot({ 'aaa-one': 3, 'aab-two': 2, 'abb-three': 1 });
    const next = await kept(async () => {
      expect(await find('name')).toEqual(['abb-three 1', 'aab-two 2', 'aaa-one 3']);
    });
    expect(next).toEqual(['search read']);
    expect((await data.coins()).map(({ id, rank }) => `${id} ${rank}`).sort()).toEqual([
      'aaa-one 3',
      'aab-two 2',
      'abb-three 1',
    ]);
  });

  it('finds new coins, and renamed ones by their new name', async () => {
    await recordCoins(
      database.sql,
      [coin('aca-four', 4), coin('aab-two', 2, { name: 'Another', symbol: 'AAA' })],
      later(),
    );
    expect(await find('aca')).toEqual(['aca-four 4']);
    expect(await find('another')).toEqual(['aab-two 2']);
    expect(await find('name of aab')).toEqual([]);
    expect(await find('aaa', { symbolOnly: true })).toEqual(['aab-two 2', 'aaa-one 3']);
    expect(await find('aaa', { symbolOnly: true, limit: 1 })).toEqual(['aab-two 2']);
  });

  it('finds an inactive coin last, and by its new id only if it has one', async () => {
    await recordCoins(database.sql, [coin('aaa-one', 3, { is_active: false })], later());
    expect(await find('aaa')).toEqual(['aab-two 2', 'aaa-one 3']);
    await recordRenames(database.sql, [{ oldId: 'aaa-one', newId: 'aca-four', at: later() }], 'coins');
    expect(await find('aaa')).toEqual(['aab-two 2']);
    expect(await find('aaa', { symbolOnly: true })).toEqual(['aab-two 2']);
  });

  it('does not find removed coins, nor coins by words they no longer have', async () => {
    await database.sql`delete from market.coin_rename`;
    expect(await find('aaa')).toEqual(['aab-two 2', 'aaa-one 3']);
    await database.sql`delete from market.ticker where coin_id = 'abb-three'`;
    await database.sql`delete from market.coin where id = 'abb-three'`;
    expect(await find('abb')).toEqual([]);
    await database.sql`truncate market.coin cascade`;
    expect(await find('a')).toEqual([]);
  });

  it('finds the same as a scan of all coins', async () => {
    const aWord = fc.string({
      unit: fc.constantFrom('a', 'b', 'ß', 'é', ' ', '\u0001', '₮'),
      minLength: 1,
      maxLength: 4,
    });
    const aCoin = fc.record({ name: aWord, symbol: aWord, rank: fc.nat(6), isActive: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(aCoin, { maxLength: 12 }),
        fc.array(aWord, { minLength: 1, maxLength: 4 }),
        async (some, words) => {
          await database.sql`truncate market.coin cascade`;
          const coins = some.map(({ name, symbol, rank, isActive }, i) =>
            coin(`c${String(i).padStart(2, '0')}`, rank, { name, symbol, is_active: isActive }),
          );
          await recordCoins(database.sql, coins, later());
          const inOrder = coins
            .map((one, i) => ({ ...one, i, place: (one.is_active ? 0 : 100) + (one.rank || 50) }))
            .sort((a, b) => a.place - b.place || a.i - b.i);
          for (const word of words) {
            const wanted = word.trim().toLowerCase();
            const isOne = (test: (text: string) => boolean) =>
              inOrder.filter((one) =>
                [one.symbol, one.name, one.id].some((text) => test(text.toLowerCase().replaceAll('\u0001', ' '))),
              );
            const all =
              wanted === '' || wanted.includes('\u0001')
                ? []
                : [
                    isOne((text) => text === wanted),
                    isOne((text) => text.startsWith(wanted)),
                    isOne((text) => text.includes(wanted)),
                  ].flat();
            const expected = [...new Set(all.map(({ id, rank }) => `${id} ${rank}`))];
            expect(await find(word, { limit: 5 })).toEqual(expected.slice(0, 5));
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});
