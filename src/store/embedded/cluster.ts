/** Makes the data folder of the embedded server, completely or not at all, with a password of its own. */
import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { StoreError } from '../connection/store-error.ts';
import type { Binaries } from './binaries.ts';
import { asCommand, changeOwner, type RunAs } from './run-as.ts';
import { explainServerOutput } from './server-failure.ts';

export const SUPERUSER = 'chandler';
const MAJOR_VERSION = '18';
const DRAFT = 'data.new-';

export const dataFolder = (home: string) => path.join(home, 'data');
const passwordFile = (home: string) => path.join(home, 'password');

/** Makes the home folder. Root runs the server as another user, who must be able to enter it; for a normal user the folder is private. */
export function makeHome(home: string): void {
  if (existsSync(home) && readdirSync(home).length > 0) return;
  mkdirSync(path.dirname(home), { recursive: true });
  // Not recursive: on a read-only disk, the recursive form reports a missing folder instead.
  if (!existsSync(home)) mkdirSync(home);
  chmodSync(home, process.getuid?.() === 0 ? 0o711 : 0o700);
}

/** @throws Error ENOENT when the folder has no database yet */
export function readPassword(home: string): string {
  return readFileSync(passwordFile(home), 'utf8').trim();
}

/**
 * Runs initdb when there is no data yet. The caller holds the home's lock.
 * @throws StoreError when the data cannot be made, or when the existing data cannot be used
 */
export async function ensureCluster(home: string, binaries: Binaries, runAs: RunAs): Promise<void> {
  for (const name of readdirSync(home)) {
    // Left by an initdb that was killed.
    if (name.startsWith(DRAFT)) rmSync(path.join(home, name), { recursive: true, force: true });
  }
  const data = dataFolder(home);
  if (existsSync(data)) {
    checkCluster(home);
    changeOwner(runAs, data);
    return;
  }
  const password = randomBytes(18).toString('base64url');
  const draft = path.join(home, DRAFT + randomUUID());
  await runInitdb(home, draft, password, binaries, runAs);
  // First the password, then the data folder: after a kill in between, the next start makes both again.
  writeFileSync(passwordFile(home), `${password}\n`, { mode: 0o600 });
  renameSync(draft, data);
}

function checkCluster(home: string): void {
  const data = dataFolder(home);
  const versionFile = path.join(data, 'PG_VERSION');
  const hint = `move ${data} away and backfill again, or set DATABASE_URL to a Postgres of yours`;
  if (!existsSync(versionFile) || !existsSync(path.join(data, 'global', 'pg_control'))) {
    throw new StoreError(`${data} is not a Postgres data folder, or a damaged one`, hint);
  }
  const version = readFileSync(versionFile, 'utf8').trim();
  if (version !== MAJOR_VERSION) {
    throw new StoreError(
      `${data} was made by Postgres ${version}, this chandler brings Postgres ${MAJOR_VERSION}`,
      hint,
    );
  }
  if (!existsSync(passwordFile(home)))
    throw new StoreError(`${passwordFile(home)} is missing`, `bring it back, or ${hint}`);
}

async function runInitdb(
  home: string,
  target: string,
  password: string,
  binaries: Binaries,
  runAs: RunAs,
): Promise<void> {
  mkdirSync(target, { mode: 0o700 });
  const secret = `${target}.password`;
  writeFileSync(secret, `${password}\n`, { mode: 0o600 });
  if (runAs.kind === 'user') for (const made of [target, secret]) chownSync(made, runAs.uid, runAs.gid);
  try {
    const settings = [
      ...['-D', target, '-U', SUPERUSER, '--pwfile', secret, '--auth', 'scram-sha-256'],
      ...['--encoding', 'UTF8', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C'],
    ];
    const { file, args, identity } = asCommand(runAs, binaries.initdb, settings);
    const { code, output } = await run(file, args, {
      ...identity,
      env: { ...binaries.env, LC_ALL: 'C', TZ: 'UTC' },
      cwd: '/',
    });
    if (code !== 0) {
      rmSync(target, { recursive: true, force: true });
      throw explainServerOutput(output, home, 'make a database');
    }
  } finally {
    rmSync(secret, { force: true });
  }
}

function run(file: string, args: string[], options: object): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    let output = '';
    child.stdout?.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      output += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}
