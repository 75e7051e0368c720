/** Snapshots of as many coins as the simulator can have. */
import { afterEach, expect, test } from 'vitest';
import { open, scripted, stored } from './snapshots.ts';

afterEach(() => scripted.world.close());

test('a snapshot stores the tickers of 50,000 coins, the most that the simulator can have', {
  timeout: 300_000,
}, async () => {
  const { sql, snapshots, readCoins } = await open({ catalogue: false, coins: 50_000 });
  expect(await readCoins()).toMatchObject({ kind: 'read' });
  expect(await sql`select count(*) as n from market.coin`).toEqual([{ n: 50_000 }]);
  const tickers = stored(await snapshots.tickers());
  const [active] = await sql`select count(*) as n from market.coin where is_active`;
  expect(tickers).toMatchObject({ rows: active!.n, stored: active!.n, quarantined: 0 });
  expect(stored(await snapshots.global())).toMatchObject({ stored: 1, quarantined: 0 });
  expect(stored(await snapshots.exchanges())).toMatchObject({ stored: 12, quarantined: 0 });
});
