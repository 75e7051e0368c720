/** pg_dump and pg_restore for the tests: they must be as new as the run's server, and the embedded server has none. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { findClients, fittingClient } from '../../src/cli/backup/postgres-client.ts';
import { readServerVersion } from '../../src/store/backup/source.ts';
import { createClient } from '../../src/store/connection/connect.ts';
import { testAdminUrl } from './database.ts';

export type TestClient = {
  readonly path: string;
  readonly pgDump: string;
  readonly pgRestore: string;
  readonly major: number;
};

/**
 * Looks in the folder TEST_POSTGRES_BIN, else on the PATH; `path` finds them. Null, with one line of explanation, when none fits; in CI
 * that is an error.
 */
export async function findTestClient(): Promise<TestClient | null> {
  const { TEST_POSTGRES_BIN = '', PATH = '' } = process.env;
  const sql = createClient({ url: testAdminUrl(), max: 1 });
  const server = await readServerVersion(sql).finally(() => sql.end({ timeout: 5 }));
  const env = { PATH: [TEST_POSTGRES_BIN, PATH].filter(Boolean).join(path.delimiter) };
  const find = async (name: 'pg_dump' | 'pg_restore') => fittingClient(await findClients(name, env), server.major);
  const [pgDump, pgRestore] = [await find('pg_dump'), await find('pg_restore')];
  if (pgDump !== undefined && pgRestore !== undefined)
    return { path: env.PATH, pgDump: pgDump.file, pgRestore: pgRestore.file, major: server.major };
  const message = `no pg_dump and pg_restore for Postgres ${server.major}: run .ci/postgres-client FOLDER, and set TEST_POSTGRES_BIN=FOLDER/bin`;
  const { CI } = process.env;
  if (CI === 'true' || CI === '1') throw new Error(`${message} (in CI nothing may be skipped)`);
  process.stderr.write(`\n${message}; the suites that need them are skipped\n\n`);
  return null;
}

/** Puts a shell script under this name before all other programs. Resolves to the PATH that finds it first. */
export function putBefore(
  { path: rest }: { readonly path: string },
  folder: string,
  name: string,
  script: string,
): string {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return rest === '' ? folder : `${folder}${path.delimiter}${rest}`;
}
