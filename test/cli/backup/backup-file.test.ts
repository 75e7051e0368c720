/** The SHA-256 beside a backup, and the names of its files. */
import { createHash } from 'node:crypto';
import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { backupAt, backupsIn, checkDigest, placeFor, writeBackup } from '../../../src/cli/backup/backup-file.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'chandler-backup-file-'));
  file = path.join(folder, 'x.dump');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the SHA-256 beside a backup', () => {
  const digest = createHash('sha256').update('whole').digest('hex');
  const check = () => checkDigest(file, new AbortController().signal);
  beforeEach(() => writeFileSync(file, 'whole'));

  test.each([
    ['of sha256sum', `${digest}  x.dump\n`],
    ['of sha256sum --binary, on Windows', `${digest} *x.dump\r\n`],
    ['of BSD', `SHA256 (x.dump) = ${digest}\n`],
    ['alone, in capitals, after a byte order mark', `\ufeff${digest.toUpperCase()}`],
    ['of a file that had another name', `${digest}\told.dump\n`],
  ])('is read in the form %s', async (_, text) => {
    writeFileSync(`${file}.sha256`, text);
    expect(await check()).toBe(digest);
    writeFileSync(file, 'other');
    await expect(check()).rejects.toThrow(
      /x\.dump is damaged or was changed: its SHA-256 is .* Nothing was restored\./,
    );
  });

  test('may be absent, but not be something else', async () => {
    expect(await check()).toBeNull();
    for (const text of ['', 'nothing', digest.slice(1), `${digest}0`]) {
      writeFileSync(`${file}.sha256`, text);
      await expect(check(), text).rejects.toThrow(/x\.dump\.sha256 contains no SHA-256/);
    }
  });
});

test.each(['x.dump', 'x.dump.sha256', 'x.dump.attestation.jsonl'])(
  'a new backup that would replace %s is refused before it is made',
  async (name) => {
    expect(await placeFor(file, 0)).toBe(file);
    writeFileSync(path.join(folder, name), 'old');
    await expect(placeFor(file, 0)).rejects.toThrow(`${path.join(folder, name)} exists, and a backup never replaces`);
  },
);

test('a file that cannot be made is named, without advice about other folders than its own', async () => {
  const long = path.join(folder, `${'x'.repeat(240)}.dump`);
  await expect(writeBackup(long, new AbortController().signal, async () => ({}))).rejects.toThrow(
    `${long} cannot be written (its name is too long); name another folder or file`,
  );
});

test('a file where --every expects a folder is refused as without --every', async () => {
  const target = path.join(folder, 'file');
  writeFileSync(target, '');
  expect(await backupsIn(target)).toEqual([]);
  await expect(placeFor(target, 0)).rejects.toThrow(`${target} is a file; name a folder`);
});

test('a link to a backup means the backup, because the files beside it have its name', async () => {
  writeFileSync(file, '');
  writeFileSync(`${file}.sha256`, '');
  expect(await backupAt(file)).toBe(file);
  const latest = path.join(folder, 'latest.dump');
  symlinkSync('x.dump', latest);
  expect(await backupAt(latest)).toBe(realpathSync(file));
  writeFileSync(`${latest}.sha256`, '');
  expect(await backupAt(latest)).toBe(latest);
  symlinkSync('x.dump', path.join(folder, 'chandler-20240131T120000Z.dump'));
  expect(await backupAt(folder)).toBe(realpathSync(file));
});
