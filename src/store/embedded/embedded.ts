/**
 * A real Postgres in a folder, for users who have not set one up.
 *
 * Commands that run at the same time share one server. A command stops the server at its end when no other living command is signed in
 * (`users/`) and no other client has a session (an analyst's psql, a notebook). A killed command cannot stop the server: it keeps
 * running, and the next command uses it. If the server was killed too, the next command starts it, and Postgres recovers the data.
 * After `keepEmbedded` the server also runs without commands and sessions. `stopEmbedded` stops it.
 *
 * The folder: `data/` (Postgres), `password` (0600), `port` (kept, so that saved connections continue to work), `users/`,
 * `postgres.log` (output of the server while it started), `start.lock.<n>`, `keep` (present after `keepEmbedded`).
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../clock.ts';
import { createClient } from '../connection/connect.ts';
import { explainDatabaseError, StoreError } from '../connection/store-error.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { ensureCluster, makeHome, readPassword, SUPERUSER } from './cluster.ts';
import { registerUser, unregisterUser, usersOf, withHomeLock } from './home-lock.ts';
import {
  endOrphans,
  findPort,
  findPostmaster,
  type Postmaster,
  startPostmaster,
  stopPostmaster,
  waitUntilReady,
  wasKilled,
} from './postmaster.ts';
import { chooseRunAs } from './run-as.ts';
import { explainFileError } from './server-failure.ts';

type EmbeddedServer = {
  /** The database `chandler` of this server, with the password. */
  readonly url: string;
  readonly pid: number;
  /** False when the server was already running. */
  readonly started: boolean;
  /** Signs out, and stops the server when nobody else uses it. Close your own connections first, because they count as use. */
  stop(): Promise<void>;
};

type EmbeddedOptions = {
  readonly home: string;
  /** The machine's clock: a real process takes real time to start. */
  readonly clock: Clock;
  readonly log?: (line: string) => void;
  /** Receives a line when the server had been killed and was started again. */
  readonly warn?: (line: string) => void;
};

const DATABASE = 'chandler';
const RETRIES = 100;
const RETRY_MS = 100;
/** After so many attempts to start, this program kills the remaining processes of a killed server. */
const ATTEMPTS_BEFORE_KILL = 10;

/** Starts the server, or uses the running one. @throws StoreError in one sentence when this machine, user or folder cannot have a server */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const { home: folder, clock } = options;
  const home = path.resolve(folder);
  try {
    makeHome(home);
    return await withHomeLock(home, clock, async () => {
      const binaries = findBinaries(path.join(home, 'lib'));
      const { server, url, started } = await reachServer(home, binaries, options);
      const name = registerUser(home);
      return {
        url,
        pid: server.pid,
        started,
        stop: () => signOut(home, name, binaries, clock),
      };
    });
  } catch (error) {
    throw explainFileError(error, home);
  }
}

const keepFile = (home: string) => path.join(home, 'keep');

/** From now on the server keeps running after the last command and session, until `stopEmbedded`. */
export function keepEmbedded(folder: string): void {
  const home = path.resolve(folder);
  try {
    writeFileSync(keepFile(home), '');
  } catch (error) {
    throw explainFileError(error, home);
  }
}

/** `stopped`: the server and its sessions ended. `not running`: none ran. `usedBy`: these processes use the server, so it was not stopped. */
type Stop = 'stopped' | 'not running' | { readonly usedBy: readonly number[] };

/** Stops the server of this home; with `isForced` even if it is used. The next command starts it again, and the last command then stops it. */
export async function stopEmbedded({
  home: folder,
  clock,
  isForced = true,
}: Pick<EmbeddedOptions, 'home' | 'clock'> & { readonly isForced?: boolean }): Promise<Stop> {
  const home = path.resolve(folder);
  if (!existsSync(home)) return 'not running';
  try {
    return await withHomeLock(home, clock, async () => {
      const running = findPostmaster(home);
      const usedBy = running === null ? [] : usersOf(home);
      if (usedBy.length > 0 && !isForced) return { usedBy };
      rmSync(keepFile(home), { force: true });
      if (running === null) return 'not running';
      await stopPostmaster(home, running.pid, findBinaries(path.join(home, 'lib')), clock);
      return 'stopped';
    });
  } catch (error) {
    throw explainFileError(error, home);
  }
}

/** The processes that use the server of this home, and whether it keeps running without them. */
export function useOfEmbedded(folder: string): { readonly usedBy: readonly number[]; readonly stays: boolean } {
  const home = path.resolve(folder);
  return { usedBy: usersOf(home), stays: existsSync(keepFile(home)) };
}

/** The address and the process of the server that runs on this home now. Null when none runs. Starts nothing. */
export function findEmbedded(folder: string): { readonly url: string; readonly pid: number } | null {
  const home = path.resolve(folder);
  const running = findPostmaster(home);
  return running?.ready ? { url: urlOf(home, running.port, DATABASE), pid: running.pid } : null;
}

/**
 * Makes the database `name` on the server of `url` if it is missing. Returns its address.
 * @throws StoreError when the server cannot be reached
 */
export async function ensureDatabase(url: string, name: string): Promise<string> {
  const sql = createClient({ url, max: 1 });
  try {
    const [existing] = await sql`select from pg_database where datname = ${name}`;
    if (!existing) await sql`create database ${sql(name)}`;
  } catch (error) {
    // Another process made it at the same moment.
    if (!isDuplicate(error)) throw explainDatabaseError(error, url) ?? error;
  } finally {
    await sql.end({ timeout: 1 });
  }
  const made = new URL(url);
  made.pathname = `/${encodeURIComponent(name)}`;
  return made.href;
}

/** Returns a server that answers: the running one, or one that it starts. */
async function reachServer(home: string, binaries: Binaries, options: EmbeddedOptions) {
  const { clock } = options;
  for (let attempt = 1; ; attempt++) {
    const running = findPostmaster(home) && (await waitUntilReady(home, clock));
    const server = running ?? (await startServer(home, binaries, options));
    try {
      const url = await ensureDatabase(urlOf(home, server.port, 'postgres'), DATABASE);
      return { server, url, started: !running };
    } catch (error) {
      // A server that was killed a moment ago may still look alive, and may even accept a connection.
      if (running && attempt < RETRIES && isLostConnection(error)) {
        await clock.sleep(RETRY_MS);
        continue;
      }
      // No command has signed in yet, so none would stop this server later.
      if (!running && findPostmaster(home)) await stopPostmaster(home, server.pid, binaries, clock);
      throw explainUnreachable(error, home, server.pid);
    }
  }
}

async function startServer(
  home: string,
  binaries: Binaries,
  { clock, log, warn }: EmbeddedOptions,
): Promise<Postmaster> {
  const runAs = chooseRunAs(home, binaries);
  await ensureCluster(home, binaries, runAs);
  const killed = wasKilled(home);
  if (killed) endOrphans(home, 'SIGQUIT');
  for (let attempt = 0; attempt < RETRIES; attempt++) {
    const port = await findPort(attempt === 0 ? rememberedPort(home) : null);
    const started = await startPostmaster(home, port, { binaries, runAs, clock });
    switch (started) {
      case 'port taken':
        continue;
      // The main process was killed, and its last children need a moment to notice it.
      case 'old server dying':
        if (attempt > ATTEMPTS_BEFORE_KILL) endOrphans(home, 'SIGKILL');
        await clock.sleep(RETRY_MS);
        continue;
      default:
        writeFileSync(path.join(home, 'port'), `${started.port}\n`);
        if (killed) {
          warn?.(`the embedded Postgres in ${home} had been killed: it was started again, and nothing stored is lost`);
        }
        log?.(`embedded Postgres started on 127.0.0.1:${started.port} (process ${started.pid}), data in ${home}`);
        return started;
    }
  }
  throw new StoreError(
    `the embedded Postgres in ${home} cannot start: an older server still uses the data`,
    'stop it, or restart the machine',
  );
}

async function signOut(home: string, name: string, binaries: Binaries, clock: Clock): Promise<void> {
  try {
    await withHomeLock(home, clock, async () => {
      if (unregisterUser(home, name) > 0 || existsSync(keepFile(home))) return;
      const running = findPostmaster(home);
      if (running && !(await hasOtherSessions(urlOf(home, running.port, 'postgres'), clock))) {
        await stopPostmaster(home, running.pid, binaries, clock);
      }
    });
  } catch (error) {
    throw explainFileError(error, home);
  }
}

/** Postgres may still list a session that was closed a moment ago, so the function checks several times before it returns true. */
async function hasOtherSessions(url: string, clock: Clock): Promise<boolean> {
  const sql = createClient({ url, max: 1 });
  try {
    for (let look = 0; look < 5; look++) {
      const [row] = await sql<{ others: number }[]>`
        select count(*) as others from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
      if (row?.others === 0) return false;
      await clock.sleep(50);
    }
    return true;
  } catch (error) {
    // The server is already stopping.
    if (isLostConnection(explainDatabaseError(error, url))) return true;
    throw error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function urlOf(home: string, port: number, database: string): string {
  return `postgres://${SUPERUSER}:${readPassword(home)}@127.0.0.1:${port}/${database}`;
}

function rememberedPort(home: string): number | null {
  try {
    const port = Number(readFileSync(path.join(home, 'port'), 'utf8'));
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function isLostConnection(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return /^(ECONNREFUSED|ECONNRESET|EPIPE|CONNECTION_\w+|57P0\d)$/.test(code);
}

/** The same failure, explained without `DATABASE_URL`, which the user has not set. */
function explainUnreachable(error: unknown, home: string, pid: number): unknown {
  const cause = error instanceof StoreError ? error.cause : null;
  switch (cause instanceof Error && 'code' in cause ? cause.code : '') {
    case 'CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return new StoreError(
        `the embedded Postgres in ${home} (process ${pid}) does not answer`,
        `stop it with: kill -KILL ${pid}, and run the command again; nothing stored is lost`,
        error,
      );
    case '28P01':
      return new StoreError(
        `${home}/password is not the password of the embedded Postgres there`,
        'bring back the file as it was, or set DATABASE_URL to a Postgres of yours',
        error,
      );
    default:
      return error;
  }
}

function isDuplicate(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['42P04', '23505'].includes(String(error.code));
}
