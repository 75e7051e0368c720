/** An export over an earlier one: rarer changes, and stops at rarer moments. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { AS_OF, exportTo } from '../filled.ts';
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

async function renameCoin(oldId: string, newId: string): Promise<void> {
  const { sql } = database;
  const coin = { id: newId, name: newId, symbol: 'LTC', rank: 9, is_new: false, is_active: true, type: 'coin' };
  await recordCoins(sql, [coin], AS_OF);
  await sql`update market.coin set is_active = false where id = ${oldId}`;
  await recordRenames(sql, [{ oldId, newId, at: AS_OF }], 'coins');
  expect(await continueHistories(sql, AS_OF)).toBeGreaterThan(0);
}

describe('an export writes only the files whose rows changed', () => {
  testChanges([1, 2, 3, 4, 5]);

  test('when a coin gets another id: all files with its rows, and no others', async () => {
    await exportTo(database, folder, SERIES);
    const before = filesIn();
    await renameCoin('ltc-litecoin', 'ltc-lite');
    await exportTo(database, folder, SERIES);
    const changed = differing(before, filesIn());
    expect(changed.length).toBeGreaterThan(5);
    expect(changed.every((name) => !name.startsWith('tickers'))).toBe(true);
  });
});

describe('a run that was stopped', () => {
  test('after its first file, before a note says whose it is, is continued as well', async () => {
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

  test('over an earlier export leaves the old manifest, and the next run does not trust the file that was being replaced', async () => {
    await exportTo(database, folder, SERIES);
    const manifest = readFileSync(path.join(folder, 'manifest.json'));
    await answerAgain('5m', Date.UTC(2024, 3, 29), Date.UTC(2024, 3, 30));
    await stopAfter(1);
    expect(readFileSync(path.join(folder, 'manifest.json'))).toEqual(manifest);
    // The state after a kill between writing a file and noting it.
    const notes = readdirSync(path.join(folder, '.unfinished'), { recursive: true }) as string[];
    const [note] = notes.filter((name) => name.endsWith('.json'));
    writeFileSync(path.join(folder, '.unfinished', note!), 'null');
    const exported = await exportTo(database, folder, SERIES);
    expect(exported.written.files).toBe(1);
    expect(existsSync(path.join(folder, '.unfinished'))).toBe(false);
  });

  test('leaves the file that it was writing, and the next run removes it', async () => {
    const part = path.join(folder, 'candles/part.parquet.0f8fad5b-d9cb-469f-a165-70867728950e.part');
    mkdirSync(path.dirname(part));
    writeFileSync(part, 'half');
    await exportTo(database, folder, SERIES);
    expect(existsSync(part)).toBe(false);
  });
});
