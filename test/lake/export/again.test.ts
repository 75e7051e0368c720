/** An export over an earlier one: unchanged files stay, changed ones are written again, and a killed run is continued. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { exportTo } from '../filled.ts';
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
