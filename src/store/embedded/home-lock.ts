/**
 * Coordinates the processes that start, stop and use the server of a home folder. Only one process at a time starts or stops it, even if
 * the previous one was killed. Each process that uses the server has a small file in `users/`, which counts only while that process lives.
 *
 * The lock is the highest-numbered file `start.lock.<n>`. A process takes it by creating number n+1 once the holder of n is dead or
 * has released the lock (its file is empty). Only the holder of a higher number ever removes the highest file. So a process that
 * creates a number and then sees no higher one holds the lock. At no moment can two processes break a stale lock.
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../clock.ts';
import { StoreError } from '../connection/store-error.ts';
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.ts';

const PREFIX = 'start.lock.';
const POLL_MS = 20;
/** Recovery after a crash may take minutes. */
const LOCK_TIMEOUT_MS = 300_000;

/** Runs `work` under the lock. @throws StoreError when another process holds the lock for more than five minutes. */
export async function withHomeLock<T>(home: string, clock: Clock, work: () => Promise<T>): Promise<T> {
  const file = await acquire(home, clock);
  try {
    return await work();
  } finally {
    truncateSync(file);
  }
}

async function acquire(home: string, clock: Clock): Promise<string> {
  const deadline = clock.now() + LOCK_TIMEOUT_MS;
  for (;;) {
    const highest = numbers(home).at(-1) ?? 0;
    const holder = highest === 0 ? null : holderOf(home, highest);
    if (holder === null || !isAlive(holder)) {
      const file = claim(home, highest + 1);
      if (file) return file;
      continue;
    }
    if (clock.now() > deadline) {
      throw new StoreError(
        `process ${holder.pid} has been starting the embedded Postgres in ${home} for five minutes`,
        'stop that process and run the command again',
      );
    }
    await clock.sleep(POLL_MS);
  }
}

/** The lock file if this process got the number. Null if another process was faster. */
function claim(home: string, number: number): string | null {
  const file = path.join(home, PREFIX + number);
  // A link puts the complete file in place, so that nobody reads a half-written one.
  const draft = path.join(home, `.lock-${randomUUID()}`);
  // The next user of this home must be able to read it, even if root wrote it.
  writeFileSync(draft, JSON.stringify(identityOf(process.pid)), { mode: 0o600 });
  chmodSync(draft, 0o644);
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const all = numbers(home);
  if (all.some((n) => n > number)) {
    rmSync(file, { force: true });
    return null;
  }
  for (const older of all.filter((n) => n < number)) rmSync(path.join(home, PREFIX + older), { force: true });
  return file;
}

function numbers(home: string): number[] {
  return readdirSync(home)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => Number(name.slice(PREFIX.length)))
    .filter(Number.isInteger)
    .sort((a, b) => a - b);
}

/** Null when the lock was released, or superseded during this call. */
function holderOf(home: string, number: number): ProcessIdentity | null {
  try {
    const text = readFileSync(path.join(home, PREFIX + number), 'utf8');
    return text === '' ? null : JSON.parse(text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

const usersFolder = (home: string) => path.join(home, 'users');

/** Signs this process in. Pass the name to `unregisterUser`. The caller holds the home's lock. */
export function registerUser(home: string): string {
  mkdirSync(usersFolder(home), { recursive: true });
  const name = randomUUID();
  writeFileSync(path.join(usersFolder(home), name), JSON.stringify(identityOf(process.pid)));
  return name;
}

/** Signs out, removes the files of dead processes, and returns how many users are left. The caller holds the home's lock. */
export function unregisterUser(home: string, name: string | null): number {
  if (name !== null) rmSync(path.join(usersFolder(home), name), { force: true });
  let left = 0;
  for (const other of readdirSync(usersFolder(home))) {
    const file = path.join(usersFolder(home), other);
    const user = identityIn(file);
    if (user !== null && isAlive(user)) left++;
    else rmSync(file, { force: true });
  }
  return left;
}

/** The process ids of the living processes that are signed in. */
export function usersOf(home: string): number[] {
  const names = existsSync(usersFolder(home)) ? readdirSync(usersFolder(home)) : [];
  const users = names.flatMap((name) => identityIn(path.join(usersFolder(home), name)) ?? []);
  return users.filter(isAlive).map(({ pid }) => pid);
}

/** Null when the process has signed out meanwhile, or was killed while it signed in. */
function identityIn(file: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
