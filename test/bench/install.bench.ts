/** From a fresh checkout to the first stored candles, as the README describes it: `npm ci`, then `npm run demo`. */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { table, verdict } from './rounds.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROMISED_S = 90;

it('a fresh checkout shows stored candles within 90 seconds, once the packages are downloaded', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-install-'));
  // As root: the user of the embedded server must be able to enter the folder.
  chmodSync(folder, 0o755);
  const project = path.join(folder, 'chandler');
  const env = cleanEnvironment();
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd: project, env, stdio: 'pipe' });
  try {
    execFileSync('git', ['clone', '--quiet', ROOT, project], { stdio: 'pipe' });
    // Downloads what npm's cache lacks.
    npm('ci', '--no-audit', '--no-fund');
    rmSync(path.join(project, 'node_modules'), { recursive: true });
    rmSync(path.join(project, 'dist'), { recursive: true });

    const startedAt = systemClock.now();
    npm('ci', '--prefer-offline', '--no-audit', '--no-fund');
    const installedAt = systemClock.now();
    const { firstRowsAt, endedAt } = await demo(project, env);
    const seconds = (from: number, to: number) => (to - from) / 1000;
    const total = seconds(startedAt, firstRowsAt);
    console.info(
      table('from a fresh checkout, packages in the cache of npm', [
        ['npm ci, build included', `${seconds(startedAt, installedAt).toFixed(1)} s`],
        ['npm run demo until it tells of stored candles', `${seconds(installedAt, firstRowsAt).toFixed(1)} s`],
        [`both (< ${PROMISED_S} s)`, `${total.toFixed(1)} s ${verdict(total < PROMISED_S)}`],
        ['until the demo has ended', `${seconds(startedAt, endedAt).toFixed(1)} s`],
      ]),
    );
    expect(total).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function demo(cwd: string, env: NodeJS.ProcessEnv): Promise<{ firstRowsAt: number; endedAt: number }> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['run', 'demo'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    let firstRowsAt: number | null = null;
    const read = (part: Buffer) => {
      text += part;
      // A line of progress or the report, whichever first has a number above 0.
      if (firstRowsAt === null && /\d+ requests, [1-9][\d,]* candles|stored +[1-9][\d,]* candles/.test(text)) {
        firstRowsAt = systemClock.now();
      }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0 && firstRowsAt !== null) resolve({ firstRowsAt, endedAt: systemClock.now() });
      else reject(new Error(`the demo ended with ${code}:\n${text}`));
    });
  });
}

/** The environment of a user's shell: without variables of the test runner and settings of Chandler. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const ours =
    /^(CHANDLER_|DATABASE_URL$|REDIS_URL$|TEST_|VITEST|NODE_ENV$|NODE_OPTIONS$|INIT_CWD$|npm_(lifecycle|package|command|execpath|node_execpath))/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
