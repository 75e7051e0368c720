/** An export over an earlier one: unchanged files stay, changed ones are written again, and a killed run is continued. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { HOUR } from '../../../src/core/interval.ts';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { datasets, exportTo, FROM } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';
import {
  answerAgain,
  database,
  differing,
  filesIn,
  folder,
  SERIES,
  stopAfter,
  testChanges,
  useFilled,
} from './again.ts';

useFilled();

test('two exports of the same data have the same bytes', async () => {
  const other = temporaryFolder();
  const [one, two] = [await exportTo(database, folder), await exportTo(database, other.folder)];
  expect(differing(filesIn(), filesIn(other.folder))).toEqual([]);
  expect(one.bytes).toBe(two.bytes);
  other.remove();
});

test('an export of unchanged data writes only the manifest, with the present instant', async () => {
  const first = await exportTo(database, folder, SERIES);
  expect(first.written.files).toBe(first.files);
  const again = await exportTo(database, folder, SERIES);
  expect(again).toMatchObject({ files: first.files, rows: first.rows, bytes: first.bytes, removed: [] });
  expect(again.written).toEqual({ files: 0, rows: 0, bytes: 0 });
  expect(again.at).toBeGreaterThan(first.at);
  // All digests of months are from the earlier manifest.
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

describe('an export writes only the files whose rows changed', () => {
  testChanges([0]);
});

test('an export removes files that no longer belong to it, with their folders', async () => {
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
  test('leaves no partial file and no manifest; the next run writes only the rest', async () => {
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
});

/** The folder as a run sees it that is killed when it calls one of these functions. */
function killedAt(change: (real: Destination) => Partial<Destination>): { readonly destination: Destination } {
  const real = openFolder(folder);
  return { destination: { ...real, ...change(real) } };
}
const killed = () => Promise.reject(new Error('killed'));
const beforeManifest = (real: Destination): Partial<Destination> => ({
  put: (file, write) => (file === 'manifest.json' ? killed() : real.put(file, write)),
});
const LATER = { ...SERIES, span: { from: Date.UTC(2024, 0, 1), to: Number.POSITIVE_INFINITY } };

describe('a run that was killed', () => {
  test('before its first manifest, and is followed by one of other coins, leaves no row of its own coins', async () => {
    for (const [hour, coin] of [0, 1, 2].flatMap((i) => [[i, 'btc-bitcoin'] as const, [i, 'eth-ethereum'] as const])) {
      const at = new Date(FROM + hour * HOUR);
      await database.sql`insert into market.ticker_history (at, updated_at, rank, coin_id) values (${at}, ${at}, 1, ${coin})
        on conflict do nothing`;
    }
    const span = { from: FROM, to: FROM + 3 * HOUR };
    const tickers = { datasets: datasets('tickers'), format: 'csv', span } as const;
    await expect(
      exportTo(database, folder, { ...tickers, coinIds: ['btc-bitcoin'] }, killedAt(beforeManifest)),
    ).rejects.toThrow('killed');
    await exportTo(database, folder, { ...tickers, coinIds: ['eth-ethereum'] });
    const text = readFileSync(path.join(folder, 'tickers/year=2023/part-01.csv'), 'utf8');
    expect(text.match(/btc-bitcoin|eth-ethereum/g)).toEqual(['eth-ethereum', 'eth-ethereum', 'eth-ethereum']);
  });

  test('between its manifest and the removal of old files: the next run removes them', async () => {
    const first = await exportTo(database, folder, SERIES);
    const inRemoval = killedAt(() => ({ delete: killed }));
    await expect(exportTo(database, folder, LATER, inRemoval)).rejects.toThrow('killed');
    const second = await exportTo(database, folder, LATER);
    expect(second.foreign).toEqual([]);
    expect(second.removed).toHaveLength(first.files - second.files);
    expect(Object.keys(filesIn()).filter((name) => name.includes('2023'))).toEqual([]);
    expect(existsSync(path.join(folder, '.unfinished'))).toBe(false);
  });

  test('between a file and its note: a run that does not want the file removes it', async () => {
    const tickers = 'tickers/year=2023/part-01.parquet';
    let isKilled = false;
    const afterFile = killedAt((real) => ({
      put: async (file, write) => {
        if (isKilled) throw new Error('killed');
        const written = await real.put(file, write);
        isKilled = file === tickers;
        return written;
      },
    }));
    await exportTo(database, folder, LATER);
    await expect(exportTo(database, folder, SERIES, afterFile)).rejects.toThrow('killed');
    expect(existsSync(path.join(folder, tickers))).toBe(true);
    const exported = await exportTo(database, folder, LATER);
    expect(exported.foreign).toEqual([]);
    expect(exported.removed).toContain(tickers);
  });
});

test('an export is of one instant: it lacks what is stored while it runs', async () => {
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

test('the order in which intervals are named does not matter', async () => {
  const first = await exportTo(database, folder, { ...SERIES, intervals: ['24h', '1h'] });
  const again = await exportTo(database, folder, { ...SERIES, intervals: ['1h', '24h'] });
  expect([again.files, again.written.files]).toEqual([first.files, 0]);
  await expect(exportTo(database, folder, { ...SERIES, intervals: ['1h'] })).rejects.toThrow(
    /a different --interval \(1h,24h, not 1h\)/,
  );
});

describe('an export refuses to write into', () => {
  test('a folder with other files', async () => {
    writeFileSync(path.join(folder, 'thesis.txt'), 'mine');
    await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/is not empty, but has no export/);
    expect(Object.keys(filesIn())).toEqual(['thesis.txt']);
  });

  test('the folder of an export with other options', async () => {
    await exportTo(database, folder, SERIES);
    const before = filesIn();
    await expect(exportTo(database, folder, { ...SERIES, format: 'csv' })).rejects.toThrow(
      /a different --format \(parquet, not csv\); give the same options, or name another folder/,
    );
    await expect(exportTo(database, folder, { ...SERIES, coinIds: ['btc-bitcoin'] })).rejects.toThrow(
      /a different --coins \(all, not btc-bitcoin\)/,
    );
    expect(differing(before, filesIn())).toEqual([]);
  });

  test('a folder whose manifest is damaged', async () => {
    await exportTo(database, folder, SERIES);
    const file = path.join(folder, 'manifest.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace('"rows":', '"rows":1'));
    await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/manifest.json in .* is damaged/);
  });

  test('a folder that another export is writing to', async () => {
    const second = exportTo(database, folder, SERIES, {
      onPlan: async () => {
        await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/another export is being written/);
        return true;
      },
    });
    await second;
  });
});
