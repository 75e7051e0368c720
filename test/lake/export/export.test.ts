import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DATASETS } from '../../../src/lake/dataset/datasets.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { exportFiles } from '../../../src/lake/export/export.ts';
import type { Selection } from '../../../src/lake/export/selection.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
});
afterAll(() => database?.drop());

export const ALL: Selection = {
  datasets: DATASETS,
  coinIds: null,
  intervals: null,
  span: { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY },
  finalOnly: false,
  format: 'parquet',
  layout: 'hive',
};

test('everything', async () => {
  const { folder } = temporaryFolder();
  console.log(folder);
  const exported = await exportFiles({
    database,
    destination: openFolder(folder),
    selection: ALL,
    signal: new AbortController().signal,
  });
  console.log(exported);
  console.log(
    readFileSync(path.join(folder, 'manifest.json'), 'utf8')
      .slice(0, 200000)
      .split('\n')
      .map((l) => l.slice(0, 250))
      .join('\n'),
  );
  const again = await exportFiles({
    database,
    destination: openFolder(folder),
    selection: ALL,
    signal: new AbortController().signal,
  });
  console.log(again);
  console.log(readdirSync(folder, { recursive: true }).sort().join('\n'), existsSync);
});
