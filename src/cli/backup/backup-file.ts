/** Backups as files: an archive of pg_dump, and next to it an attestation of the same instant. */
import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { removeAbandoned, whyUnreadable } from '../../background/attestation/attestation-file.ts';
import type { Instant } from '../../clock.ts';
import { toIso } from '../../core/format.ts';
import { syncToDisk } from '../../lake/destination/folder.ts';
import { UsageError } from '../shell/exit.ts';

const EXTENSION = '.dump';
/** `chandler-20240131T120000Z.dump`. In a folder, `--keep` counts files with such names, and `restore` takes the newest one. */
const NAME = /^chandler-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.dump$/;
/** A file that is not complete, and its attestation. */
const PART = /^chandler-\w+\.dump\.[\da-f-]{36}\.part/;

export const attestationBeside = (file: string) => `${file}.attestation.jsonl`;

/** Whether this is the name of one file, rather than of a folder for many. */
export const namesFile = (target: string) => target.endsWith(EXTENSION);

/** The path of a backup made at this instant. Creates a missing folder. @throws UsageError when nothing can be written there */
export async function placeFor(target: string, at: Instant): Promise<string> {
  if (namesFile(target)) {
    if ((await kindOf(target)) !== null)
      throw new UsageError(`${target} exists, and a backup never replaces a file; name another file, or a folder`);
    if ((await kindOf(path.dirname(target))) !== 'folder')
      throw new UsageError(`${target}: there is no such folder; make it, or name another one`);
    return target;
  }
  if ((await kindOf(target)) === 'file')
    throw new UsageError(`${target} is a file; name a folder, or a file that ends in ${EXTENSION}`);
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(`${target} cannot be made (${whyUnreadable(error)}); name another folder`);
  }
  return path.join(target, `chandler-${toIso(at)!.replace(/\.\d+/, '').replace(/[-:]/g, '')}${EXTENSION}`);
}

async function kindOf(target: string): Promise<'file' | 'folder' | null> {
  const found = await stat(target).catch(() => null);
  return found === null ? null : found.isDirectory() ? 'folder' : 'file';
}

/**
 * Lets `write` fill a file that only this user may read, and the attestation next to it if it writes one. Both have names that mark them as
 * incomplete until both are complete and synced to the disk. When `write` fails, no file is left.
 */
export async function writeWhole<T>(file: string, write: (part: string) => Promise<T>): Promise<T> {
  const part = `${file}.${randomUUID()}.part`;
  try {
    // Only this user may read the file, because its reader can read the whole warehouse.
    await open(part, 'wx', 0o600).then((handle) => handle.close());
    const written = await write(part);
    await syncToDisk(part);
    // The attestation gets its name first, so that an existing backup is never without it.
    const isAttested = await hasFile(attestationBeside(part));
    if (isAttested) await giveName(attestationBeside(part), attestationBeside(file));
    await giveName(part, file).catch(async (error: unknown) => {
      if (isAttested) await rm(attestationBeside(file), { force: true });
      throw error;
    });
    await syncToDisk(path.dirname(file));
    return written;
  } catch (error) {
    await rm(part, { force: true });
    await rm(attestationBeside(part), { force: true });
    throw error;
  }
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

/** The backups of a folder, oldest first. Empty when there is no such folder. */
export async function backupsIn(folder: string): Promise<FoundBackup[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
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

/** Removes all but the newest `keep` backups of a folder, and the partial files of killed backups. A file that cannot be removed stops no other. */
export async function keepNewest(folder: string, keep: number): Promise<Kept> {
  const removed: string[] = [];
  const notRemoved: string[] = [];
  const attempt = (file: string, remove: () => Promise<unknown>) =>
    remove().catch((error: unknown) => void notRemoved.push(`${file} cannot be removed (${whyUnreadable(error)})`));
  for (const { file } of (await backupsIn(folder)).slice(0, -keep)) {
    await attempt(file, async () => {
      // The backup last: without it, nothing would find its attestation again.
      await rm(attestationBeside(file), { force: true });
      await rm(file, { force: true });
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
  if (kind === 'file') return target;
  const newest = (await backupsIn(target)).at(-1);
  if (newest === undefined)
    throw new UsageError(`the folder ${target} has no backup (chandler-<instant>${EXTENSION}); name a backup's file`);
  return newest.file;
}

export async function hasFile(file: string): Promise<boolean> {
  return (await kindOf(file)) === 'file';
}
