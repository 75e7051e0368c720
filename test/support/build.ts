/** Builds `dist/` from the present sources, for tests that start processes of their own, which cannot run TypeScript. */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/clock.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = path.join(ROOT, 'dist');
// Inside `dist/`, so that the stamp is removed with the build.
const STAMP = path.join(DIST, '.built-for-tests');
const LOCK = path.join(ROOT, 'node_modules', '.chandler-build.lock');

/**
 * Builds when a source is newer than the last build. One test file builds at a time, and the others wait. Types are not checked here; `npm
 * run types` does that. Returns the folder of the built files.
 */
export async function ensureBuilt(): Promise<string> {
  while (!isFresh()) {
    const lock = tryLock();
    if (lock === null) {
      await systemClock.sleep(50);
      continue;
    }
    try {
      if (!isFresh()) build();
    } finally {
      closeSync(lock);
      rmSync(LOCK, { force: true });
    }
  }
  return DIST;
}

function build(): void {
  const startedAt = new Date(systemClock.now());
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  // Like `npm run build`: the program, and the code for the browser.
  for (const project of ['tsconfig.build.json', 'src/dashboard/client']) {
    const args = [tsc, '-p', path.join(ROOT, project), '--noCheck'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    if (status !== 0) throw new Error(`the build for tests failed:\n${stdout}${stderr}`);
  }
  mkdirSync(DIST, { recursive: true });
  writeFileSync(STAMP, '');
  // A source that was saved while tsc ran must count as newer.
  utimesSync(STAMP, startedAt, startedAt);
}

function isFresh(): boolean {
  const built = modifiedAt(STAMP);
  if (built === null) return false;
  const sources = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const files = ['tsconfig.json', 'tsconfig.build.json', 'src', ...sources.map((name) => path.join('src', name))];
  return files.every((file) => (modifiedAt(path.join(ROOT, file)) ?? 0) < built);
}

function modifiedAt(file: string): number | null {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null;
}

/** An open file, or null when another process holds the lock. A lock whose owner is gone is removed. */
function tryLock(): number | null {
  try {
    const lock = openSync(LOCK, 'wx');
    writeFileSync(lock, String(process.pid));
    return lock;
  } catch {
    const owner = Number(readOrEmpty(LOCK));
    if (owner > 0 && !isAlive(owner)) rmSync(LOCK, { force: true });
    return null;
  }
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
