/** The Redis that the tests run on, if there is one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { systemClock } from '../../src/clock.ts';
import { dockerAnswers } from './docker.ts';
import { freePort } from './ports.ts';

export type RedisServer = { readonly url: string; stop(): Promise<void> };

const PROGRAMS = ['redis-server', 'valkey-server'];
const START_PATIENCE_MS = 10_000;

/** Null, with one line of explanation, when there is none; in CI that is an error. */
export async function startRedis(): Promise<RedisServer | null> {
  const given = process.env.TEST_REDIS_URL;
  if (given) return { url: given, stop: async () => undefined };
  if (await dockerAnswers()) {
    try {
      return await startContainer();
    } catch (error) {
      process.stderr.write(`\nno Redis container (${error}); looking for a program\n\n`);
    }
  }
  for (const program of PROGRAMS) {
    const server = await startProgram(program);
    if (server) return server;
  }
  const message = 'no Redis: set TEST_REDIS_URL, start Docker, or install redis-server or valkey-server';
  if (process.env.CI === 'true' || process.env.CI === '1') throw new Error(`${message} (in CI nothing may be skipped)`);
  process.stderr.write(`\n${message}; the suites that need Redis are skipped\n\n`);
  return null;
}

async function startContainer(): Promise<RedisServer> {
  const { RedisContainer } = await import('@testcontainers/redis');
  const container = await new RedisContainer('redis:7-alpine').start();
  return {
    url: container.getConnectionUrl(),
    stop: async () => {
      await container.stop();
    },
  };
}

export type OwnRedis = RedisServer & {
  readonly port: number;
  /** Ends it; all its data are lost. */
  kill(): Promise<void>;
  /** It stays up and does not answer; only `kill` ends it. */
  suspend(): void;
};

/** A Redis that a test may kill, from a program on the PATH. Null, with one line of explanation, when there is none. */
export async function startOwnRedis(port?: number, settings: readonly string[] = []): Promise<OwnRedis | null> {
  for (const program of PROGRAMS) {
    const server = await startProgram(program, port, settings);
    if (server) return server;
  }
  // The run may still have a Redis: that of a container, or a shared one.
  process.stderr.write(`\nno ${PROGRAMS.join(' or ')} on the path: the suites that kill a Redis are skipped\n\n`);
  return null;
}

async function startProgram(
  program: string,
  givenPort?: number,
  settings: readonly string[] = [],
  tries = 3,
): Promise<OwnRedis | null> {
  const port = givenPort ?? (await freePort());
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-redis-'));
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--dir',
    folder,
    '--maxmemory-policy',
    'noeviction',
    ...settings,
  ];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const life = { ended: false };
  // Its own output counts: what answers at this port may be another program that was faster.
  const ready = new Promise<void>((resolve) => {
    readline.createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve();
    });
  });
  const ended = () => {
    life.ended = true;
  };
  child.once('error', ended);
  child.once('exit', ended);
  const end = async (how: NodeJS.Signals) => {
    await endProcess(child, life, how);
    rmSync(folder, { recursive: true, force: true });
  };
  const stop = () => end('SIGTERM');
  const late = new AbortController();
  const patience = systemClock.sleep(START_PATIENCE_MS, late.signal).catch(() => undefined);
  const isReady = await Promise.race([
    ready.then(() => true),
    once(child, 'exit').then(
      () => false,
      () => false,
    ),
    patience.then(() => false),
  ]);
  late.abort();
  if (isReady) {
    const url = `redis://127.0.0.1:${port}`;
    return { url, port, stop, kill: () => end('SIGKILL'), suspend: () => void child.kill('SIGSTOP') };
  }
  // The program exists, and another one took the port.
  const isTaken = child.exitCode !== null && child.pid !== undefined;
  await stop();
  return isTaken && givenPort === undefined && tries > 1 ? startProgram(program, undefined, settings, tries - 1) : null;
}

function endProcess(child: ChildProcess, life: { readonly ended: boolean }, how: NodeJS.Signals): Promise<void> {
  if (life.ended) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill(how);
  });
}
