import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { fillAll } from '../../lake/filled.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const disk = { free: Number.POSITIVE_INFINITY };
// No mock of the module: other files of this process have imported it already.
const statfs = vi.spyOn(fs, 'statfs');
statfs.mockImplementation(
  async () => ({ bavail: disk.free, bsize: 1 }) as unknown as Awaited<ReturnType<typeof fs.statfs>>,
);
syncBuiltinESMExports();

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-room-'));
});
afterAll(async () => {
  statfs.mockRestore();
  syncBuiltinESMExports();
  rmSync(folder, { recursive: true });
  await database?.drop();
});

test('export refuses a disk that is too small, but not for files that are there already', async () => {
  const out = path.join(folder, 'my files');
  const chandler = () => runCommand(['export', '--out', out], { env: { DATABASE_URL: database.url } });
  disk.free = 1_000;
  const small = await chandler();
  expect(small.code).toBe(2);
  expect(small.err).toMatch(/^error: --out: the disk of .*my files has 1 kB free, and the files may need [\d.]+ kB; /);
  expect(existsSync(out)).toBe(false);
  disk.free = Number.POSITIVE_INFINITY;
  const first = await chandler();
  expect(first.code).toBe(0);
  // To be copied into a shell.
  expect(first.out).toContain(`\nchandler verify --files '${out}' recounts them.\n`);
  disk.free = 100_000;
  const again = await chandler();
  expect([again.code, again.err]).toEqual([0, '']);
  expect(again.out).toMatch(/written now: 1 file, /);
});
