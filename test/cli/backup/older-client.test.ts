/** `chandler restore` when the programs of Postgres are older than the backup, or a wrapper selects them. */
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { findTestClient, putBefore } from '../../support/postgres-client.ts';

const client = await findTestClient();
let folder: string;
let original: TestDatabase;
let target: TestDatabase;
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'chandler-older-'));
  [original, target] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
});
afterEach(async () => {
  await Promise.all([original.drop(), target.drop()]);
  rmSync(folder, { recursive: true, force: true });
});

const run = (database: TestDatabase, args: string[], PATH = client!.path) =>
  runCommand(args, { env: { DATABASE_URL: database.url, PATH } });
const isEmpty = async ({ sql }: TestDatabase) =>
  (await sql`select from pg_namespace where nspname in ('market', 'ops')`).length === 0;

/** What pg_restore 15 prints for an archive of pg_dump 17 and later. */
const UNSUPPORTED = 'echo "pg_restore: error: unsupported version (1.16) in file header" >&2; exit 1';
const asVersion = (version: string, otherwise: string) =>
  `case "$*" in *--version*) echo "pg_restore (PostgreSQL) ${version}";; *) ${otherwise};; esac`;

async function makeBackup(): Promise<string> {
  expect(await run(original, ['backup', folder, '--no-attest'])).toMatchObject({ code: 0, err: '' });
  return path.join(folder, readdirSync(folder).find((name) => name.endsWith('.dump'))!);
}

describe.skipIf(client === null)('a pg_restore that is older than the backup', () => {
  test('is named in the error as the cause, with what to install', async () => {
    const file = await makeBackup();
    const bin = path.join(folder, 'bin');
    const PATH = putBefore({ path: '' }, bin, 'pg_restore', asVersion('14.2', UNSUPPORTED));
    const { code, err } = await run(target, ['restore', file], PATH);
    expect(code).toBe(2);
    expect(err).toMatch(
      new RegExp(
        `^error: the server is Postgres ${client!.major}\\S*, and pg_dump ${client!.major} wrote ${file}, which needs pg_restore of Postgres ${client!.major} or newer, and on the PATH there is only ${bin}/pg_restore of version 14.2; install`,
      ),
    );
    expect(err).toContain(`postgresql-client-${client!.major}`);
    expect(err).not.toContain('is not a backup');
    expect(await isEmpty(target)).toBe(true);
    // A suitable one further back in the PATH is used.
    expect((await run(target, ['restore', file], `${PATH}${path.delimiter}${client!.path}`)).code).toBe(0);
  });

  test('is not named when the header of the file is damaged', async () => {
    const file = await makeBackup();
    const damaged = path.join(folder, 'damaged.dump');
    copyFileSync(file, damaged);
    chmodSync(damaged, 0o600);
    const bytes = readFileSync(damaged);
    // The version of the format.
    bytes[6] = 99;
    writeFileSync(damaged, bytes);
    const { code, err } = await run(target, ['restore', damaged]);
    expect(code).toBe(1);
    expect(err).toMatch(/is not a backup, or not a complete one \(pg_restore failed: unsupported version \(1\.99\)/);
  });

  test('does not hide that the server is older as well, which no program can change', async () => {
    const file = await makeBackup();
    const newer = path.join(folder, 'newer.dump');
    const version = await serverVersion(original);
    const bytes = readFileSync(file);
    // The first one is the version of the server, the second that of pg_dump.
    const at = bytes.indexOf(version);
    expect(at).toBeGreaterThan(0);
    bytes.write('99', at);
    bytes.write('99', bytes.indexOf(`${client!.major}.`, at));
    writeFileSync(newer, bytes);
    const PATH = putBefore({ path: '' }, path.join(folder, 'bin'), 'pg_restore', asVersion('14.2', UNSUPPORTED));
    const { code, err } = await run(target, ['restore', newer], PATH);
    expect(code).toBe(2);
    expect(err).toContain(`is of Postgres 99`);
    expect(err).toContain(`restore into Postgres 99 or newer`);
  });
});

test.skipIf(client === null)(
  'restore names a host for a wrapper that selects its newest program only then',
  async () => {
    const file = await makeBackup();
    // Like Debian's pg_wrapper: without a host it runs the program of the machine's own, older server.
    const script = `[ -n "$PGHOST" ] || { ${UNSUPPORTED}; }\nexec ${client!.pgRestore} "$@"`;
    const PATH = putBefore({ path: '' }, path.join(folder, 'bin'), 'pg_restore', script);
    expect(await run(target, ['restore', file], PATH)).toMatchObject({ code: 0, err: '' });
  },
);

async function serverVersion({ sql }: TestDatabase): Promise<string> {
  const [row] = await sql<
    { version: string }[]
  >`select split_part(current_setting('server_version'), ' ', 1) as version`;
  return row!.version;
}
