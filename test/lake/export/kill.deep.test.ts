/** An export that is killed (kill -9) again and again at any instant ends with the same files as an undisturbed one. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillRecorded } from '../../bench/export-warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { runCli, startCli } from '../../support/program.ts';
import { randomOf } from '../../support/random.ts';
import { temporaryFolder } from '../format/rows.ts';

const ROWS = 300_000;
let database: TestDatabase;
let folder: string;
let remove: () => void;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillRecorded(database.sql, ROWS, { withCaps: true });
  ({ folder, remove } = temporaryFolder());
});
afterAll(async () => {
  remove?.();
  await database?.drop();
});

const env = () => ({ DATABASE_URL: database.url });
const argv = (out: string) => ['export', '--what', 'candles,coins,coverage', '--out', out, '--json'];

function filesIn(out: string): Map<string, string> {
  const found = new Map<string, string>();
  if (!existsSync(out)) return found;
  for (const name of (readdirSync(out, { recursive: true }) as string[]).sort()) {
    const file = path.join(out, name);
    if (statSync(file, { throwIfNoEntry: false })?.isFile() && name !== 'manifest.json')
      found.set(name, readFileSync(file).toString('base64'));
  }
  return found;
}

/** How many files and folders exist now; null if one of them disappeared while they were counted. */
function countIn(out: string): number | null {
  try {
    return readdirSync(out, { recursive: true }).length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return existsSync(out) ? null : 0;
    throw error;
  }
}

/** Starts an export and kills it when so many more files exist than before, complete or not. */
async function killAt(out: string, more: number): Promise<void> {
  const before = countIn(out)!;
  const { process: child, ended } = await startCli(argv(out), env());
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver && (countIn(out) ?? 0) < before + more) await new Promise(setImmediate);
  child.kill('SIGKILL');
  await ended;
}

test('an export that is killed at any file continues, and gives the same result', { timeout: 300_000 }, async () => {
  const whole = path.join(folder, 'whole');
  expect((await runCli(argv(whole), env())).code).toBe(0);
  const expected = filesIn(whole);
  expect(expected.size).toBeGreaterThan(15);
  const random = randomOf(7);
  for (let round = 0; round < 3; round++) {
    const out = path.join(folder, `killed-${round}`);
    for (let kills = 0; kills < 4; kills++) {
      await killAt(out, 1 + Math.floor(random() * 12));
      // Only complete files have a name that readers look for.
      for (const [name, bytes] of filesIn(out)) {
        if (name.endsWith('.parquet')) expect([name, bytes === expected.get(name)]).toEqual([name, true]);
      }
    }
    const { code, out: text, err } = await runCli(argv(out), env());
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(text).export.written.rows).toBeLessThan(JSON.parse(text).export.rows);
    expect([...filesIn(out).keys()]).toEqual([...expected.keys()]);
    const verified = await runCli(['verify', '--files', out, '--json'], env());
    expect([verified.code, JSON.parse(verified.out).findings]).toEqual([0, []]);
  }
});
