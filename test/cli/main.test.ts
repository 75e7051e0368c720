import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureBuilt } from '../support/build.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { seedSeries } from '../support/warehouse.ts';

let program: string;
let database: TestDatabase;
beforeAll(async () => {
  program = path.join(await ensureBuilt(), 'main.js');
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function start(...argv: string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [program, ...argv], { env: { PATH: process.env.PATH, DATABASE_URL: database.url } });
}

async function outputUntil(child: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    if (pattern.test(text)) return text;
  }
  throw new Error(`ended without ${pattern}: ${text}`);
}

const ended = (child: ChildProcessWithoutNullStreams) =>
  new Promise<{ code: number | null; err: string }>((resolve) => {
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    child.on('close', (code) => resolve({ code, err }));
  });

describe('the program', () => {
  test('uses little memory after loading, on any version of Node', async () => {
    const tell = `
      import { peakMb } from '${new URL('../support/peak-memory.mjs', import.meta.url)}';
      process.on('exit', () => console.error('peak', peakMb(), 'MB'));`;
    // As much as a worker has after large tests: it must not count.
    const held = Buffer.alloc(300_000_000, 1);
    const args = ['--import', `data:text/javascript,${encodeURIComponent(tell)}`, program, '--version'];
    const { code, err } = await ended(spawn(process.execPath, args, { env: { PATH: process.env.PATH } }));
    expect(code).toBe(0);
    // About 110 MB. Node 24 took 280 MB when the heap limit was set only after everything had been loaded.
    expect(Number(/^peak (\S+) MB$/m.exec(err)?.[1])).toBeLessThan(200);
    expect(held[0]).toBe(1);
  });

  test('ends without an error when the reader of its output goes away', async () => {
    const day = 86_400_000;
    const from = Date.UTC(2020, 0, 1);
    // Every second day is covered: 25,000 gaps, more than a pipe holds.
    const covered = Array.from({ length: 500 }, (_, i) => ({
      from: from + (2 * i + 1) * day,
      to: from + (2 * i + 2) * day,
    }));
    for (let i = 0; i < 50; i++) {
      await seedSeries(database.sql, {
        coinId: `c${i}-coin`,
        interval: '24h',
        wanted: [{ from, to: from + 1000 * day }],
        covered,
        candles: [],
      });
    }
    const child = start('gaps', '--all');
    child.stdout.once('data', () => child.stdout.destroy());
    expect(await ended(child)).toEqual({ code: 0, err: '' });
  });

  test.skipIf(!existsSync('/dev/full'))('says so when its output cannot be written: exit code 1', async () => {
    // Writing to this device fails as on a full disk.
    const full = openSync('/dev/full', 'w');
    for (const argv of [['gaps'], ['verify', '--json'], ['--help']]) {
      const env = { PATH: process.env.PATH, DATABASE_URL: database.url };
      const child = spawn(process.execPath, [program, ...argv], { env, stdio: ['ignore', full, 'pipe'] });
      const err = await text(child.stderr!);
      expect([child.exitCode ?? (await once(child, 'exit'))[0], err]).toEqual([
        1,
        'error: standard output cannot be written: the disk is full; free some space and run the command again; nothing stored is lost\n',
      ]);
    }
    closeSync(full);
  });

  test('ends a command with 130 at the first Ctrl-C, and cancels its statement on the server', async () => {
    const child = start('sql', '--json', 'select 1; select pg_sleep(60)');
    const end = ended(child);
    await outputUntil(child, /\]/);
    child.kill('SIGINT');
    expect(await end).toEqual({ code: 130, err: 'error: interrupted by SIGINT\n' });
    const left =
      await database.sql`select from pg_stat_activity where application_name = 'chandler sql' and state = 'active' and datname = current_database()`;
    expect(left).toHaveLength(0);
  });

  test('ends a server with 0 at SIGTERM', async () => {
    const child = start('simulate', '--port', '0');
    const end = ended(child);
    await outputUntil(child, /Ctrl-C ends it/);
    child.kill('SIGTERM');
    expect(await end).toEqual({ code: 0, err: '' });
  });

  test('exits with the code of its command, however its input ends', async () => {
    const child = start('sql');
    child.stdin.end('select nonsense');
    expect(await ended(child)).toEqual({
      code: 1,
      err: 'error: column "nonsense" does not exist (line 1, column 8)\n',
    });
  });
});
