/** An export over an earlier one: what has not changed is left alone, what has is written anew, and a killed one goes on. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DAY, type Interval } from '../../../src/core/interval.ts';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { AS_OF, datasets, exportTo, FROM, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
let series: Map<Interval, number>;
let folder: string;
let remove: () => void;
beforeAll(async () => {
  database = await createTestDatabase();
  series = await fillAll(database.sql);
});
afterAll(() => database?.drop());
beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
});
afterEach(() => remove());

const SERIES = { datasets: datasets('candles', 'prices', 'tickers') };

/** Paths and bytes of all files but the manifest, which has the instant. */
function filesIn(where = folder): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of (readdirSync(where, { recursive: true }) as string[]).sort()) {
    const file = path.join(where, name);
    if (name !== 'manifest.json' && statSync(file).isFile()) found[name] = readFileSync(file).toString('base64');
  }
  return found;
}

function differing(before: Record<string, string>, after: Record<string, string>): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => before[name] !== after[name])
    .sort();
}

/** A later answer about some days of a series, with other closes. */
async function answerAgain(interval: Interval, from: number, to: number, asOf = AS_OF + 3 * DAY): Promise<void> {
  for (const chunk of prepareChunks([series.get(interval)!], interval, { from, to })) {
    const close = chunk.candles.close.map((value) => value! * 1.0001);
    await storePrepared(database.sql, { ...chunk, candles: { ...chunk.candles, close } }, asOf);
  }
}

async function renameCoin(oldId: string, newId: string): Promise<void> {
  const { sql } = database;
  const coin = { id: newId, name: newId, symbol: 'LTC', rank: 9, is_new: false, is_active: true, type: 'coin' };
  await recordCoins(sql, [coin], AS_OF);
  await sql`update market.coin set is_active = false where id = ${oldId}`;
  await recordRenames(sql, [{ oldId, newId, at: AS_OF }], 'coins');
  expect(await continueHistories(sql, AS_OF)).toBeGreaterThan(0);
}

test('two exports of the same data have the same bytes', async () => {
  const other = temporaryFolder();
  const [one, two] = [await exportTo(database, folder), await exportTo(database, other.folder)];
  expect(differing(filesIn(), filesIn(other.folder))).toEqual([]);
  expect(one.bytes).toBe(two.bytes);
  other.remove();
});

test('nothing is written again when nothing has changed, and the manifest is of now', async () => {
  const first = await exportTo(database, folder, SERIES);
  expect(first.written.files).toBe(first.files);
  const again = await exportTo(database, folder, SERIES);
  expect(again).toMatchObject({ files: first.files, rows: first.rows, bytes: first.bytes, removed: [] });
  expect(again.written).toEqual({ files: 0, rows: 0, bytes: 0 });
  expect(again.at).toBeGreaterThan(first.at);
  // All digests of months came from the manifest before.
  const months = () =>
    JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8')).series.map(
      (one: { months: unknown }) => one.months,
    );
  const kept = months();
  expect(kept.length).toBeGreaterThan(10);
  await exportTo(database, `${folder}/../${path.basename(folder)}-fresh`, SERIES);
  const fresh = JSON.parse(readFileSync(`${folder}-fresh/manifest.json`, 'utf8')).series.map(
    (one: { months: unknown }) => one.months,
  );
  rmSync(`${folder}-fresh`, { recursive: true });
  expect(kept).toEqual(fresh);
});

describe('only the files are written anew whose rows changed', () => {
  const changes: [string, () => Promise<unknown>, string[]][] = [
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
  test.each(changes)('%s', async (_, change, expected) => {
    await exportTo(database, folder, SERIES);
    const before = filesIn();
    await change();
    const exported = await exportTo(database, folder, SERIES);
    expect(exported.written.files).toBe(expected.length);
    expect(differing(before, filesIn())).toEqual(expected);
  });

  test('a coin that was given another id: all files with its rows, and no others', async () => {
    await exportTo(database, folder, SERIES);
    const before = filesIn();
    await renameCoin('ltc-litecoin', 'ltc-lite');
    await exportTo(database, folder, SERIES);
    const changed = differing(before, filesIn());
    expect(changed.length).toBeGreaterThan(5);
    expect(changed.every((name) => !name.startsWith('tickers'))).toBe(true);
  });
});

test('files that are no part of it any more are removed, with their folders', async () => {
  await exportTo(database, folder, SERIES);
  const later = { from: Date.UTC(2024, 0, 1), to: Number.POSITIVE_INFINITY };
  const exported = await exportTo(database, folder, { ...SERIES, span: later });
  expect(exported.removed).toEqual([
    'candles/interval=24h/quote=usd/year=2023/part.parquet',
    'prices/interval=1d/quote=usd/year=2023/part.parquet',
    'tickers/year=2023/part-01.parquet',
    'tickers/year=2023/part-02.parquet',
  ]);
  expect(existsSync(path.join(folder, 'tickers'))).toBe(false);
  expect(exported.written.files).toBe(0);
});

describe('a run that was stopped', () => {
  /** Stops after so many rows. */
  async function stopAfter(rows: number): Promise<void> {
    const stop = new AbortController();
    let seen = 0;
    const onRows = (count: number) => {
      seen += count;
      if (seen >= rows) stop.abort(new Error('stopped'));
    };
    await expect(exportTo(database, folder, SERIES, { signal: stop.signal, onRows })).rejects.toThrow('stopped');
  }

  test('leaves no half file, and no manifest; the next one writes only the rest', async () => {
    const whole = temporaryFolder();
    const { files } = await exportTo(database, whole.folder, SERIES);
    await stopAfter(2_000);
    expect(existsSync(path.join(folder, 'manifest.json'))).toBe(false);
    expect(Object.keys(filesIn()).filter((name) => name.endsWith('.part'))).toEqual([]);
    const finished = Object.keys(filesIn()).filter((name) => name.endsWith('.parquet')).length;
    expect(finished).toBeGreaterThan(1);
    const exported = await exportTo(database, folder, SERIES);
    expect(exported.written.files).toBe(files - finished);
    expect(differing(filesIn(), filesIn(whole.folder))).toEqual([]);
    whole.remove();
  });

  test('right after its first file, before anything says whose it is, goes on as well', async () => {
    const real = openFolder(folder);
    let isKilled = false;
    const destination: Destination = {
      ...real,
      put: async (file, write) => {
        if (isKilled) throw new Error('killed');
        const written = await real.put(file, write);
        isKilled = file.endsWith('.parquet');
        return written;
      },
    };
    await expect(exportTo(database, folder, SERIES, { destination })).rejects.toThrow('killed');
    expect(Object.keys(filesIn()).filter((name) => name.endsWith('.parquet'))).toHaveLength(1);
    const exported = await exportTo(database, folder, SERIES);
    expect(exported.written.files).toBe(exported.files);
  });

  test('over an earlier export leaves its manifest, and nobody trusts the file that was being replaced', async () => {
    await exportTo(database, folder, SERIES);
    const manifest = readFileSync(path.join(folder, 'manifest.json'));
    await answerAgain('5m', Date.UTC(2024, 3, 29), Date.UTC(2024, 3, 30));
    await stopAfter(1);
    expect(readFileSync(path.join(folder, 'manifest.json'))).toEqual(manifest);
    // As if it had been killed between a file and the note about it.
    const notes = readdirSync(path.join(folder, '.unfinished'), { recursive: true }) as string[];
    const [note] = notes.filter((name) => name.endsWith('.json'));
    writeFileSync(path.join(folder, '.unfinished', note!), 'null');
    const exported = await exportTo(database, folder, SERIES);
    expect(exported.written.files).toBe(1);
    expect(existsSync(path.join(folder, '.unfinished'))).toBe(false);
  });

  test('leaves what it was writing when it was killed; the next one sweeps that away', async () => {
    const part = path.join(folder, 'candles/part.parquet.0f8fad5b-d9cb-469f-a165-70867728950e.part');
    mkdirSync(path.dirname(part));
    writeFileSync(part, 'half');
    await exportTo(database, folder, SERIES);
    expect(existsSync(part)).toBe(false);
  });
});

test('what is stored while an export runs is not in it: all of it is of one instant', async () => {
  const before = await exportTo(database, folder, SERIES);
  const other = temporaryFolder();
  const exported = await exportTo(database, other.folder, SERIES, {
    onPlan: async () => {
      await answerAgain('24h', Date.UTC(2024, 2, 13), Date.UTC(2024, 3, 1));
      return true;
    },
  });
  expect(exported.rows).toBe(before.rows);
  expect(differing(filesIn(), filesIn(other.folder))).toEqual([]);
  const later = await exportTo(database, other.folder, SERIES);
  expect(later.rows).toBe(before.rows + 19);
  other.remove();
});

describe('what an export does not touch', () => {
  test('a folder with something else', async () => {
    writeFileSync(path.join(folder, 'thesis.txt'), 'mine');
    await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/is not empty, and has no export/);
    expect(Object.keys(filesIn())).toEqual(['thesis.txt']);
  });

  test('an export with other options', async () => {
    await exportTo(database, folder, SERIES);
    const before = filesIn();
    await expect(exportTo(database, folder, { ...SERIES, format: 'csv' })).rejects.toThrow(
      /another --format \(parquet, and not csv\); give the same options, or name another folder/,
    );
    await expect(exportTo(database, folder, { ...SERIES, coinIds: ['btc-bitcoin'] })).rejects.toThrow(
      /another --coins \(all, and not btc-bitcoin\)/,
    );
    expect(differing(before, filesIn())).toEqual([]);
  });

  test('a folder whose manifest is damaged', async () => {
    await exportTo(database, folder, SERIES);
    const file = path.join(folder, 'manifest.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace('"rows":', '"rows":1'));
    await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/manifest.json in .* is damaged/);
  });

  test('a folder to which another export writes', async () => {
    const second = exportTo(database, folder, SERIES, {
      onPlan: async () => {
        await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/another export is being written/);
        return true;
      },
    });
    await second;
  });
});
