/** Loads an archive into an empty database: all of it, or nothing. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { App } from '../../app.ts';
import type { Environment } from '../../settings.ts';
import { readServerVersion, type ServerVersion } from '../../store/backup/source.ts';
import { analyzeAll, forgetAccountChecks, forgetInstances, makeRole, missingRoles } from '../../store/backup/target.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { checkMigrations, migrate } from '../../store/migration/migrate.ts';
import { startBar } from '../output/bar.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import {
  type Archive,
  ArchiveTooNew,
  entriesToRestore,
  isDamaged,
  readArchive,
  readMigrations,
  readRoles,
} from './archive.ts';
import { checkDigest } from './backup-file.ts';
import { clear, requireFree } from './free-database.ts';
import { findClients, fittingClient, missingClient, type PostgresClient, runClient } from './postgres-client.ts';

type LoadOptions = { readonly env: Environment; readonly err: Output; readonly signal: AbortSignal };

export type Loaded = {
  /** Version of the server that was dumped. */
  readonly postgres: string;
  /** Of the backup, if the file beside it has the same; null if there is none. */
  readonly sha256: string | null;
  readonly tables: number;
  /** Roles that were created now, because this server lacked them. */
  readonly roles: readonly string[];
  /** Whether an unused warehouse was there and was removed. */
  readonly removedUnused: boolean;
};

/** @throws UsageError, and changes nothing, when this archive cannot be loaded here; CommandFailed with the error of pg_restore */
export async function load(app: App, file: string, options: LoadOptions): Promise<Loaded> {
  const { sql } = app.database;
  const clients = await findClients('pg_restore', options.env);
  // The newest version reads every archive.
  const reader = clients.toSorted((a, b) => b.major - a.major)[0];
  const server = await readServerVersion(sql);
  if (reader === undefined)
    throw missingClient('pg_restore', clients, server.major, `the server is Postgres ${server.version}`);
  const archive = await readArchive(reader, file, options).catch((error: unknown) => {
    // The newest version on this machine cannot read it, so none can.
    if (error instanceof ArchiveTooNew) clientFor(clients, server, { file, ...error.header });
    throw error;
  });
  const { empty, isUnused } = await requireFree(app, file);
  const sha256 = await checkDigest(file, options.signal);
  const client = clientFor(clients, server, archive);
  checkMigrations(await readMigrations(reader, archive, options), `the database in ${file}`);
  const roles = await withListFile(entriesToRestore(archive, empty), async (list, count) => {
    const made = await makeRoles(sql, await readRoles(reader, archive, list, options));
    if (isUnused) await clear(app);
    await loadEntries(client, archive, { ...options, url: app.database.url, list, count });
    return made;
  });
  const tables = archive.entries.filter((line) => / TABLE DATA /.test(line)).length;
  return { postgres: archive.postgres, sha256, tables, roles, removedUnused: isUnused };
}

/** @throws UsageError when the server is older than the one that was dumped, or no pg_restore on this machine is new enough */
function clientFor(
  clients: readonly PostgresClient[],
  server: ServerVersion,
  { file, postgres, dumpedBy }: Pick<Archive, 'file' | 'postgres' | 'dumpedBy'>,
): PostgresClient {
  const major = Number.parseInt(postgres, 10);
  if (server.major < major) {
    throw new UsageError(
      `${file} is of Postgres ${postgres}, and the server is Postgres ${server.version}, which is older; restore into Postgres ${major} or newer`,
    );
  }
  const needed = Math.max(server.major, dumpedBy);
  const client = fittingClient(clients, needed);
  if (client !== undefined) return client;
  const reason = `the server is Postgres ${server.version}, and pg_dump ${dumpedBy} wrote ${file}`;
  throw missingClient('pg_restore', clients, needed, reason);
}

/** Prepares a loaded database for use. Resolves to the migrations that the backup lacked. */
export async function settleLoaded({ database }: App): Promise<readonly string[]> {
  // First, so that a process that is killed later does not overrun the quota. The caller has already migrated a backup without an audit log.
  await forgetAccountChecks(database.sql);
  await forgetInstances(database.sql);
  const migrated = await migrate(database);
  await analyzeAll(database.sql);
  return migrated;
}

/** Roles belong to the server, so no dump contains them. Roles of people get no login, because their passwords cannot be read anywhere. */
async function makeRoles(sql: Sql, names: readonly string[]): Promise<string[]> {
  const missing = await missingRoles(sql, names);
  for (const name of missing) {
    await makeRole(sql, name).catch((error: unknown) => {
      const { code } = error as { code?: string };
      // Another restore created it at the same moment.
      if (code === '42710' || code === '23505') return;
      if (code !== '42501') throw error;
      const commands = missing.map((role) => `create role "${role.replaceAll('"', '""')}" nologin;`).join(' ');
      throw new UsageError(
        `the backup grants rights to roles that this server lacks, and the user of DATABASE_URL may not make roles; let an administrator run: ${commands}`,
      );
    });
  }
  return missing;
}

async function withListFile<T>(
  entries: readonly string[],
  work: (list: string, count: number) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'chandler-restore-'));
  try {
    const list = path.join(folder, 'entries');
    await writeFile(list, `${entries.join('\n')}\n`);
    return await work(list, entries.length);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** In one transaction, so that the database stays empty if it fails at any point. */
async function loadEntries(
  client: PostgresClient,
  archive: Archive,
  { url, list, count, env, err, signal }: LoadOptions & { url: string; list: string; count: number },
): Promise<void> {
  const bar = await startBar(err, 'steps', async () => count);
  const args = [
    '--single-transaction',
    '--no-owner',
    '--no-tablespaces',
    '--no-password',
    '--verbose',
    `--use-list=${list}`,
    // Makes pg_restore connect. The environment contains the address.
    `--dbname=application_name='chandler restore'`,
    archive.file,
  ];
  const onProgress = (line: string) => {
    if (/^pg_restore: (creating|processing|executing) /.test(line)) bar.add(1);
  };
  try {
    await runClient(client, args, { url, env, signal, onProgress });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const right = whatToDo(error.message, archive);
    throw new CommandFailed(`${error.message}\nNothing was restored: the database is empty as before; ${right}.`);
  } finally {
    bar.stop();
  }
}

function whatToDo(complaint: string, { dumpedBy }: Archive): string {
  if (isDamaged(complaint)) return 'the backup is cut off or damaged, so use another one';
  if (!/unrecognized configuration parameter/.test(complaint)) return 'fix the cause and run it again';
  return `pg_dump ${dumpedBy} wrote the backup, with statements that this older server does not know: restore into Postgres ${dumpedBy}, or make the backup with pg_dump of the server's own version`;
}
