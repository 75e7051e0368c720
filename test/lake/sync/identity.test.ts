/** Which lake belongs to this warehouse: a place without its lake, or with another one, is refused, and retention removes nothing. */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { removeWithLake } from '../../../src/background/lake/lake-run.ts';
import { parseConfig } from '../../../src/config.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { createLog } from '../../../src/log.ts';
import { readLake, replaceLake } from '../../../src/store/work/lake.ts';
import { runCommand } from '../../support/cli.ts';
import {
  accept,
  checked,
  DROPPED,
  database,
  folder,
  log,
  manifest,
  moveTo,
  NOW,
  retain,
  STAYS,
  sync,
  useLake,
} from './archive.ts';

useLake();

const LATER = Date.UTC(2026, 5, 1);
const STAYS_2024 = { partitions: [], notArchived: ['candle_24h_2024'] };

test('a folder that is gone, emptied or replaced is refused with what was expected, and nothing is written or removed', async () => {
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
  expect(await checked()).toEqual([]);
  const was = folder;
  const kept = `${folder}-kept`;
  renameSync(was, kept);
  const missed =
    /has no manifest of a lake, but this warehouse wrote its lake to .* \(as of .*\)\. That lake may be the only place with candles that retention removed; mount or restore it, or correct CHANDLER_LAKE_URL; .*: chandler lake accept$/;
  await expect(sync()).rejects.toThrow(missed);
  expect(existsSync(was)).toBe(false);
  mkdirSync(was);
  await expect(sync()).rejects.toThrow(missed);
  expect(await retain(undefined, LATER)).toMatchObject(STAYS_2024);
  expect(log.join()).toMatch(/has no manifest of a lake/);
  expect(readdirSync(was)).toEqual([]);
  expect(await checked()).toMatchObject([
    {
      state: 'fail',
      found: expect.stringContaining('has no manifest'),
      fix: expect.stringContaining('mount or restore it'),
    },
  ]);
  // Files without their manifest are no place for a new lake either.
  cpSync(kept, was, { recursive: true });
  rmSync(path.join(was, 'manifest.json'));
  await expect(sync()).rejects.toThrow(missed);
  rmSync(was, { recursive: true });
  renameSync(kept, was);
  await sync();
  expect(await retain(undefined, LATER)).toMatchObject({ partitions: ['candle_24h_2024'], notArchived: [] });
});

test('a lake that was moved is continued at its new place', async () => {
  await sync();
  const moved = `${folder}-moved`;
  cpSync(folder, moved, { recursive: true });
  moveTo(moved);
  expect(await retain()).toMatchObject(DROPPED);
  const { written } = await sync();
  expect(written.files).toBe(0);
  expect((await readLake(database.sql))!.place).toBe(openFolder(moved).place);
  expect(await checked()).toEqual([]);
  rmSync(moved, { recursive: true });
});

test('two warehouses cannot write into one place', async () => {
  await sync();
  const before = manifest();
  const ours = await readLake(database.sql);
  await replaceLake(database.sql, null);
  const another =
    /has the lake of another warehouse; name another place in CHANDLER_LAKE_URL; or, .*, take it over: chandler lake accept$/;
  await expect(sync()).rejects.toThrow(another);
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toMatch(/has the lake of another warehouse/);
  expect(manifest()).toEqual(before);
  // A warehouse that has a lake elsewhere cannot either.
  await replaceLake(database.sql, { id: crypto.randomUUID(), place: '/elsewhere' });
  await database.sql`update ops.lake set at = ${NOW}::timestamptz`;
  await expect(sync()).rejects.toThrow(
    /has the lake of another warehouse, and this warehouse wrote its lake to \/elsewhere/,
  );
  // After a lost database, the new one takes over the lake.
  await replaceLake(database.sql, null);
  expect((await accept()).err).toMatch(/has the lake of another warehouse\. Give --yes to continue/);
  expect(await accept('--yes')).toMatchObject({
    code: 0,
    out: `${folder} is the lake of this warehouse; the next run of the schedule lake writes it.\n`,
  });
  await sync();
  expect((await readLake(database.sql))!.id).toBe(ours!.id);
  expect(await accept()).toMatchObject({ code: 0, out: 'Nothing was changed: there is nothing to accept.\n' });
});

test('chandler lake accept begins a new lake where the old one is missing; from then on only the new one counts', async () => {
  await sync();
  await retain();
  const old = `${folder}-old`;
  renameSync(folder, old);
  expect(JSON.parse((await accept('--yes', '--json')).out)).toEqual({ accepted: true, place: folder });
  // Accepted, and not written yet.
  expect(await retain(undefined, LATER)).toMatchObject(STAYS_2024);
  expect(await checked()).toEqual([]);
  await sync();
  expect(manifest().files.some((file) => file.path.includes('interval=24h/quote=usd/year=2023'))).toBe(false);
  const fresh = folder;
  moveTo(old);
  await expect(sync()).rejects.toThrow(/has the lake of another warehouse/);
  moveTo(fresh);
  rmSync(old, { recursive: true });
  const [audit] = await database.sql`select command from ops.audit where command like 'lake %'`;
  expect(audit).toEqual({ command: 'lake accept --yes --json' });
});

test('chandler lake accept does not take over an export', async () => {
  mkdirSync(folder, { recursive: true });
  const head = JSON.stringify({ manifest: 1, kind: 'export', at: '2025-01-02T03:04:00.000Z' });
  writeFileSync(path.join(folder, 'manifest.json'), `${head.slice(0, -1)},\n`);
  const { code, err } = await accept('--yes');
  expect(code).toBe(2);
  expect(err).toContain('has an export that was made by hand; name an empty place in CHANDLER_LAKE_URL');
  expect(await readLake(database.sql)).toBeNull();
});

test('a warehouse without the address of its lake removes no candles until the lake is given up', async () => {
  await sync();
  const settings = { DATABASE_URL: database.url, CHANDLER_KEEP_CANDLES: '24h=365d' };
  const parsed = parseConfig(settings);
  if (!('ok' in parsed)) throw new Error(parsed.problems.join());
  const app = { config: parsed.ok, database, log: createLog({ level: 'warn', write: (line) => void log.push(line) }) };
  const held = async () =>
    removeWithLake(
      app,
      async (archive) => archive === undefined || (await archive.hold('24h', { from: 0, to: 1 })) !== null,
    );
  expect(await held()).toBe(false);
  expect(log.join()).toMatch(/CHANDLER_LAKE_URL is not set, and this warehouse wrote its lake to /);
  expect(await checked(settings)).toMatchObject([
    { state: 'warn', fix: expect.stringContaining('chandler lake accept') },
  ]);
  const { code, out } = await runCommand(['lake', 'accept', '--yes'], { env: settings });
  expect([code, out]).toEqual([0, 'This warehouse has no lake any more; retention removes candles for good.\n']);
  expect(await held()).toBe(true);
  expect(await checked(settings)).toEqual([]);
});
