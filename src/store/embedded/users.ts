/** Who uses the server of a home folder: one small file each, which counts only while its process lives. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { identityOf, isAlive } from './process-identity.ts';

const folderOf = (home: string) => path.join(home, 'users');

/** Signs this process in; the name is for `leave`. The caller holds the home's lock. */
export function enter(home: string): string {
  mkdirSync(folderOf(home), { recursive: true });
  const name = randomUUID();
  writeFileSync(path.join(folderOf(home), name), JSON.stringify(identityOf(process.pid)));
  return name;
}

/** Signs out, clears away the dead, and tells how many are left. The caller holds the home's lock. */
export function leave(home: string, name: string | null): number {
  if (name !== null) rmSync(path.join(folderOf(home), name), { force: true });
  let left = 0;
  for (const other of readdirSync(folderOf(home))) {
    const file = path.join(folderOf(home), other);
    if (livesOn(readFileSync(file, 'utf8'))) left++;
    else rmSync(file, { force: true });
  }
  return left;
}

function livesOn(text: string): boolean {
  try {
    return isAlive(JSON.parse(text));
  } catch {
    // Cut short when its process was killed.
    return false;
  }
}
