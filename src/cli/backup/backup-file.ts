/** Backups as files: an archive of pg_dump, and next to it its SHA-256 and an attestation of the same instant. */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, lstat, mkdir, open, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { removeAbandoned } from '../../background/attestation/attestation-file.ts';
import type { Instant } from '../../clock.ts';
import { fileProblem } from '../../core/as-error.ts';
import { toIso } from '../../core/format.ts';
import { syncToDisk } from '../../lake/destination/folder.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';

const EXTENSION = '.dump';
/** `chandler-20240131T120000Z.dump`. In a folder, `--keep` counts files with such names, and `restore` takes the newest one. */
const NAME = /^chandler-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.dump$/;
/** A file that is not complete, and what is next to it. */
const PART = /^chandler-\w+\.dump\.[\da-f-]{36}\.part/;

export const attestationBeside = (file: string) => `${file}.attestation.jsonl`;
/** The SHA-256 of the backup, as `sha256sum --check` reads it. */
export const digestBeside = (file: string) => `${file}.sha256`;
const filesBeside = (file: string) => [attestationBeside(file), digestBeside(file)];

/** Whether this is the name of one file, rather than of a folder for many. */
export const namesFile = (target: string) => target.endsWith(EXTENSION);

/** The path of a backup made at this instant. Creates a missing folder. @throws UsageError when nothing can be written there */
export async function placeFor(target: string, at: Instant): Promise<string> {
  if (namesFile(target)) {
    for (const file of [target, ...filesBeside(target)]) {
      if ((await kindOf(file)) !== null)
        throw new UsageError(`${file} exists, and a backup never replaces a file; name another file, or a folder`);
    }
    if ((await kindOf(path.dirname(target))) !== 'folder')
      throw new UsageError(`${target}: there is no such folder; make it, or name another one`);
    return target;
  }
  if ((await kindOf(target)) === 'file')
    throw new UsageError(`${target} is a file; name a folder, or a file that ends in ${EXTENSION}`);
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(`${target} cannot be made (${fileProblem(error)}); name another folder`);
  }
  return path.join(target, `chandler-${toIso(at)!.replace(/\.\d+/, '').replace(/[-:]/g, '')}${EXTENSION}`);
}

async function kindOf(target: string): Promise<'file' | 'folder' | null> {
  const found = await stat(target).catch(() => null);
  return found === null ? null : found.isDirectory() ? 'folder' : 'file';
}

/**
 * Lets `write` fill a file that only this user may read, and the attestation next to it if it writes one. Adds the digest of the file. All have
 * names that mark them as incomplete until all are complete and synced to the disk. When `write` fails, no file is left.
 */
export async function writeBackup<T>(
  file: string,
  signal: AbortSignal,
  write: (part: string) => Promise<T>,
): Promise<T & { readonly sha256: string }> {
  const part = `${file}.${randomUUID()}.part`;
  const named: string[] = [];
  // Only this user may read the file, because its reader can read the whole warehouse.
  await open(part, 'wx', 0o600).then((handle) => handle.close(), refusedFile(file));
  try {
    const written = await write(part);
    await syncToDisk(part);
    const sha256 = await sha256Of(part, signal);
    await writeFile(digestBeside(part), `${sha256}  ${path.basename(file)}\n`, { mode: 0o600 });
    await syncToDisk(digestBeside(part));
    // The backup gets its name last, so that an existing backup is never without the others.
    for (const nameOf of [attestationBeside, digestBeside, (whole: string) => whole]) {
      if (!(await hasFile(nameOf(part)))) continue;
      await giveName(nameOf(part), nameOf(file));
      named.push(nameOf(file));
    }
    await syncToDisk(path.dirname(file));
    return { ...written, sha256 };
  } catch (error) {
    for (const left of [...named, part, ...filesBeside(part)]) await rm(left, { force: true });
    throw error;
  }
}

/** A full disk is explained elsewhere, like that of any file. */
function refusedFile(file: string) {
  return (error: NodeJS.ErrnoException): never => {
    if (error.code === 'ENOSPC' || error.code === 'EDQUOT') throw error;
    throw new CommandFailed(`${file} cannot be written (${fileProblem(error)}); name another folder or file`);
  };
}

async function sha256Of(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
  return hash.digest('hex');
}

/**
 * Compares a backup with the digest next to it, in any form that such files have. Resolves to the digest; null if there is none.
 * @throws CommandFailed when the file is not the one that was written
 */
export async function checkDigest(file: string, signal: AbortSignal): Promise<string | null> {
  const beside = digestBeside(file);
  if (!(await hasFile(beside))) return null;
  const expected = /(?<![\da-f])[\da-f]{64}(?![\da-f])/i.exec(await readFile(beside, 'utf8'))?.[0].toLowerCase();
  if (expected === undefined) throw new CommandFailed(`${beside} contains no SHA-256; remove it, or copy it again`);
  const found = await sha256Of(file, signal);
  if (found === expected) return found;
  throw new CommandFailed(
    `${file} is damaged or was changed: its SHA-256 is ${found}, and ${beside} says ${expected}; use another copy, or remove ${beside} if it belongs to another file. Nothing was restored.`,
  );
}

/** The errors of file systems without links, like those of many USB sticks. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Uses a link, because unlike a rename it replaces no file that another command has written meanwhile. */
async function giveName(part: string, name: string): Promise<void> {
  try {
    await link(part, name);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const isTaken = code === 'EEXIST' || (NO_LINKS.has(code) && (await kindOf(name)) !== null);
    if (isTaken) throw new UsageError(`another command has just made ${name}, and a backup never replaces a file`);
    if (!NO_LINKS.has(code)) throw error;
    return rename(part, name);
  }
  await rm(part);
}

type FoundBackup = { readonly file: string; readonly at: Instant };

/** The backups of a folder, oldest first. Empty when there is no such folder, or when it is a file, which `placeFor` refuses. */
export async function backupsIn(folder: string): Promise<FoundBackup[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code!)) return [];
    throw error;
  });
  return names
    .filter((name) => NAME.test(name))
    .sort()
    .map((name) => ({ file: path.join(folder, name), at: Date.parse(name.replace(NAME, '$1-$2-$3T$4:$5:$6Z')) }));
}

export type Kept = {
  readonly removed: readonly string[];
  /** Why older backups could not be removed, one sentence for each file. */
  readonly notRemoved: readonly string[];
};

/**
 * Removes all backups of the folder of `written` except this one and the newest `keep - 1` others, and the partial files of killed backups. A
 * file that cannot be removed stops no other.
 */
export async function keepNewest(written: string, keep: number): Promise<Kept> {
  const folder = path.dirname(written);
  const removed: string[] = [];
  const notRemoved: string[] = [];
  const attempt = (file: string, remove: () => Promise<unknown>) =>
    remove().catch((error: unknown) => void notRemoved.push(`${file} cannot be removed (${fileProblem(error)})`));
  // Not by its name: if the clock was wrong once, older backups have names from the future.
  const others = (await backupsIn(folder)).filter(({ file }) => file !== written);
  for (const { file } of others.slice(0, Math.max(0, others.length - (keep - 1)))) {
    await attempt(file, async () => {
      // The backup last: without it, nothing would find the others again.
      for (const old of [...filesBeside(file), file]) await rm(old, { force: true });
      removed.push(file);
    });
  }
  for (const name of await readdir(folder)) {
    const part = path.join(folder, name);
    if (PART.test(name)) await attempt(part, () => removeAbandoned(part));
  }
  return { removed, notRemoved };
}

/** The file itself, or the newest backup of the folder. @throws UsageError when there is none */
export async function backupAt(target: string): Promise<string> {
  const kind = await kindOf(target);
  if (kind === null)
    throw new UsageError(`there is no backup ${target}; name the file of a backup, or a folder with backups`);
  if (kind === 'file') return behindLink(target);
  const newest = (await backupsIn(target)).at(-1);
  if (newest === undefined)
    throw new UsageError(`the folder ${target} has no backup (chandler-<instant>${EXTENSION}); name a backup's file`);
  return behindLink(newest.file);
}

/** The files beside a backup have its name, and not that of a link to it, like latest.dump. */
async function behindLink(file: string): Promise<string> {
  const isAlone = !(await Promise.all(filesBeside(file).map(hasFile))).includes(true);
  return isAlone && (await lstat(file)).isSymbolicLink() ? realpath(file).catch(() => file) : file;
}

export async function hasFile(file: string): Promise<boolean> {
  return (await kindOf(file)) === 'file';
}
