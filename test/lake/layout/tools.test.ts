/** Files for other tools have the names, columns, order and units that these tools read. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { tableFromIPC } from '@uwdata/flechette';
import { unzipSync } from 'fflate';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY, HOUR, type Interval, MINUTE } from '../../../src/core/interval.ts';
import type { Selection } from '../../../src/lake/export/selection.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { openDuck } from '../duck.ts';
import { datasets, exportTo, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
let folder: string;
let remove: () => void;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
});
afterAll(() => database?.drop());
beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
});
afterEach(() => remove());

const COINS = { datasets: datasets('candles'), coinIds: ['btc-bitcoin', 'eth-ethereum'] };
const written = (selection: Partial<Selection>) => exportTo(database, folder, { ...COINS, ...selection });
const filesIn = () =>
  (readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => /\.\w+$/.test(name) && name !== 'manifest.json')
    .sort();

type Candle = { at: number; open: number; high: number; low: number; close: number; volume: number | null };

/** The stored candles that have all prices, with the volume in coins. */
async function stored(coinId: string, interval: Interval): Promise<Candle[]> {
  return database.sql<Candle[]>`
    select c.open_time as at, c.open, c.high, c.low, c.close, c.volume / c.close as volume
    from market.candle c join market.series s on s.id = c.series_id and s.interval = c.interval
    where s.coin_id = ${coinId} and s.interval = ${interval}::market.candle_interval and c.open is not null order by 1`;
}

test('freqtrade gets a Parquet file for each pair and timeframe, with its columns and dates in milliseconds', async () => {
  await written({ layout: 'freqtrade' });
  expect(filesIn()).toEqual([
    'BTC_USD-1d.parquet',
    'BTC_USD-1h.parquet',
    'BTC_USD-5m.parquet',
    'ETH_USD-1d.parquet',
    'ETH_USD-1h.parquet',
    'ETH_USD-5m.parquet',
  ]);
  const duck = await openDuck();
  const file = path.join(folder, 'BTC_USD-1d.parquet');
  expect(await duck.rows(`select column_name, column_type from (describe select * from '${file}')`)).toEqual([
    ['date', 'TIMESTAMP WITH TIME ZONE'],
    ...['open', 'high', 'low', 'close', 'volume'].map((name) => [name, 'DOUBLE']),
  ]);
  const [logical] = await duck.rows(`select logical_type from parquet_schema('${file}') where name = 'date'`);
  expect(String(logical)).toMatch(/MILLIS/);
  const rows = await duck.rows(`select epoch_ms("date")::double, open, high, low, close, volume from '${file}'`);
  expect(rows).toEqual(
    (await stored('btc-bitcoin', '24h')).map(({ at, open, high, low, close, volume }) => [
      at,
      open,
      high,
      low,
      close,
      volume,
    ]),
  );
  expect(rows.some(([, , , , , volume]) => volume === null)).toBe(true);
});

test('freqtrade gets feather files', async () => {
  await written({ layout: 'freqtrade', format: 'arrow', intervals: ['1h'] });
  expect(filesIn()).toEqual(['BTC_USD-1h.feather', 'ETH_USD-1h.feather']);
  const table = tableFromIPC(readFileSync(path.join(folder, 'BTC_USD-1h.feather')));
  expect(table.names).toEqual(['date', 'open', 'high', 'low', 'close', 'volume']);
  const candles = await stored('btc-bitcoin', '1h');
  expect([...table.getChild('date')]).toEqual(candles.map(({ at }) => at));
  expect([...table.getChild('close')]).toEqual(candles.map(({ close }) => close));
});

test('LEAN gets a zip file for each pair of hours and days, with one CSV in UTC and prices without exponents', async () => {
  await written({ layout: 'lean', format: 'csv', intervals: ['1h', '24h'] });
  expect(filesIn()).toEqual([
    'crypto/coinbase/daily/btcusd_trade.zip',
    'crypto/coinbase/daily/ethusd_trade.zip',
    'crypto/coinbase/hour/btcusd_trade.zip',
    'crypto/coinbase/hour/ethusd_trade.zip',
  ]);
  for (const [file, interval] of [
    ['daily', '24h'],
    ['hour', '1h'],
  ] as const) {
    const zip = unzipSync(readFileSync(path.join(folder, `crypto/coinbase/${file}/btcusd_trade.zip`)));
    expect(Object.keys(zip)).toEqual(['btcusd.csv']);
    const lines = Buffer.from(zip['btcusd.csv']!).toString().trimEnd().split('\n');
    const candles = await stored('btc-bitcoin', interval);
    expect(lines).toHaveLength(candles.length);
    for (const [i, line] of lines.entries()) {
      const [time, ...numbers] = line.split(',');
      const { at, open, high, low, close, volume } = candles[i]!;
      const [, y, mo, d, h, mi] = /^(\d{4})(\d\d)(\d\d) (\d\d):(\d\d)$/.exec(time!)!;
      expect(Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi))).toBe(at);
      expect(numbers.every((number) => /^\d+(\.\d+)?$/.test(number))).toBe(true);
      expect(numbers.map(Number)).toEqual([open, high, low, close, volume ?? 0]);
    }
  }
});

test('LEAN gets no 5m', async () => {
  await expect(written({ layout: 'lean', format: 'csv' })).rejects.toThrow(
    'LEAN supports only hours and days, not 5m; add --interval 1h,24h',
  );
});

test('Jesse gets minutes without a hole, which add up to the stored candles', async () => {
  await written({ layout: 'jesse', format: 'csv', intervals: ['24h', '1h'] });
  expect(filesIn()).toEqual(['1h/BTC-USD-1m.csv', '1h/ETH-USD-1m.csv', '24h/BTC-USD-1m.csv', '24h/ETH-USD-1m.csv']);
  for (const [interval, width] of [
    ['1h', HOUR],
    ['24h', DAY],
  ] as const) {
    const [header, ...lines] = readFileSync(path.join(folder, `${interval}/BTC-USD-1m.csv`), 'utf8')
      .trimEnd()
      .split('\n');
    expect(header).toBe('timestamp,open,close,high,low,volume');
    const minutes = lines.map(
      (line) => line.split(',').map(Number) as [number, number, number, number, number, number],
    );
    expect(minutes.every(([at], i) => at === minutes[0]![0] + i * MINUTE)).toBe(true);
    // Like Jesse, by counting rows.
    const each = width / MINUTE;
    const made: Candle[] = [];
    for (let i = 0; i < minutes.length; i += each) {
      const part = minutes.slice(i, i + each);
      made.push({
        at: part[0]![0],
        open: part[0]![1],
        close: part.at(-1)![2],
        high: Math.max(...part.map(([, , , high]) => high)),
        low: Math.min(...part.map(([, , , , low]) => low)),
        volume: part.reduce((sum, [, , , , , volume]) => sum + volume, 0),
      });
    }
    const candles = await stored('btc-bitcoin', interval);
    const byTime = new Map(candles.map((candle) => [candle.at, { ...candle, volume: candle.volume ?? 0 }]));
    expect(made.filter(({ at }) => byTime.has(at))).toEqual([...byTime.values()]);
    // Slots without a candle are flat.
    const flat = made.filter(({ at }) => !byTime.has(at));
    expect(flat.length).toBeGreaterThan(0);
    for (const { open, high, low, close, volume } of flat)
      expect([open, high, low, volume]).toEqual([close, close, close, 0]);
  }
});

test('two coins with one symbol would share a file: nothing is written', async () => {
  await database.sql`update market.coin set symbol = 'BTC' where id = 'eth-ethereum'`;
  const writing = written({ layout: 'freqtrade' });
  await expect(writing).rejects.toThrow(
    /btc-bitcoin and eth-ethereum both have the symbol BTC.*choose coins with --coins/,
  );
  await database.sql`update market.coin set symbol = 'ETH' where id = 'eth-ethereum'`;
  expect(filesIn()).toEqual([]);
});
