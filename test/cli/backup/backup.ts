/** A warehouse with evidence, a folder for its backups, and an empty database to restore into. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { libpqEnvironment } from '../../../src/store/connection/libpq-environment.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { findTestClient } from '../../support/postgres-client.ts';
import { fillProved } from '../../support/proved-warehouse.ts';

export const client = await findTestClient();
export let folder: string;
export let original: TestDatabase;
export let target: TestDatabase;
export let series: number;

export function useDatabases(): void {
  beforeEach(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'chandler-backup-'));
    [original, target] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
    series = await fillProved(original.sql);
  });
  afterEach(async () => {
    await Promise.all([original.drop(), target.drop()]);
    rmSync(folder, { recursive: true, force: true });
  });
}

export const backups = () => path.join(folder, 'backups');
export const files = () => (existsSync(backups()) ? readdirSync(backups()).sort() : []);
export const run = (database: TestDatabase, args: string[], options: { PATH?: string; signal?: AbortSignal } = {}) => {
  const { PATH = client!.path, signal } = options;
  return runCommand(args, { env: { DATABASE_URL: database.url, PATH }, ...(signal ? { signal } : {}) });
};
export const backup = (options: { PATH?: string; signal?: AbortSignal } = {}) =>
  run(original, ['backup', backups()], options);
export const restore = () => run(target, ['restore', backups()]);
export const isEmpty = async ({ sql }: TestDatabase) =>
  (await sql`select from pg_namespace where nspname in ('market', 'ops')`).length === 0;

/** Tables, partitions, types, functions, triggers, comments and grants as pg_dump prints them. */
export function schemaOf({ url }: TestDatabase): string {
  const env = { ...process.env, ...libpqEnvironment(url, 'chandler test') };
  const args = ['--schema-only', '--schema=market', '--schema=ops'];
  const text = execFileSync(client!.pgDump, args, { env, encoding: 'utf8', maxBuffer: 2 ** 26 });
  // Text that differs in each run, and brackets and column names that Postgres prints differently after it has parsed its own text.
  return text.replace(/^\\(un)?restrict .*$|^-- Dumped .*$| AS (text|timestamptz)\b/gm, '').replace(/[ ()]+/g, '');
}

export function dumpByHand({ url }: TestDatabase, file: string): void {
  const env = { ...process.env, ...libpqEnvironment(url, 'chandler test') };
  execFileSync(client!.pgDump, ['--format=custom', `--file=${file}`], { env, stdio: 'pipe' });
  chmodSync(file, 0o600);
}
