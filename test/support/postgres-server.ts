/** The Postgres that the tests run on. */
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { createClient, type Sql } from '../../src/store/connection/connect.ts';
import { startEmbedded } from '../../src/store/embedded/embedded.ts';
import { dockerAnswers } from './docker.ts';

export type PostgresServer = {
  readonly adminUrl: string;
  dropDatabase(name: string): Promise<void>;
  stop(): Promise<void>;
};

/** Off where nothing is measured: no test kills this server, so its writes need not survive a crash. */
const DURABILITY = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

const MEMORY = '/dev/shm';
/** The write-ahead log alone may grow to half of this. */
const ROOMY_BYTES = 8 * 2 ** 30;

export async function startPostgres({ isDurable }: { readonly isDurable: boolean }): Promise<PostgresServer> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return serverAt(given, async () => undefined);
  if (await dockerAnswers()) {
    try {
      return await startContainer();
    } catch (error) {
      process.stderr.write(`\nno Postgres container (${error}); using the embedded server\n\n`);
    }
  }
  return startFromPackage(isDurable);
}

async function startContainer(): Promise<PostgresServer> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const container = await new PostgreSqlContainer('postgres:18-alpine')
    .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=300', '-c', 'max_locks_per_transaction=256'])
    .start();
  return serverAt(container.getConnectionUri(), async () => {
    await container.stop();
  });
}

async function startFromPackage(isDurable: boolean): Promise<PostgresServer> {
  const home = mkdtempSync(path.join(isDurable ? os.tmpdir() : roomyFolder(), 'chandler-test-'));
  // As root: the user of the server must be able to enter the folder.
  chmodSync(home, 0o755);
  const server = await startEmbedded({ home, clock: systemClock });
  if (!isDurable) await giveUpDurability(server.url);
  return serverAt(server.url, async () => {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  });
}

/** In memory if there is plenty: each test's database consists of a thousand small files. */
function roomyFolder(): string {
  if (!existsSync(MEMORY)) return os.tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= ROOMY_BYTES ? MEMORY : os.tmpdir();
}

async function giveUpDurability(url: string): Promise<void> {
  const sql = createClient({ url, max: 1 });
  try {
    for (const name of DURABILITY) await sql`alter system set ${sql(name)} = off`;
    await sql`select pg_reload_conf()`;
    await makeLoginsCheap(sql, url);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** A client hashes the password thousands of times per connection, and every test opens a dozen. Here the password protects nothing. */
async function makeLoginsCheap(sql: Sql, url: string): Promise<void> {
  const { username, password } = new URL(url);
  await sql`set scram_iterations = 1`;
  const [row] = await sql<{ statement: string }[]>`
    select format('alter role %I password %L', ${username}::text, ${decodeURIComponent(password)}::text) as statement`;
  await sql.unsafe(row!.statement);
}

function serverAt(adminUrl: string, stop: () => Promise<void>): PostgresServer {
  return {
    adminUrl,
    stop,
    dropDatabase: async (name) => {
      const sql = createClient({ url: adminUrl, max: 1 });
      try {
        await sql`drop database if exists ${sql(name)} with (force)`;
      } finally {
        await sql.end({ timeout: 5 });
      }
    },
  };
}
