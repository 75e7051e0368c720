/** A database with a backup, and one to restore into. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { findTestClient } from '../../support/postgres-client.ts';
import { fillProved } from '../../support/proved-warehouse.ts';

export const client = await findTestClient();
export let folder: string;
export let original: TestDatabase;
export let target: TestDatabase;

export function useDatabases(): void {
  beforeEach(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'chandler-occupied-'));
    [original, target] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
    await fillProved(original.sql);
  });
  afterEach(async () => {
    await Promise.all([original.drop(), target.drop()]);
    rmSync(folder, { recursive: true, force: true });
  });
}

export const run = (database: TestDatabase, args: string[]) =>
  runCommand(args, { env: { DATABASE_URL: database.url, PATH: client!.path } });
export const backup = async () => expect(await run(original, ['backup', folder])).toMatchObject({ code: 0, err: '' });
export const restore = () => run(target, ['restore', folder]);
export const seriesOf = async ({ sql }: TestDatabase) => (await sql`select from market.series`).length;
