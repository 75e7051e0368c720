/** Here Postgres compares the tables of the migrations with those of the schema files: a snapshot proves nothing about SQL written by hand. */
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';
import { loadSchemaFiles } from '../support/schema-files.ts';
import { tableDefinitions } from '../support/table-definitions.ts';

let migrated: TestDatabase;
/** Made from the schema files alone. */
let described: TestDatabase;
beforeAll(async () => {
  migrated = await createTestDatabase({ max: 1 });
  described = await createEmptyDatabase({ max: 1 });
  const statements = await generateMigration(generateDrizzleJson({}), generateDrizzleJson(await loadSchemaFiles()));
  await described.sql.unsafe(statements.join('\n'));
});
afterAll(() => Promise.all([migrated?.drop(), described?.drop()]));

test('the migrations create the tables that the schema files describe: columns, constraints and indexes', async () => {
  const expected = await tableDefinitions(described.sql);
  expect(expected.filter((line) => line.startsWith('table ')).length).toBeGreaterThan(40);
  expect(await tableDefinitions(migrated.sql)).toEqual(expected);
});

test.each([
  'create table ops.more ()',
  'drop table ops.watch',
  'alter table market.coin add column more text',
  'alter table market.coin alter column rank type bigint',
  'alter table market.coin alter column rank drop not null',
  'alter table ops.quota alter column day_spent set default 1',
  'alter table ops.notice alter column id drop identity',
  'alter table market.rollup_coverage drop constraint rollup_coverage_series_id_interval_pk',
  'alter table market.rollup_coverage drop constraint rollup_coverage_series_id_series_id_fk',
  'alter table ops.second_opinion drop constraint second_opinion_span',
  'drop index market.coin_by_rank',
])('the comparison finds a difference: %s', async (change) => {
  const expected = await tableDefinitions(migrated.sql);
  await described.sql.unsafe(`begin; ${change}`);
  const changed = await tableDefinitions(described.sql);
  await described.sql.unsafe('rollback');
  expect(changed).not.toEqual(expected);
});
