/** Commands on a small disk of their own. */
import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { ensureBuilt } from '../support/build.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

/** The disk of a test is a tmpfs in a mount namespace, which goes with its shell. The test needs the right to make one. */
export const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0;
if (!canMount)
  process.stderr.write('\nthis user may not mount: the suites with full and read-only disks are skipped\n\n');

export let upstream: SimulatedUpstream;
export let program: string;

/**
 * Runs a script that has `/mnt` as a disk of its own, and `chandler` as a command that ends with a line `code N`. Resolves to the output of
 * each command.
 */
export async function onDisk(options: string, script: string): Promise<{ code: number; text: string }[]> {
  const shell = `
    mount -t tmpfs -o ${options} tmpfs /mnt || exit 99
    export CHANDLER_HOME=/mnt/home CHANDLER_BASE_URL=${upstream.baseUrl} CHANDLER_PLAN=enterprise CHANDLER_REQUESTS_PER_SECOND=unlimited
    chandler() { "${process.execPath}" "${program}" "$@" 2>&1; echo "code $?"; }
    ${script}`;
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(CHANDLER_|DATABASE_URL$|REDIS_URL$|LOG_LEVEL$|NODE_OPTIONS$)/.test(name),
    ),
  );
  const child = spawn('unshare', ['-m', 'bash', '-c', shell], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  child.stdout.on('data', (part: Buffer) => (out += part));
  child.stderr.on('data', (part: Buffer) => (out += part));
  await new Promise((resolve) => child.on('close', resolve));
  const said = [...out.matchAll(/([\s\S]*?)^code (\d+)$\n?/gm)];
  return said.map(([, text, code]) => ({ text: text!, code: Number(code) }));
}

export function expectOneSentence(text: string, message: RegExp): void {
  expect(text.split('\n').filter((line) => line.startsWith('error: '))).toHaveLength(1);
  expect(text).toMatch(message);
  expect(text).not.toMatch(/^\s+at .*:\d+:\d+|"stack"/m);
}

export const FULL = /error: the disk of the data folder \/mnt\/home is full; make room and run the command again/;

/** One upstream for all tests, and the current program. */
export function useUpstream(): void {
  beforeAll(async () => {
    program = path.join(await ensureBuilt(), 'main.js');
    upstream = await startUpstream({ seed: 3, coins: 40 });
  });
  afterAll(() => upstream?.close());
}
