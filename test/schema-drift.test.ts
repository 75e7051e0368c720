/** `drizzle-kit generate` starts from the newest snapshot in `migrations/meta`, which must agree with the schema files. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type DrizzleSnapshotJSON, generateDrizzleJson } from 'drizzle-kit/api';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { expect, test } from 'vitest';
import { loadSchemaFiles } from './support/schema-files.ts';

const META = path.join(import.meta.dirname, '../migrations/meta');
const snapshots = readdirSync(META).filter((file) => file.endsWith('_snapshot.json'));
const newest = snapshots.sort().at(-1)!;

const read = (file: string) => JSON.parse(readFileSync(path.join(META, file), 'utf8'));

/** Leaves out the two ids, which only link the snapshots. */
function comparable({ id: _id, prevId: _prevId, ...snapshot }: DrizzleSnapshotJSON): unknown {
  return JSON.parse(JSON.stringify(snapshot));
}

test('the newest migration has a snapshot, and no other has: nobody reads theirs, and the package contained 4.7 MB of them', () => {
  const { entries } = read('_journal.json') as { entries: { idx: number }[] };
  expect(snapshots.map((name) => Number(name.slice(0, 4)))).toEqual([entries.at(-1)!.idx]);
});

test('each migration has a later date than the one before it, otherwise drizzle would skip it', () => {
  const { entries } = read('_journal.json') as { entries: { tag: string; when: number }[] };
  const early = entries.filter(({ when }, i) => i > 0 && when <= entries[i - 1]!.when).map(({ tag }) => tag);
  expect(early).toEqual([]);
});

test('the schema files contain nothing that no migration makes (npx drizzle-kit generate writes one)', async () => {
  const tables = await loadSchemaFiles();
  const snapshot = comparable(read(newest));
  expect(comparable(generateDrizzleJson(tables))).toEqual(snapshot);
  const more = { ...tables, more: pgTable('more', { id: text('id').primaryKey() }) };
  expect(comparable(generateDrizzleJson(more))).not.toEqual(snapshot);
});
