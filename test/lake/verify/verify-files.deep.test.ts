/** `chandler verify --files` for all formats and layouts but the one of `verify-files.test.ts`. */
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { FORMATS } from '../../../src/lake/format/format.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { exportTo, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
});
afterAll(() => database?.drop());

const LAYOUTS = ['single', 'hive'] as const;
const OTHERS = FORMATS.flatMap((format) => LAYOUTS.map((layout) => [format, layout] as const)).filter(
  ([format, layout]) => format !== 'parquet' || layout !== 'hive',
);

test.each(OTHERS)('an export as %s (%s) agrees with its manifest and with the warehouse', async (format, layout) => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const exported = await exportTo(database, folder, { format, layout });
  const { code, out, err } = await runCommand(['verify', '--files', folder, '--json'], {
    env: { CHANDLER_HOME: path.join(folder, 'home'), DATABASE_URL: database.url },
  });
  expect(err).toBe('');
  const found = JSON.parse(out);
  expect({ code, ...found }).toMatchObject({ code: 0, isEqual: true, findings: [] });
  expect(found).toMatchObject({ files: exported.files, rows: exported.rows });
  expect(found.warehouse).toMatchObject({ tampered: 0, grown: 0, revised: 0 });
  expect(found.warehouse.equal).toBeGreaterThan(50);
});
