import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { DEFAULT_KEEP } from '../../src/core/settings/retention-settings.ts';
import { removeOld } from '../../src/store/upkeep/retention.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const TO = Math.floor(NOW / DAY) * DAY - 3 * DAY;

let world: World;
afterEach(() => world?.close());

const partitions = async (): Promise<string[]> => {
  const rows = await world.database.sql<{ name: string }[]>`
    select relid::regclass::text as name from pg_partition_tree('market.candle') where isleaf and level = 2 order by 1`;
  return rows.map((row) => row.name);
};

test('partitions are made for stored candles, not for requested years in which a coin did not exist', async () => {
  world = await createWorld({ startAt: NOW, simulator: { seed: 3, coins: 6, unlimited: true } });
  const chandler = await world.open();
  // As for a coin whose start the upstream does not report.
  await world.database.sql`update market.coin set first_data_at = null`;
  const run = await chandler.backfill({ coins: ['btc-bitcoin'], from: Date.UTC(1971, 0, 1), to: TO });
  expect(run.end).toEqual({ kind: 'done' });
  const years = await world.database.sql<{ name: string }[]>`
    select distinct 'market.candle_24h_' || extract(year from open_time) as name from market.candle order by 1`;
  expect(years.length).toBeGreaterThan(2);
  expect(years.length).toBeLessThan(30);
  expect(await partitions()).toEqual(years.map((row) => row.name));

  // None for the time between two spans that are far apart either.
  const hours = (from: number) => ({ coins: ['btc-bitcoin'], interval: '1h' as const, from, to: from + 2 * DAY });
  await chandler.backfill(hours(Date.UTC(2020, 0, 10)));
  await chandler.backfill(hours(Date.UTC(2026, 7, 10)));
  expect((await partitions()).filter((name) => name.includes('_1h_'))).toEqual([
    'market.candle_1h_2020q1',
    'market.candle_1h_2026q3',
  ]);
});

test('a partition that retention has removed is made again for an answer, which costs one request', async () => {
  world = await createWorld({ startAt: NOW, simulator: { seed: 3, coins: 6, unlimited: true } });
  const chandler = await world.open();
  const hours = {
    coins: ['btc-bitcoin'],
    interval: '1h' as const,
    from: Date.UTC(2020, 0, 10),
    to: Date.UTC(2020, 0, 12),
  };
  await chandler.backfill(hours);
  const keep = { ...DEFAULT_KEEP, candles: { ...DEFAULT_KEEP.candles, '1h': 500 * DAY } };
  expect(await removeOld(world.database, { keep, now: NOW })).toMatchObject({ partitions: ['candle_1h_2020q1'] });
  // The same process, which has used the partition before.
  const again = await chandler.backfill(hours);
  expect(again).toMatchObject({ end: { kind: 'done' }, failed: [], totals: { requests: 1, stored: 48 } });
  expect(await partitions()).toContain('market.candle_1h_2020q1');
});
