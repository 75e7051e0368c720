/** The embedded server in temporary folders, started from this process or from others. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { stopEmbedded } from '../../../src/store/embedded/embedded.ts';
import { pidExists } from '../../../src/store/embedded/process-identity.ts';

export const ROOT = path.resolve(import.meta.dirname, '../../..');
export const isRoot = process.getuid?.() === 0;
export const canUnshare = spawnSync('unshare', ['--user', '--map-user=65534', '--', 'true']).status === 0;

/** The launcher as plain JavaScript, so that other processes can run it. */
export let build: string;
export let home: string;
export const children: ChildProcess[] = [];

export type Report = { readonly url: string; readonly pid: number; readonly started: boolean; readonly error?: string };

/** Starts the server from a process of its own, which then waits. `leave` makes that process sign out and end. */
export async function startElsewhere(command = [process.execPath, path.join(build, 'start.js'), home]) {
  const [file, ...args] = command;
  const child = spawn(file!, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  const report = await new Promise<Report>((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) resolve(JSON.parse(text));
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    ...report,
    leave: async () => {
      child.stdin.write('leave\n');
      await ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export async function ask<T>(url: string, statement: string): Promise<T> {
  const database = await openDatabase({ url, max: 1 });
  try {
    return (await database.sql.unsafe(statement)) as unknown as T;
  } finally {
    await database.close();
  }
}

export async function untilGone(pid: number): Promise<void> {
  while (pidExists(pid)) await systemClock.sleep(10);
}

/** Gives every test a folder of its own. Afterwards the folder is removed, and what runs in it is stopped. */
export function useEmbedded(): void {
  beforeAll(() => {
    build = mkdtempSync(path.join(os.tmpdir(), 'chandler-launcher-'));
    chmodSync(build, 0o755);
    execFileSync(path.join(ROOT, 'node_modules/.bin/tsc'), [
      ...[
        '--ignoreConfig',
        '--outDir',
        build,
        '--rootDir',
        path.join(ROOT, 'src'),
        '--target',
        'ES2023',
        '--module',
        'nodenext',
      ],
      ...['--moduleResolution', 'nodenext', '--rewriteRelativeImportExtensions', '--skipLibCheck', '--types', 'node'],
      path.join(ROOT, 'src/store/embedded/embedded.ts'),
    ]);
    writeFileSync(path.join(build, 'package.json'), '{"type":"module"}');
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(build, 'node_modules'));
    writeFileSync(
      path.join(build, 'start.js'),
      `import { systemClock } from './clock.js';
       import { startEmbedded } from './store/embedded/embedded.js';
       const server = await startEmbedded({ home: process.argv[2], clock: systemClock }).catch((error) => ({ error: error.message }));
       const { url, pid, started, error } = server;
       process.stdout.write(JSON.stringify({ url, pid, started, error }) + '\\n');
       if (error) process.exit(1);
       process.stdin.once('data', () => server.stop().then(() => process.exit(0)));`,
    );
  });
  afterAll(() => rmSync(build, { recursive: true, force: true }));
  beforeEach(() => {
    const parent = mkdtempSync(path.join(os.tmpdir(), 'chandler-embedded-'));
    chmodSync(parent, 0o755);
    home = path.join(parent, 'home');
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    if (existsSync(path.join(home, 'data', 'postmaster.pid'))) await stopEmbedded({ home, clock: systemClock });
    rmSync(path.dirname(home), { recursive: true, force: true });
  });
}
