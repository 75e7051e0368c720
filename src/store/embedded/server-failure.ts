/** Explains failures of the embedded server, each in one sentence, from errors of the file system and from the output of the server. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import path from 'node:path';
import { StoreError } from '../connection/store-error.ts';

const TAIL_BYTES = 16_384;
const DISK_FULL = /no space left on device|disk quota exceeded/i;
const FOLDER_HINT = 'choose another folder with CHANDLER_HOME, or set DATABASE_URL to a Postgres of yours';

/** The same failure as a `StoreError` if an operator can fix it, else unchanged. */
export function explainFileError(error: unknown, home: string): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  switch (error.code) {
    case 'ENOTDIR':
    case 'EEXIST':
      return new StoreError(
        `the data folder ${home} cannot be made: there is a file of that name`,
        FOLDER_HINT,
        error,
        true,
      );
    case 'ENOENT':
      return new StoreError(`the data folder ${home} cannot be made, or was removed`, FOLDER_HINT, error, true);
    case 'EACCES':
    case 'EPERM':
      return new StoreError(`the data folder ${home} may not be written by this user`, FOLDER_HINT, error, true);
    case 'EROFS':
      return new StoreError(`the data folder ${home} is on a read-only disk`, FOLDER_HINT, error, true);
    case 'ENOSPC':
    case 'EDQUOT':
      return new StoreError(
        `the disk of the data folder ${home} is full`,
        'make room and run the command again',
        error,
      );
    case 'ENAMETOOLONG':
      return new StoreError(`the name of the data folder ${home} is too long`, FOLDER_HINT, error, true);
    default:
      return error;
  }
}

/** Explains in one sentence what the server, or initdb, printed before it failed. */
export function explainServerOutput(output: string, home: string, doing: string): StoreError {
  if (DISK_FULL.test(output)) {
    return new StoreError(`the disk of the data folder ${home} is full`, 'make room and run the command again');
  }
  if (/read-only file system/i.test(output)) {
    return new StoreError(`the data folder ${home} is on a read-only disk`, FOLDER_HINT, undefined, true);
  }
  if (/could not (create|resize|map|get|open) .*shared memory/i.test(output)) {
    return new StoreError(
      `there is not enough shared memory to ${doing}: ${lastComplaint(output)}`,
      'give this machine or container more memory, or set DATABASE_URL to a Postgres of yours',
    );
  }
  if (/permission denied/i.test(output)) {
    return new StoreError(`could not ${doing}: ${lastComplaint(output)}`, FOLDER_HINT, undefined, true);
  }
  return new StoreError(
    `could not ${doing}: ${lastComplaint(output)}`,
    `see ${home}/postgres.log; if the data is damaged, move ${home}/data away and backfill again`,
  );
}

function lastComplaint(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  const complaint =
    lines.findLast((line) => /PANIC:/.test(line)) ??
    lines.find((line) => /(FATAL|fatal|error):/i.test(line)) ??
    lines.findLast((line) => line !== '') ??
    'it said nothing';
  return complaint.replace(/^.*?\b(PANIC|FATAL|ERROR|initdb: error|error while loading shared libraries):\s*/, '');
}

/** One sentence about a server of this home that no longer answers. */
export function explainLostServer(folder: string): StoreError {
  const home = path.resolve(folder);
  if (DISK_FULL.test(lastLog(home))) {
    return new StoreError(
      `the disk of the data folder ${home} is full`,
      'make room and run the command again; nothing stored is lost',
    );
  }
  return new StoreError(
    `the embedded Postgres in ${home} has gone`,
    `run the command again, nothing stored is lost; what it said last is in ${home}/data/log`,
  );
}

/** What the server wrote to its newest log since it last started; empty when there is none. */
export function lastLog(home: string): string {
  try {
    const folder = path.join(home, 'data', 'log');
    const logs = readdirSync(folder).map((name) => path.join(folder, name));
    const newest = logs.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
    if (newest === undefined) return '';
    const file = openSync(newest, 'r');
    try {
      const tail = Buffer.alloc(TAIL_BYTES);
      const read = readSync(file, tail, 0, TAIL_BYTES, Math.max(0, fstatSync(file).size - TAIL_BYTES));
      return tail.toString('utf8', 0, read).split('starting PostgreSQL').at(-1)!;
    } finally {
      closeSync(file);
    }
  } catch {
    // There is no log yet, or it cannot be read.
    return '';
  }
}
