/** A filled warehouse, and exports of it into one folder. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY, type Interval } from '../../../src/core/interval.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { AS_OF, datasets, exportTo, FROM, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

export let database: TestDatabase;
let series: Map<Interval, number>;
export let folder: string;
let remove: () => void;

export function useFilled(): void {
  beforeAll(async () => {
    database = await createTestDatabase();
    series = await fillAll(database.sql);
  });
  afterAll(() => database?.drop());
  beforeEach(() => {
    ({ folder, remove } = temporaryFolder());
  });
  afterEach(() => remove());
}

export const SERIES = { datasets: datasets('candles', 'prices', 'tickers') };

/** Paths and bytes of all files except the manifest, which contains the instant. */
export function filesIn(where = folder): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of (readdirSync(where, { recursive: true }) as string[]).sort()) {
    const file = path.join(where, name);
    if (name !== 'manifest.json' && statSync(file).isFile()) found[name] = readFileSync(file).toString('base64');
  }
  return found;
}

export function differing(before: Record<string, string>, after: Record<string, string>): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => before[name] !== after[name])
    .sort();
}

/** Stores a later answer about some days of a series, with other closes. */
export async function answerAgain(interval: Interval, from: number, to: number, asOf = AS_OF + 3 * DAY): Promise<void> {
  for (const chunk of prepareChunks([series.get(interval)!], interval, { from, to })) {
    const close = chunk.candles.close.map((value) => value! * 1.0001);
    await storePrepared(database.sql, { ...chunk, candles: { ...chunk.candles, close } }, asOf);
  }
}

const CHANGES: [string, () => Promise<unknown>, string[]][] = [
  [
    'a later answer about final candles',
    () => answerAgain('24h', Date.UTC(2023, 11, 5), Date.UTC(2023, 11, 8)),
    ['candles/interval=24h/quote=usd/year=2023/part.parquet'],
  ],
  [
    'an answer about a candle that is not final yet',
    () => answerAgain('24h', Date.UTC(2024, 2, 12), Date.UTC(2024, 2, 13), Date.UTC(2024, 2, 13) - 1_000),
    ['candles/interval=24h/quote=usd/year=2024/part.parquet'],
  ],
  [
    'a mending',
    () =>
      database.sql`select ops.uncover(${series.get('1h')!}, ${new Date(Date.UTC(2024, 2, 25))}, ${new Date(Date.UTC(2024, 2, 26))})`,
    ['candles/interval=1h/quote=usd/year=2024/part-q1.parquet'],
  ],
  [
    'a price that is answered again',
    () => answerAgain('prices-1d', Date.UTC(2024, 0, 5), Date.UTC(2024, 0, 6)),
    ['prices/interval=1d/quote=usd/year=2024/part.parquet'],
  ],
  [
    'a snapshot of tickers',
    async () => {
      await ensurePartitionsOf(database.sql, TICKER_HISTORY, { from: FROM, to: FROM + 70 * DAY });
      await database.sql`insert into market.ticker_history (at, updated_at, rank, coin_id)
        values (${new Date(FROM + 45 * DAY)}, ${new Date(FROM + 45 * DAY)}, 1, 'btc-bitcoin')`;
    },
    ['tickers/year=2023/part-02.parquet'],
  ],
  [
    'candles of a month that was empty',
    () => answerAgain('5m', Date.UTC(2024, 4, 2), Date.UTC(2024, 4, 3)),
    ['candles/interval=5m/quote=usd/year=2024/part-05.parquet'],
  ],
];

export function testChanges(which: readonly number[]): void {
  test.each(which.map((i) => CHANGES[i]!))('%s', async (_, change, expected) => {
    await exportTo(database, folder, SERIES);
    const before = filesIn();
    await change();
    const exported = await exportTo(database, folder, SERIES);
    expect(exported.written.files).toBe(expected.length);
    expect(differing(before, filesIn())).toEqual(expected);
  });
}

/** Exports until so many rows are written, then stops. */
export async function stopAfter(rows: number): Promise<void> {
  const stop = new AbortController();
  let seen = 0;
  const onRows = (count: number) => {
    seen += count;
    if (seen >= rows) stop.abort(new Error('stopped'));
  };
  await expect(exportTo(database, folder, SERIES, { signal: stop.signal, onRows })).rejects.toThrow('stopped');
}
