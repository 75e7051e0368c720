/** Which lake belongs to this warehouse, in rare situations: killed runs, earlier versions, and old manifests. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { noteBegun } from '../../../src/lake/manifest/journal.ts';
import { readManifest } from '../../../src/lake/manifest/read-manifest.ts';
import { writeManifest } from '../../../src/lake/manifest/write-manifest.ts';
import { ExportBusy } from '../../../src/lake/refused.ts';
import { openArchive } from '../../../src/lake/sync/archive.ts';
import { type KnownLake, readLake, replaceLake } from '../../../src/store/work/lake.ts';
import {
  accept,
  answerAgain,
  checked,
  DROPPED,
  database,
  fileOf2023,
  folder,
  log,
  manifest,
  OLD,
  retain,
  STAYS,
  sync,
  useLake,
  verified,
} from './archive.ts';

useLake();

test('a run that was killed around its first manifest is continued', async () => {
  await sync();
  // The manifest is written, and Postgres does not know it yet.
  await database.sql`update ops.lake set at = null`;
  expect(await retain()).toMatchObject(STAYS);
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
});

test('a lake of an earlier version, whose manifest has no id, gets one', async () => {
  await sync();
  const destination = openFolder(folder);
  const withoutId = async () => {
    const { head, elements } = (await readManifest(destination))!;
    const { id: _, ...rest } = head;
    await writeManifest(destination, rest, elements);
  };
  await withoutId();
  await replaceLake(database.sql, null);
  await sync();
  const known = await readLake(database.sql);
  expect(manifest()).toMatchObject({ id: known!.id });
  // The same after an earlier version has run in between.
  await withoutId();
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  expect(manifest()).toMatchObject({ id: known!.id });
});

test('an older manifest beside files of a newer one is refused, and retention does not rely on it either', async () => {
  await sync();
  const file = path.join(folder, 'manifest.json');
  const older = readFileSync(file);
  await answerAgain(1.1);
  await sync();
  writeFileSync(file, older);
  const newer = readdirSync(path.dirname(path.join(folder, fileOf2023().path)));
  await expect(sync()).rejects.toThrow(
    /the manifest of .* is as of .*, but this warehouse wrote one as of .*, and only a newer manifest can name candles\/.*; restore the newer manifest/,
  );
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toMatch(/but this warehouse wrote one as of/);
  expect(await checked()).toMatchObject([{ state: 'warn', found: expect.stringContaining('is as of') }]);
  expect(readdirSync(path.dirname(path.join(folder, fileOf2023().path)))).toEqual(newer);
  expect((await accept('--yes')).code).toBe(0);
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
});

test('a copy of the database may not write into the lake of the original, which notices if the copy did', async () => {
  await sync();
  const read = async () => (await readLake(database.sql))!;
  const copied = await read();
  await sync();
  const present = await read();
  const become = ({ at, nextAt }: KnownLake) =>
    database.sql`update ops.lake set at = ${at}::timestamptz, next_at = ${nextAt}::timestamptz`;
  await become(copied);
  const noticed =
    /another database wrote .* as of .*, and this one wrote it as of .*: one of them is a copy of the other, or this one was restored or has lost its last commits; name another place/;
  await expect(sync()).rejects.toThrow(noticed);
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toMatch(noticed);
  // A run that is killed after it wrote its manifest has announced it before; so it is recognised, even if the next run announces another
  // one and cannot write it.
  await become({ ...copied, nextAt: present.nextAt });
  await expect(sync(withoutPut('manifest.json'))).rejects.toThrow('no room');
  await sync();
  // The operator says that the other database is gone for good.
  await become(copied);
  expect((await accept('--yes')).code).toBe(0);
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
});

/** A folder in which this file cannot be written. */
function withoutPut(name: string): Destination {
  const destination = openFolder(folder);
  const put: Destination['put'] = (path, ...rest) => {
    if (path === name) throw new Error('no room');
    return destination.put(path, ...rest);
  };
  return { ...destination, put };
}

/** A folder that returns the older manifest at the nth reading; null returns no manifest. */
function withReading(reading: number, older: Buffer | null): Destination {
  const destination = openFolder(folder);
  let readings = 0;
  return {
    ...destination,
    get: async (name, range) => {
      if (name !== 'manifest.json' || ++readings !== reading) return destination.get(name, range);
      return older === null ? null : Readable.from([older]);
    },
  };
}

test('of two runs at the same moment, the second does not mistake the manifest of the first for one of another database', async () => {
  await sync();
  const destination = openFolder(folder);
  let other: Promise<unknown> | null = null;
  const slow: Destination = {
    ...destination,
    get: async (name, range) => {
      const got = await destination.get(name, range);
      if (name !== 'manifest.json' || other !== null) return got;
      // The other run finishes between the first look of this run and the rest of it.
      other = sync().catch((error: unknown) => error);
      await other;
      return got;
    },
  };
  await expect(sync(slow)).resolves.toMatchObject({ written: { files: 0 } });
  expect(await other).toBeInstanceOf(ExportBusy);
});

test('if storage hides the manifest at any moment of a run, the lake stays as it is', async () => {
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  const newest = manifest();
  // The notes of a killed run are no reason to begin a new lake.
  await noteBegun(openFolder(folder), 'coins/part-0123456789abcdef.parquet');
  for (const reading of [1, 2])
    await expect(sync(withReading(reading, null))).rejects.toThrow(/has no manifest of a lake/);
  expect(manifest()).toEqual(newest);
  await sync();
  expect((await verified()).findings).toEqual([]);
});

test('if storage shows another manifest at any moment of a removal, nothing is removed and the newest manifest stays', async () => {
  await sync();
  const older = readFileSync(path.join(folder, 'manifest.json'));
  await answerAgain(1.2);
  await sync();
  const newest = manifest();
  const said: string[] = [];
  const options = { database, onRefused: (why: string) => void said.push(why) };
  // The head, the whole, once more before it is marked, and after that.
  for (const reading of [1, 2, 3, 4]) {
    const destination = withReading(reading, older);
    const held = await openArchive({ ...options, destination }).then(
      (archive) => archive.hold('24h', OLD),
      (error: Error) => void said.push(error.message),
    );
    expect([reading, held ?? null]).toEqual([reading, null]);
    if (reading < 4) expect(manifest()).toEqual(newest);
  }
  expect(said).toEqual([
    expect.stringContaining('but this warehouse wrote one as of'),
    expect.stringMatching(/is missing, or has a different size|is not up to date/),
    expect.stringMatching(/no longer names candles\//),
    expect.stringMatching(/does not mark candles\/.* as archived yet/),
  ]);
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  expect((await verified()).findings).toEqual([]);
});

test('a manifest that disappears before an already archived partition is removed keeps the partition in Postgres', async () => {
  await sync();
  const killed = retain((archive) => ({
    hold: async (interval, partition) => {
      const held = await archive.hold(interval, partition);
      return held === null ? null : { holds: () => Promise.reject(new Error('killed')) };
    },
  }));
  await expect(killed).rejects.toThrow('killed');
  expect(fileOf2023().isArchived).toBe(true);
  const file = path.join(folder, 'manifest.json');
  const newest = readFileSync(file);
  // After the check of the lake, and before the partition.
  const removed = await retain((archive) => {
    rmSync(file);
    return archive;
  });
  expect(removed).toMatchObject(STAYS);
  expect(log.join()).toMatch(/does not mark candles\/.* as archived yet/);
  writeFileSync(file, newest);
  expect(await retain()).toMatchObject(DROPPED);
});
