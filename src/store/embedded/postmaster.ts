/** Finds, starts and stops the server process, and waits until it answers. */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { Clock } from '../../clock.ts';
import { StoreError } from '../connection/store-error.ts';
import type { Binaries } from './binaries.ts';
import { dataFolder } from './cluster.ts';
import { isForeign, pidExists, processesIn, workingFolderOf } from './process-identity.ts';
import { asCommand, type RunAs } from './run-as.ts';
import { explainServerOutput, lastLog } from './server-failure.ts';

export type Postmaster = { readonly pid: number; readonly port: number };

const POLL_MS = 10;
/** After a crash the server replays its log, which may take minutes. */
const START_TIMEOUT_MS = 300_000;
const STOP_TIMEOUT_MS = 120_000;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  max_connections: '200',
  // A query over ten years of 5-minute candles locks about 250 partitions and their keys.
  max_locks_per_transaction: '256',
  jit: 'off',
  TimeZone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // One file per weekday, emptied when that weekday returns: the logs never cover more than a week.
  logging_collector: 'on',
  log_directory: 'log',
  log_filename: 'postgres-%u.log',
  log_rotation_age: '1d',
  log_rotation_size: '0',
  log_truncate_on_rotation: 'on',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
};

/**
 * The server that runs on this home, even if another process started it. Null when there is none. Removes the lock file of a killed
 * server if it is certain that nobody uses the data.
 */
export function findPostmaster(home: string): (Postmaster & { readonly ready: boolean }) | null {
  const file = path.join(dataFolder(home), 'postmaster.pid');
  const lines = readLines(file);
  if (!lines) return null;
  const [pid, , , port] = lines.map(Number);
  if (!pid || !pidExists(pid)) return null;
  const folder = workingFolderOf(pid);
  // Our server runs as our user. So a process that we may not signal is another program.
  if (isForeign(pid) || (folder !== null && folder !== realpathSync(dataFolder(home)))) {
    // Another program has that process id now. Because of the file, Postgres would refuse to start.
    rmSync(file, { force: true });
    return null;
  }
  return { pid, port: port || 0, ready: lines[7]?.trim() === 'ready' };
}

/**
 * Starts the server and returns once it accepts connections. The caller holds the home's lock and has checked that none runs.
 * @throws StoreError with the error message of the server when it does not start
 */
export async function startPostmaster(
  home: string,
  port: number,
  { binaries, runAs, clock }: { binaries: Binaries; runAs: RunAs; clock: Clock },
): Promise<Postmaster | 'port taken' | 'old server dying'> {
  const settings = Object.entries({ ...SETTINGS, port: String(port) }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const { file, args, identity } = asCommand(runAs, binaries.postgres, ['-D', dataFolder(home), ...settings]);
  const logFile = path.join(home, 'postgres.log');
  const log = openSync(logFile, 'w', 0o600);
  // The server has its own process group, so that Ctrl-C does not reach it, and it outlives this process.
  const child = spawn(file, args, {
    ...identity,
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...binaries.env, LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
    cwd: '/',
  });
  closeSync(log);
  const life: { failure: Error | null; ended: boolean } = { failure: null, ended: false };
  child.on('error', (error) => {
    life.failure = error;
  });
  child.on('exit', () => {
    life.ended = true;
  });
  child.unref();
  const deadline = clock.now() + START_TIMEOUT_MS;
  for (;;) {
    const running = findPostmaster(home);
    if (running?.ready && running.pid === child.pid) return { pid: running.pid, port: running.port };
    if (life.failure) {
      throw new StoreError(
        `could not start ${file}: ${life.failure.message}`,
        'set DATABASE_URL to a Postgres of yours',
        life.failure,
      );
    }
    if (life.ended) {
      const output = readFileSync(logFile, 'utf8') + lastLog(home);
      if (/could not bind|address already in use/i.test(output)) return 'port taken';
      if (/pre-existing shared memory block|lock file .* already exists/i.test(output)) return 'old server dying';
      throw explainServerOutput(output, home, 'start the embedded Postgres');
    }
    if (clock.now() > deadline) {
      throw new StoreError(`the embedded Postgres in ${home} has not become ready in five minutes`, `see ${logFile}`);
    }
    await clock.sleep(POLL_MS);
  }
}

/** True if the last server of this home was killed, so that the next one must recover. Call it when no server runs. */
export function wasKilled(home: string): boolean {
  return existsSync(path.join(dataFolder(home), 'postmaster.pid'));
}

/**
 * Ends the processes that a killed server left behind. A process that is busy with a query does not notice that its server is dead,
 * and while it lives, no server can start on its data. The caller holds the home's lock and has checked that no server runs.
 */
export function endOrphans(home: string, signal: 'SIGQUIT' | 'SIGKILL'): void {
  for (const pid of processesIn(realpathSync(dataFolder(home)), 'postgres')) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // The process has already ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Waits until a server that another process started is ready. Null when it has ended. */
export async function waitUntilReady(home: string, clock: Clock): Promise<Postmaster | null> {
  const deadline = clock.now() + START_TIMEOUT_MS;
  for (;;) {
    const running = findPostmaster(home);
    if (running === null || running.ready) return running;
    if (clock.now() > deadline) {
      throw new StoreError(
        `the embedded Postgres in ${home} (process ${running.pid}) does not become ready`,
        'stop that process',
      );
    }
    await clock.sleep(POLL_MS);
  }
}

/** Stops the server: it ends all sessions and writes a checkpoint. Resolves when the process has ended. */
export async function stopPostmaster(home: string, pid: number, binaries: Binaries, clock: Clock): Promise<void> {
  if (process.platform === 'win32') {
    spawnSync(binaries.pgCtl, ['stop', '-D', dataFolder(home), '-m', 'fast', '-w'], { env: { ...binaries.env } });
  } else {
    process.kill(pid, 'SIGINT');
  }
  const deadline = clock.now() + STOP_TIMEOUT_MS;
  while (pidExists(pid)) {
    if (clock.now() > deadline) {
      throw new StoreError(
        `the embedded Postgres in ${home} (process ${pid}) does not stop`,
        `stop it with: kill -QUIT ${pid}`,
      );
    }
    await clock.sleep(POLL_MS);
  }
}

/** A free port on the loopback address: `wanted` if it is free. */
export async function findPort(wanted: number | null): Promise<number> {
  if (wanted !== null && (await tryPort(wanted)) !== null) return wanted;
  const port = await tryPort(0);
  if (port === null)
    throw new StoreError('127.0.0.1 has no free port', 'end a program that listens, or set DATABASE_URL');
  return port;
}

function tryPort(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}

function readLines(file: string): string[] | null {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}
