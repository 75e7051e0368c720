/** A folder of this machine as a destination. */
import { randomUUID } from 'node:crypto';
import { createReadStream, realpathSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { fileProblem } from '../../core/as-error.ts';
import type { ByteSink, Destination, StoredFile } from './destination.ts';
import { DestinationError } from './destination-error.ts';

/** The end of the name of an incomplete file. It is different for each writer. */
const PART = /\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.part$/;

/** The folder is created when the first file is put there. */
export function openFolder(folder: string): Destination {
  const place = (file: string) => path.join(folder, ...file.split('/'));
  return {
    name: folder,
    place: realPath(path.resolve(folder)),
    put: (file, write) => putFile(place(file), write),
    get: async (file, range) => {
      const target = place(file);
      const found = await explained(target, stat(target).catch(nullIfMissing));
      if (found === null || !found.isFile()) return null;
      if (range === undefined) return readStream(target);
      return range.from === range.to ? Readable.from([]) : readStream(target, { start: range.from, end: range.to - 1 });
    },
    list: () => listFiles(folder, ''),
    delete: async (file) => {
      await explained(place(file), rm(place(file), { force: true }));
      await removeEmpty(path.dirname(place(file)), folder);
    },
    sweep: async () => {
      for await (const { path: file } of listAll(folder, '')) {
        if (PART.test(file)) await explained(place(file), rm(place(file), { force: true }));
      }
    },
  };
}

/** Resolves symbolic links, as far as the path exists. */
function realPath(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    const above = path.dirname(folder);
    return above === folder ? folder : path.join(realPath(above), path.basename(folder));
  }
}

async function putFile<T>(target: string, write: (sink: ByteSink) => Promise<T>): Promise<T> {
  const explaining = <R>(work: Promise<R>) => explained(target, work);
  await explaining(mkdir(path.dirname(target), { recursive: true }));
  const writeAll = (file: FileHandle) =>
    write(async (bytes) => {
      for (let at = 0; at < bytes.length; ) at += (await explaining(file.write(bytes, at))).bytesWritten;
    });
  return writeWhole(target, writeAll, explaining);
}

/**
 * Writes a file that appears under its name only when it is complete and synced to the disk. Until then, its name contains a part that differs
 * for each writer, and ends in `.part`. It replaces a file of the same name. When `write` fails, no file is left. `explaining` says more about
 * an error of the file system; errors of `write` it does not see.
 */
export async function writeWhole<T>(
  target: string,
  write: (file: FileHandle) => Promise<T>,
  explaining: <R>(work: Promise<R>) => Promise<R> = (work) => work,
): Promise<T> {
  const part = `${target}.${randomUUID()}.part`;
  const file = await explaining(open(part, 'wx'));
  const finish = async () => {
    await file.sync();
    await file.close();
    await rename(part, target);
    await syncToDisk(path.dirname(target));
  };
  try {
    const written = await write(file);
    await explaining(finish());
    return written;
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(part, { force: true });
    throw error;
  }
}

/** A file is read in pieces of this size. Smaller ones cost more: each is an event, and a call to a thread that reads. */
const PIECE_BYTES = 1 << 18;

async function* readStream(target: string, range?: { readonly start: number; readonly end: number }) {
  try {
    yield* createReadStream(target, { ...range, highWaterMark: PIECE_BYTES }) as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw explain(target, error);
  }
}

async function explained<T>(target: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw explain(target, error);
  }
}

/** These errors persist until somebody changes something. */
const REFUSED = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP']);

function explain(target: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new DestinationError('unavailable', `${target}: the disk is full (${code})`, 'free some space', error);
  return REFUSED.has(code)
    ? new DestinationError(
        'refused',
        `${target}: ${fileProblem(error)}`,
        'correct its owner or its name, or name another folder',
        error,
      )
    : new DestinationError('unavailable', `${target}: ${fileProblem(error)}`, 'check that its disk is mounted', error);
}

/** Syncs a file or a folder. After a folder, the names of its files survive a power failure, too. */
export async function syncToDisk(target: string): Promise<void> {
  // Windows cannot open folders.
  const handle = await open(target, 'r').catch(() => null);
  if (handle === null) return;
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes folders that have become empty, up to the destination. */
async function removeEmpty(folder: string, top: string): Promise<void> {
  for (let at = folder; at.length > top.length; at = path.dirname(at)) {
    try {
      await rmdir(at);
    } catch {
      // The folder has other files, or is gone.
      return;
    }
  }
}

async function* listFiles(folder: string, below: string): AsyncGenerator<StoredFile> {
  for await (const file of listAll(folder, below)) if (!PART.test(file.path)) yield file;
}

/** `linked`: the folders to which links on the way led. */
async function* listAll(folder: string, below: string, linked: readonly string[] = []): AsyncGenerator<StoredFile> {
  const top = path.join(folder, below);
  const entries = await explained(top, readdir(top, { withFileTypes: true }).catch(nullIfMissing));
  for (const entry of entries ?? []) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) {
      yield* listAll(folder, name, linked);
      continue;
    }
    const found = await explained(top, stat(path.join(folder, name)).catch(nullIfMissing));
    if (found === null) continue;
    if (!found.isDirectory()) {
      yield { path: name, bytes: found.size };
      continue;
    }
    // A part of the files may be on another disk. But a link to a folder that is being listed leads in a circle.
    const leadsTo = realPath(path.join(folder, name));
    // The root of a disk ends in a separator already.
    const isAbove = path.join(realPath(top), path.sep).startsWith(path.join(leadsTo, path.sep));
    const isCircle = isAbove || linked.includes(leadsTo);
    if (!isCircle) yield* listAll(folder, name, [...linked, leadsTo]);
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}
