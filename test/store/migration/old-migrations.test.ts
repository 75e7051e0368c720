/**
 * A database of the migrations before 0.1.0 is moved with the commands that `chandler migrate` names. It is kept in
 * `fixtures/old-database.sql.gz` (pg_dump --inserts), with some rows.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { checkSchema, isUnmigrated, migrate } from '../../../src/store/migration/migrate.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';

const FIXTURES = path.join(import.meta.dirname, 'fixtures');
const WHAT =
  'this database was made by a version before 0.1.0, and nothing in it was changed; move its data into an empty';

let old: TestDatabase;
let fresh: TestDatabase;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-move-'));
  [old, fresh] = await Promise.all([createEmptyDatabase({ max: 2 }), createEmptyDatabase({ max: 2 })]);
  // A separate connection: the dump changes settings of its session.
  const sql = createClient({ url: old.url, max: 1 });
  await sql.unsafe(gunzipSync(readFileSync(path.join(FIXTURES, 'old-database.sql.gz'))).toString());
  await sql.end();
});
afterAll(async () => {
  await Promise.all([old?.drop(), fresh?.drop()]);
  rmSync(folder, { recursive: true, force: true });
});

test('every command says which version the database has and how to move on', async () => {
  expect(await isUnmigrated(old)).toBe(false);
  await expect(checkSchema(old)).rejects.toThrow(WHAT);
  await expect(migrate(old)).rejects.toThrow(WHAT);
  for (const command of ['migrate', 'status']) {
    const { code, err } = await runCommand([command], { env: { DATABASE_URL: old.url } });
    expect(code).toBe(1);
    expect(err).toContain(WHAT);
  }
});

test('the commands that it names move every row', async () => {
  const { err } = await runCommand(['migrate'], { env: { DATABASE_URL: old.url } });
  const [first, ...commands] = err.split('\n').filter((line) => line.startsWith('  '));
  expect(first).toBe('  DATABASE_URL="$NEW" chandler migrate');
  expect((await runCommand(['migrate'], { env: { DATABASE_URL: fresh.url } })).code).toBe(0);

  const PATH = `${await dumpFolder(old.sql)}${path.delimiter}${process.env.PATH}`;
  const env = { ...process.env, PATH, OLD: old.url, NEW: fresh.url };
  expect(commands).toHaveLength(4);
  for (const command of commands) {
    const { status, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
    expect({ command, status, stderr: status === 0 ? '' : stderr }).toEqual({ command, status: 0, stderr: '' });
  }

  // Candles that were made ahead of time are made anew.
  const { 'market.rolled': rolled, 'market.rollup': _rollups, ...kept } = await allRows(old.sql);
  expect(rolled).toHaveLength(1);
  const rows = inNewTables(kept);
  expect(Object.keys(rows).length).toBeGreaterThan(40);
  expect(rows['ops.second_opinion']).toHaveLength(1);
  expect(rows['market.refusal']!.map((row) => row.reason)).toContain('history limit');
  expect(rows['market.candle_1h_2024q1']).toHaveLength(2);
  const {
    'market.evidence': adopted,
    'market.rate': _rates,
    'market.price': _prices,
    'ops.api_pace': _pace,
    'ops.counted': _counted,
    'ops.dashboard_session': _sessions,
    'ops.lake': _lake,
    'market.rollup': rollups,
    'market.rollup_coverage': rollupCoverage,
    'market.calendar_candle': _calendar,
    'market.calendar_coverage': _calendarCoverage,
    'market.imported_series': _importedSeries,
    'market.imported_candle': _importedCandles,
    ...moved
  } = await allRows(fresh.sql);
  expect(withoutNew(moved)).toEqual(withoutNew(rows));
  expect([rollups, rollupCoverage]).toEqual([[], []]);
  // Spans that were final before evidence existed are adopted: one step for each series with coverage.
  const covered = moved['market.series']!.filter((row) => row.covered !== '{}');
  expect(adopted!.map((row) => [row.series_id, row.kind])).toEqual(covered.map((row) => [row.id, 'adopted']));
  expect(moved['market.series']!.map((row) => row.candles)).toEqual([2]);
  expect(moved['market.document']!.map((row) => row.received_sha256)).not.toContain(null);
  await checkSchema(fresh);
  expect(await fresh.sql`select from market.candles`).toHaveLength(2);
  // Sequences continue after the last used number.
  const [series] = await fresh.sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval) values ('eth-ethereum', 'usd', '1h') returning id`;
  expect(series?.id).toBe(3);
});

const NEW_NAMES: Readonly<Record<string, string>> = {
  'ops.backfill_past': 'ops.fetch_totals',
  'ops.open_wall': 'ops.lifted_history_limit',
  doubted: 'unconfirmed_slots',
  essence: 'fingerprint',
  is_cut: 'is_truncated',
  month_held: 'month_leased',
  proven_at: 'lifted_at',
  refused_as: 'refused_scheme',
  set_aside: 'quarantined',
  spent_message: 'exhausted_message',
  spent_until: 'exhausted_until',
  told: 'answered_slots',
  turn_at: 'refresh_at',
};
const NEW_VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  reason: { 'plan wall': 'history limit' },
  state: { overtaken: 'superseded' },
  outcome: { doubted: 'unconfirmed', wall: 'history limit' },
  event: { wall: 'history-limit' },
  topic: { 'wall free 1h 365': 'history limit free 1h 365' },
  message: { 'set aside': 'reserved' },
};

/** Columns that the old database has no values for. */
const NEW_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  'ops.account': ['scheduled_at', 'refused_since'],
  'ops.instance': ['account_id', 'schedules'],
  'ops.tier': ['refresh_after'],
  'ops.fetch_totals': ['part'],
  'ops.api_key': ['is_operator'],
  // Adopting changes a series, so its version differs.
  'market.series': ['candles', 'digest', 'empty_once', 'link', 'steps', 'version'],
  'market.revision': ['known_at', 'reason', 'step'],
  'market.document': ['received_sha256'],
  'market.document_revision': ['received_sha256'],
  'ops.notice': ['began_at', 'ended_at'],
  'ops.backfill': [
    'chunks',
    'finish_from',
    'finish_to',
    'finish_change',
    'finish_changed_at',
    'finish_basis',
    'progress',
  ],
};

function withoutNew(tables: Record<string, Row[]>): Record<string, Row[]> {
  const without = (row: Row, names: readonly string[]) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name))) as Row;
  // The locks of the migration itself, and the one that it was given.
  const { 'ops.lock': _locks, 'ops.audit': _audit, ...others } = tables;
  return Object.fromEntries(
    Object.entries(others).map(([table, rows]) => [table, rows.map((row) => without(row, NEW_COLUMNS[table] ?? []))]),
  );
}

/** The rows of the old database in the form of the new tables. */
function inNewTables({ 'market.pending': pending, 'ops.catalogue_refusal': _, ...same }: Record<string, Row[]>) {
  const claims = pending!.map(({ reason, asked_at, due_at, ...row }) => ({
    ...{ ...row, claim: reason, requested_at: asked_at, retry_at: due_at },
    ...{ key: null, evidence: null },
  }));
  const renamed = Object.entries(same).map(([table, rows]) => [NEW_NAMES[table] ?? table, rows.map(inNewColumns)]);
  return { ...Object.fromEntries(renamed), 'ops.second_opinion': claims } as Record<string, Row[]>;
}

type Row = Record<string, unknown>;

function inNewColumns(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      NEW_NAMES[column] ?? column,
      NEW_VALUES[column]?.[String(value)] ?? value,
    ]),
  );
}

/** The rows of every table as JSON, without `ops.migration` and `ops.version`, which differ between databases. */
async function allRows(sql: Sql): Promise<Record<string, Row[]>> {
  const tables = await sql<{ name: string }[]>`
    select oid::regclass::text as name from pg_class
    where relnamespace in ('market'::regnamespace, 'ops'::regnamespace) and relkind = 'r'
      and oid <> all (array['ops.migration', 'ops.version']::regclass[])
    order by 1`;
  const rows: Record<string, Row[]> = {};
  for (const { name } of tables) {
    const found = await sql.unsafe<{ row: string }[]>(`select to_jsonb(t)::text as row from ${name} t order by 1`);
    rows[name] = found.map(({ row }) => JSON.parse(row));
  }
  return rows;
}

/**
 * A folder for the start of PATH with a pg_dump for this server. pg_dump refuses a server that is newer than itself. In that case, a
 * stand-in prints what a real one printed for the same arguments (the first line of each recording).
 */
async function dumpFolder(sql: Sql): Promise<string> {
  const [server] = await sql<{ major: number }[]>`select current_setting('server_version_num')::int / 10000 as major`;
  const { stdout } = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' });
  if (Number(/\d+/.exec(stdout ?? '')?.[0] ?? 0) >= server!.major) return folder;
  const file = path.join(folder, 'pg_dump');
  writeFileSync(
    file,
    `#!/bin/sh\nshift\nrecorded=$(grep -lxF -e "-- pg_dump $*" ${FIXTURES}/*.sql) && exec cat "$recorded"\necho "no recording of: pg_dump $*" >&2\nexit 1\n`,
  );
  chmodSync(file, 0o755);
  return folder;
}
