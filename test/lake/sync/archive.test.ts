/** Retention with a lake: Postgres removes only candles that the lake holds, the lake keeps them, and verify still proves them. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { lockOf } from '../../../src/lake/export/export.ts';
import { withLockUnlessHeld } from '../../../src/store/connection/lock.ts';
import { runCommand } from '../../support/cli.ts';
import { withHoles } from '../filled.ts';
import {
  answerAgain,
  candlesOf2023,
  DROPPED,
  database,
  fileOf2023,
  folder,
  log,
  refill,
  retain,
  STAYS,
  sync,
  useLake,
  verified,
} from './archive.ts';

useLake();

test('retention removes nothing while the lake is not in its place, and the log says why', async () => {
  expect(await retain()).toMatchObject(STAYS);
  expect(await candlesOf2023()).toBeGreaterThan(0);
  expect(log.join()).toContain('the lake has no file for candles/interval=24h/quote=usd/year=2023/part.parquet yet');
});

test('retention removes what the lake holds; later runs keep it in the lake, and verify proves it', async () => {
  await sync();
  const { sql } = database;
  const before = fileOf2023();
  const rows = await candlesOf2023();
  expect(before.rows).toBe(rows);
  expect(await retain()).toMatchObject(DROPPED);
  expect([await candlesOf2023(), log]).toEqual([0, []]);
  expect(fileOf2023()).toEqual({ ...before, isArchived: true });
  const again = await sync();
  expect([fileOf2023(), again.written.files]).toEqual([{ ...before, isArchived: true }, 0]);
  // The remaining evidence proves what is in the lake alone.
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
  const [steps] = await sql<
    { removals: number }[]
  >`select count(*)::int as removals from market.evidence where kind = 'retention'`;
  expect(steps!.removals).toBeGreaterThan(1);
  expect(found.warehouse.equal).toBeGreaterThan(steps!.removals);
  const warehouse = await runCommand(['verify', '--json'], { env: { DATABASE_URL: database.url } });
  expect([warehouse.code, warehouse.err]).toEqual([0, '']);
  expect(await retain()).toMatchObject({ partitions: [], notArchived: [] });
});

test('a file stays archived while Postgres lacks any of its rows, even if new answers say that they are empty', async () => {
  await sync();
  const before = fileOf2023();
  expect(await retain()).toMatchObject(DROPPED);
  await refill(withHoles);
  await sync();
  expect(fileOf2023()).toEqual({ ...before, isArchived: true });
  expect((await verified()).findings).toEqual([]);
});

test('candles stay in Postgres until the lake is up to date', async () => {
  await sync();
  await answerAgain(1.1);
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toContain('of the lake is not up to date');
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
  expect((await verified()).findings).toEqual([]);
});

test('a missing file, or one with other bytes than the manifest says, does not count as held by the lake', async () => {
  await sync();
  const file = path.join(folder, fileOf2023().path);
  const bytes = readFileSync(file);
  writeFileSync(file, Buffer.from(bytes).fill(0xff, 100, 101));
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toContain('of the lake differs from its manifest');
  appendFileSync(file, 'x');
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toContain('is missing, or has a different size');
  writeFileSync(file, bytes);
  expect(await retain()).toMatchObject(DROPPED);
});

test('retention removes nothing while a run writes the lake', async () => {
  await sync();
  const removed = await withLockUnlessHeld(database.sql, lockOf(openFolder(folder)), () => retain());
  expect(removed).toMatchObject(STAYS);
  expect(log.join()).toContain('another process is writing the lake; the next run tries again');
});
