import { afterAll, beforeAll, expect, test } from 'vitest';
import { coinsNamed } from '../../../src/cli/sql/unknown-coins.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { seedSeries } from '../../support/warehouse.ts';

test.each([
  ["select * from market.candles where coin_id = 'BTC' and interval = '24h'", ['BTC']],
  ["select * from market.candles c where c.coin_id='BTC' or c.\"coin_id\" = 'it''s'", ['BTC', "it's"]],
  ["select * from market.candles where coin_id in ('BTC', 'ETH' , 'BTC')", ['BTC', 'ETH']],
  ["select * from market.candles where coin_id = any(array['BTC', 'ETH'])", ['BTC', 'ETH']],
  ["select * from market.candles where coin_id like 'btc%' and symbol = 'BTC'", []],
  ['select * from market.candles where coin_id = symbol', []],
])('the names of coins are found in: %s', (statement, names) => {
  expect(coinsNamed(statement)).toEqual(names);
});

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const at = Date.UTC(2024, 0, 1);
  await seedSeries(database.sql, { coinId: 'btc-bitcoin', interval: '24h', wanted: [], covered: [], candles: [at] });
});
afterAll(() => database.drop());

const run = (statement: string, ...options: string[]) =>
  runCommand(['sql', ...options, statement], { env: { DATABASE_URL: database.url } });

test('sql notes which coins in a statement have no such id', async () => {
  const found = await run(
    "select close from market.candles where coin_id in ('BTC', 'btc-bitcoin', 'nobody') and interval = '1h'",
  );
  expect(found.code).toBe(0);
  expect(found.out).toContain('(0 rows)');
  expect(found.err).toBe(
    'note: no coin has the id BTC; it is a name of btc-bitcoin\n' +
      'note: no coin is called nobody. Give the id of a coin (market.coin.id), an old id, a symbol, or the address of a contract.\n',
  );
  const json = await run("select close from market.candles where coin_id = 'BTC'", '--json');
  expect([json.out, json.err]).toEqual(['[]\n', 'note: no coin has the id BTC; it is a name of btc-bitcoin\n']);
});

test('sql notes it also for a count, whose result looks like an answer, and notes nothing when all ids exist', async () => {
  expect((await run("select count(*) from market.candles where coin_id = 'BTC'")).err).toBe(
    'note: no coin has the id BTC; it is a name of btc-bitcoin\n',
  );
  expect((await run("select close from market.candles where coin_id = 'btc-bitcoin' and interval = '1h'")).err).toBe(
    '',
  );
});
