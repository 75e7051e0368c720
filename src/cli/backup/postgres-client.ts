/** Postgres' own pg_dump and pg_restore: finds the suitable ones, and runs them. */
import { execFile, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { Environment } from '../../settings.ts';
import { libpqEnvironment } from '../../store/connection/libpq-environment.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';
import { findPrograms } from '../shell/find-program.ts';

type ClientName = 'pg_dump' | 'pg_restore';

export type PostgresClient = {
  readonly name: ClientName;
  readonly file: string;
  readonly version: string;
  readonly major: number;
};

/** Searches every folder of the PATH. */
export async function findClients(name: ClientName, env: Environment): Promise<PostgresClient[]> {
  const clients: PostgresClient[] = [];
  for (const file of findPrograms(name, env)) {
    const version = await versionOf(file, env);
    if (version !== null) clients.push({ name, file, version, major: Number.parseInt(version, 10) });
  }
  return clients;
}

/** Debian's programs are wrappers that take the newest version only if a host is named. */
const ANY_HOST = { PGHOST: 'localhost' };

/** Null when it reports no version: a link whose program is gone, or another program of that name. */
async function versionOf(file: string, env: Environment): Promise<string | null> {
  const found = await promisify(execFile)(file, ['--version'], { env: { ...ANY_HOST, ...env } }).catch(() => null);
  return /\(PostgreSQL\) (\d+[\d.]*)/.exec(found?.stdout ?? '')?.[1] ?? null;
}

/** The client of the version `major`, otherwise the next newer one. Postgres' programs refuse servers that are newer than they are. */
export function fittingClient(clients: readonly PostgresClient[], major: number): PostgresClient | undefined {
  const fitting = clients.filter((client) => client.major >= major);
  return fitting.sort((a, b) => a.major - b.major)[0];
}

/** @param reason why it must be of this version */
export function missingClient(
  name: ClientName,
  clients: readonly PostgresClient[],
  major: number,
  reason: string,
): UsageError {
  const found =
    clients.length === 0
      ? `there is no ${name} on the PATH`
      : `on the PATH there is only ${clients.map(({ file, version }) => `${file} of version ${version}`).join(', ')}`;
  return new UsageError(
    [
      `${reason}, which needs ${name} of Postgres ${major} or newer, and ${found}; install the client programs of Postgres ${major}:`,
      `  Debian, Ubuntu   postgresql-client-${major}; where the system has none, add apt.postgresql.org first`,
      `  Fedora, RHEL     postgresql${major}, from yum.postgresql.org`,
      `  macOS            brew install postgresql@${major}, and its folder bin into the PATH`,
      "  Docker           Chandler's image has them",
    ].join('\n'),
  );
}

type RunOptions = {
  /** The address of the database. The program receives it in the environment, where `ps` does not show it. */
  readonly url?: string;
  readonly env: Environment;
  readonly signal: AbortSignal;
  /** Called with each progress line of the program. */
  readonly onProgress?: (line: string) => void;
};

/**
 * Runs it to its end, and resolves to what it wrote to standard output.
 * @throws CommandFailed with the program's own error message, or the reason of `signal`
 */
export async function runClient(
  { name, file }: PostgresClient,
  args: readonly string[],
  { url, env, signal, onProgress }: RunOptions,
): Promise<string> {
  signal.throwIfAborted();
  const server = url === undefined ? {} : libpqEnvironment(url, `chandler ${name}`);
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...ANY_HOST, ...env, ...server, PGTZ: 'UTC', LC_ALL: 'C' },
  });
  const stop = () => void child.kill('SIGTERM');
  signal.addEventListener('abort', stop, { once: true });
  const out: Buffer[] = [];
  const complaint: string[] = [];
  child.stdout.on('data', (part: Buffer) => out.push(part));
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (isComplaint(line) || complaint.length > 0) complaint.push(line);
    else onProgress?.(line);
  });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    signal.throwIfAborted();
    if (code === 0) return Buffer.concat(out).toString('utf8');
    throw new CommandFailed(`${name} failed: ${saidBy(name, complaint) || `it ended with code ${code}`}`);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

const isComplaint = (line: string) => /^pg_\w+: (error|fatal)\b/.test(line);
/** The first error explains the others. */
const MOST_LINES = 6;

function saidBy(name: ClientName, lines: readonly string[]): string {
  return lines
    .slice(0, MOST_LINES)
    .map((line) => line.replace(`${name}: `, '').replace(/^error: /, ''))
    .join('\n  ');
}
