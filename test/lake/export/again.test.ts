/** An export over an earlier one: what has not changed is left alone, what has is written anew, and a killed one goes on. */
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
  testChanges([0]);
});

test('files that are no longer part of it are removed, with their folders', async () => {
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
    await expect(exportTo(database, folder, SERIES)).rejects.toThrow(/is not empty, but has no export/);
    expect(Object.keys(filesIn())).toEqual(['thesis.txt']);
  });

  test('an export with other options', async () => {
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
