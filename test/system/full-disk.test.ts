import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureBuilt } from '../support/build.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

/** A disk for one test is a tmpfs in a mount namespace, which goes with its shell. It needs the right to make one. */
const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0;
if (!canMount)
  process.stderr.write('\nthis user may not mount: the suites with full and read-only disks are skipped\n\n');

let upstream: SimulatedUpstream;
let program: string;
beforeAll(async () => {
  program = path.join(await ensureBuilt(), 'main.js');
  upstream = await startUpstream({ seed: 3, coins: 40 });
});
afterAll(() => upstream?.close());

/**
 * Runs a script that has `/mnt` as a disk of its own and `chandler` as a command that ends with a line `code N`; resolves to
 * what each of them said.
 */
async function onDisk(options: string, script: string): Promise<{ code: number; text: string }[]> {
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

function expectOneSentence(text: string, message: RegExp): void {
  expect(text.split('\n').filter((line) => line.startsWith('error: '))).toHaveLength(1);
  expect(text).toMatch(message);
  expect(text).not.toMatch(/^\s+at .*:\d+:\d+|"stack"/m);
}

const FULL = /error: the disk of the data folder \/mnt\/home is full; make room and run the command again/;

describe.skipIf(!canMount)('the embedded server', () => {
  test('on a disk too small for it says so and leaves nothing behind; with more room it works', {
    timeout: 120_000,
  }, async () => {
    const [first, second] = await onDisk(
      'size=25m,mode=755',
      `chandler status
       ls -A /mnt/home
       mount -o remount,size=200m /mnt
       chandler migrate`,
    );
    expect(first!.code).toBe(1);
    expectOneSentence(first!.text, FULL);
    // Between the two: what was left in the folder.
    expect(second!.text).not.toMatch(/^data$/m);
    expect(second!.code).toBe(0);
  });

  test('whose disk fills up in the middle of a backfill says so; with more room the next run ends complete and proven', {
    timeout: 180_000,
  }, async () => {
    const target = '--top 12 --start 2025-06-01 --end 2026-06-01 --interval 1h --yes';
    const [first, second, third] = await onDisk(
      'size=56m,mode=755',
      `chandler backfill ${target}
       mount -o remount,size=400m /mnt
       chandler backfill ${target} --json
       chandler verify --json`,
    );
    expect(first!.code).toBe(1);
    expectOneSentence(first!.text, FULL);
    expect(second!.code, second!.text).toBe(0);
    const { backfill } = JSON.parse(second!.text.slice(second!.text.indexOf('{"'))) as {
      backfill: { end: string; gaps: { reason: string }[]; stored: number };
    };
    expect(backfill.end).toBe('done');
    // Coins that have died are asked once more, later.
    expect(backfill.gaps.filter((gap) => gap.reason !== 'unconfirmed')).toEqual([]);
    expect(third!.code, third!.text).toBe(0);
    const proofs = JSON.parse(third!.text) as unknown;
    const series = (Array.isArray(proofs) ? proofs : (proofs as { series: unknown[] }).series) as { candles: number }[];
    const candles = series.reduce((sum, proof) => sum + proof.candles, 0);
    // Part of them had been stored before the disk was full, and was still there.
    expect(candles).toBeGreaterThan(backfill.stored);
  });

  test('in a folder on a read-only disk says so', { timeout: 60_000 }, async () => {
    const [first] = await onDisk('ro,size=1m', 'chandler plan btc-bitcoin --start -30d');
    expect(first!.code).toBe(2);
    expectOneSentence(
      first!.text,
      /error: the data folder \/mnt\/home is on a read-only disk; choose another folder with CHANDLER_HOME/,
    );
  });
});
