/** An S3-compatible server for a test file: moto's, in a process of its own. Its data end with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { systemClock } from '../../src/clock.ts';
import type { S3Settings } from '../../src/lake/destination/address.ts';
import { accepts, freePort } from './ports.ts';

export type S3Server = {
  readonly url: string;
  readonly settings: S3Settings;
  /** For what a test reads or changes without the code under test. */
  readonly client: S3Client;
  /** The settings for the program. */
  readonly env: Readonly<Record<string, string>>;
  readonly bucket: string;
  stop(): Promise<void>;
};

const FETCHED = path.join(import.meta.dirname, '../../node_modules/.cache/s3-server/bin/moto_server');
const START_WITHIN_MS = 60_000;
/** It accepts any keys unless it was started to check them. */
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI-EXAMPLEKEY', sessionToken: null };

/** Null, with one line of explanation, when there is none; in CI that is an error. `checksKeys`: it has no user, so every signature is wrong. */
export async function startS3({ checksKeys = false } = {}): Promise<S3Server | null> {
  const programs = [process.env.TEST_S3_SERVER ?? '', FETCHED].filter((file) => existsSync(file));
  for (const program of [...programs, 'moto_server']) {
    const server = await startProgram(program, checksKeys);
    if (server !== null) return server;
  }
  const message = 'no S3 server: run .ci/s3-server node_modules/.cache/s3-server, or put moto_server on the path';
  if (process.env.CI === 'true' || process.env.CI === '1') throw new Error(`${message} (in CI nothing may be skipped)`);
  process.stderr.write(`\n${message}; the suites that need it are skipped\n\n`);
  return null;
}

async function startProgram(program: string, checksKeys: boolean): Promise<S3Server | null> {
  const port = await freePort();
  const env = { ...process.env, ...(checksKeys ? { INITIAL_NO_AUTH_ACTION_COUNT: '0' } : {}) };
  const child = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore', env, detached: true });
  const life = { hasEnded: false };
  for (const event of ['error', 'exit'] as const) {
    child.once(event, () => {
      life.hasEnded = true;
    });
  }
  const deadline = systemClock.now() + START_WITHIN_MS;
  while (!life.hasEnded && systemClock.now() < deadline) {
    if (await accepts(port)) return describe(child, port, checksKeys);
    await systemClock.sleep(50);
  }
  await end(child);
  return null;
}

async function describe(child: ChildProcess, port: number, checksKeys: boolean): Promise<S3Server> {
  const url = `http://127.0.0.1:${port}`;
  const settings = { endpoint: url, region: 'us-east-1', pathStyle: true, credentials: KEYS };
  const client = new S3Client({
    endpoint: url,
    region: settings.region,
    forcePathStyle: true,
    credentials: { accessKeyId: KEYS.accessKeyId, secretAccessKey: KEYS.secretAccessKey },
  });
  const bucket = 'lake-test';
  if (!checksKeys) await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const env = {
    AWS_ENDPOINT_URL: url,
    AWS_REGION: settings.region,
    AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  };
  return { url, settings, client, env, bucket, stop: () => end(child) };
}

/** Ends the process and its children. */
function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has just ended.
      resolve();
    }
  });
}
