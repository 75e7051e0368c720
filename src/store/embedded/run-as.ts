/**
 * Chooses the user as which the server runs. Postgres refuses to run as root, so root runs it as `postgres` or `nobody` if that user can
 * reach the folders, else in a user namespace in which root's files belong to nobody. Chandler never creates a user.
 */
import { spawnSync } from 'node:child_process';
import { lchownSync, readdirSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { StoreError } from '../connection/store-error.ts';
import type { Binaries } from './binaries.ts';

export type RunAs =
  | { readonly kind: 'self' }
  | { readonly kind: 'user'; readonly uid: number; readonly gid: number; readonly name: string }
  /** The command must be started through `unshare`. */
  | { readonly kind: 'namespace' };

const UNSHARE = ['--user', '--map-user=65534', '--map-group=65534', '--'];

/** @throws StoreError when no user is found that can run a server in `home` */
export function chooseRunAs(home: string, binaries: Binaries): RunAs {
  // Windows has no uid. There the server drops the administrator's rights itself.
  const uid = process.getuid?.();
  if (uid === undefined) return { kind: 'self' };
  if (uid !== 0) {
    if (hasName()) return { kind: 'self' };
    // Postgres needs a name for its user. In a container that was started with a numeric user, there is none.
    if (namespaceWorks()) return { kind: 'namespace' };
    throw new StoreError(
      `the embedded Postgres cannot run as user ${uid}, who has no entry in /etc/passwd`,
      'add one, or set DATABASE_URL to a Postgres of yours',
    );
  }
  for (const name of ['postgres', 'nobody']) {
    const user = lookUp(name);
    if (user && canReach(home, user) && canRun(binaries, user)) return { kind: 'user', ...user, name };
  }
  if (namespaceWorks()) return { kind: 'namespace' };
  if (spawnSync('id', ['-u'], { stdio: 'ignore' }).error !== undefined) {
    throw new StoreError(
      "the embedded Postgres does not run as root, and the programs 'id' and 'unshare' that find another user for it are not on the PATH",
      'add the folders of the system programs (/usr/bin, /bin) to PATH, or set DATABASE_URL to a Postgres of yours',
    );
  }
  throw new StoreError(
    `the embedded Postgres does not run as root, and neither 'postgres' nor 'nobody' can reach ${home} and ${binaries.root}`,
    'run as a normal user, move the project to a folder that others may enter, or set DATABASE_URL to a Postgres of yours',
  );
}

/** The command line and the spawn options that run `program` in this way. */
export function asCommand(runAs: RunAs, program: string, args: readonly string[]) {
  switch (runAs.kind) {
    case 'self':
      return { file: program, args: [...args], identity: {} };
    case 'user':
      return { file: program, args: [...args], identity: { uid: runAs.uid, gid: runAs.gid } };
    case 'namespace':
      return { file: 'unshare', args: [...UNSHARE, program, ...args], identity: {} };
  }
}

/** Gives `folder` and its contents to the user as which the server will run, because another user may have made the data. */
export function changeOwner(runAs: RunAs, folder: string): void {
  if (process.getuid?.() !== 0) return;
  const owner = runAs.kind === 'user' ? { uid: runAs.uid, gid: runAs.gid } : { uid: 0, gid: 0 };
  if (statSync(folder).uid === owner.uid) return;
  // The folder itself comes last: after a kill in between, its owner still shows that work is left.
  for (const entry of readdirSync(folder, { recursive: true }))
    lchownSync(path.join(folder, String(entry)), owner.uid, owner.gid);
  lchownSync(folder, owner.uid, owner.gid);
}

function hasName(): boolean {
  try {
    os.userInfo();
    return true;
  } catch {
    // This uid has no entry in /etc/passwd.
    return false;
  }
}

function lookUp(name: string): { uid: number; gid: number } | null {
  const runId = (option: string) => spawnSync('id', [option, name], { encoding: 'utf8' });
  const [uid, gid] = [runId('-u'), runId('-g')];
  if (uid.status !== 0 || gid.status !== 0) return null;
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

/** True if this user may enter every folder on the way to `target`. */
function canReach(target: string, user: { uid: number; gid: number }): boolean {
  for (let folder = path.resolve(target); ; folder = path.dirname(folder)) {
    const { mode, uid, gid } = statSync(folder);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (folder === path.dirname(folder)) return true;
  }
}

function canRun(binaries: Binaries, user: { uid: number; gid: number }): boolean {
  const share = path.join(binaries.root, 'share');
  if (!canReach(share, user)) return false;
  // Only a test run shows that this user can also read every library.
  return spawnSync(binaries.initdb, ['--version'], { ...user, env: binaries.env, cwd: '/' }).status === 0;
}

function namespaceWorks(): boolean {
  return spawnSync('unshare', [...UNSHARE, 'true'], { stdio: 'ignore' }).status === 0;
}
