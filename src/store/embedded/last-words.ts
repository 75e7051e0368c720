/** Why the embedded server went away while a command was using it: what it wrote last in its own log. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import path from 'node:path';
import { StoreError } from '../connection/store-error.ts';

const TAIL_BYTES = 16_384;

/** One sentence about a server of this home that no longer answers. */
export function explainLostServer(folder: string): StoreError {
  const home = path.resolve(folder);
  const said = lastWords(path.join(home, 'data', 'log'));
  if (/no space left on device|disk quota exceeded/i.test(said)) {
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

/** Of its newest log what it wrote since it last started; empty when there is none. */
function lastWords(folder: string): string {
  try {
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
    // A log that cannot be read says nothing; the caller still has a sentence.
    return '';
  }
}
