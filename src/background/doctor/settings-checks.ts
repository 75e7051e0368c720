/** Checks that need no database: Node, settings that contradict each other, the home folder, Redis and the webhook. */
import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import { Redis } from 'ioredis';
import type { Config } from '../../config.ts';
import { formatBytes } from '../../core/format.ts';
import type { Notify } from '../../core/settings/notice-settings.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { explainRedisError } from '../../ingest/queue/redis.ts';
import { explainEviction, hostAndPort, readEviction } from '../../ingest/queue/redis-memory.ts';
import { maskPasswords } from '../../log.ts';
import { FREE_BASE_URL, PAID_BASE_URL } from '../../settings.ts';
import { readPrivateKey } from '../attestation/attestation-file.ts';
import { LITTLE_DISK, NO_DISK, nearestExisting, readFree } from '../health/disk.ts';
import { createWebhook } from '../notice/webhook.ts';
import { type Check, fail, failWith, ok, warn } from './check.ts';

const LEAST_NODE = [20, 19] as const;
const REDIS_TIMEOUT_MS = 3000;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < LEAST_NODE[0] || (major === LEAST_NODE[0] && minor < LEAST_NODE[1]);
  if (!isOld) return ok('Node', version);
  return fail('Node', `${version} is too old`, `install Node ${LEAST_NODE.join('.')} or newer`);
}

/** Settings that are each valid but contradict each other. */
export function checkConfiguration(config: Config, terms: { readonly showsKeyLength: boolean }): Check[] {
  const { apiKey, baseUrl, plan } = config;
  const needsKey = apiKey === null && plan !== 'free' && baseUrl === FREE_BASE_URL;
  return [
    checkKey(config, terms),
    needsKey
      ? fail('plan', `${plan} needs a key`, 'set CHANDLER_API_KEY, or leave out CHANDLER_PLAN')
      : ok('plan', plan ?? 'as the upstream reports for the key'),
  ];
}

function checkKey({ apiKey, baseUrl }: Config, { showsKeyLength }: { readonly showsKeyLength: boolean }): Check {
  const { host } = new URL(baseUrl);
  if (apiKey === null) {
    if (baseUrl !== PAID_BASE_URL) return ok('key', 'none: anonymous');
    const fix = `set CHANDLER_API_KEY, or leave out CHANDLER_BASE_URL for ${FREE_BASE_URL}`;
    return fail('key', `${host} answers only with a key`, fix);
  }
  if (baseUrl === FREE_BASE_URL) {
    return warn('key', `${host} treats every key as the free plan`, `leave out CHANDLER_BASE_URL for ${PAID_BASE_URL}`);
  }
  if (isReadableOnTheWay(baseUrl)) {
    return warn('key', `the key travels unencrypted to ${host}`, 'use an https:// address in CHANDLER_BASE_URL');
  }
  const length = showsKeyLength ? ` (${apiKey.length} characters)` : '';
  return ok('key', `set${length}, sent only to ${host}`);
}

/** Whether the address is unencrypted and on another machine. */
function isReadableOnTheWay(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(hostname);
}

/** Whether the folder of the embedded server is writable and has room. No checks when `DATABASE_URL` is set. */
export async function checkHome(config: Config): Promise<Check[]> {
  if (config.databaseUrl !== null) return [];
  const home = path.resolve(config.home);
  const existing = await nearestExisting(home);
  const refused = await access(existing, constants.W_OK | constants.X_OK).then(
    () => null,
    (error: NodeJS.ErrnoException) => error.code,
  );
  if (refused !== null) {
    const [found, fix] =
      refused === 'EROFS'
        ? ['is on a read-only disk', 'choose a folder on another disk with CHANDLER_HOME']
        : ['cannot be written by this user', 'correct its owner, or choose another folder with CHANDLER_HOME'];
    return [fail('home folder', `${existing} ${found}`, fix)];
  }
  const free = await readFree(existing);
  const room = `${formatBytes(free)} free`;
  const more = 'make room, or choose a folder on another disk with CHANDLER_HOME';
  return [
    ok('home folder', home),
    free < NO_DISK ? fail('disk', room, more) : free < LITTLE_DISK ? warn('disk', room, more) : ok('disk', room),
  ];
}

/** Whether the folder of the daily attestations is writable, and whether its key can sign. No checks when the service writes none. */
export async function checkAttestations({ attest }: Config): Promise<Check[]> {
  if (attest === null) return [];
  const dir = path.resolve(attest.dir);
  const failed = [await folderFailure(dir), await keyFailure(attest.keyFile)].filter((check) => check !== null);
  if (failed.length > 0) return failed;
  return [ok('attestations', `one a day in ${dir}, ${attest.keyFile === null ? 'not signed' : 'signed'}`)];
}

async function folderFailure(dir: string): Promise<Check | null> {
  const existing = await nearestExisting(dir);
  try {
    if (!(await stat(existing)).isDirectory())
      return fail('attestations', `${existing} is not a folder`, 'choose a folder with CHANDLER_ATTEST_DIR');
    await access(existing, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const found = `${existing} cannot be written (${(error as NodeJS.ErrnoException).code})`;
    return fail('attestations', found, 'correct its owner, or choose another folder with CHANDLER_ATTEST_DIR');
  }
}

async function keyFailure(keyFile: string | null): Promise<Check | null> {
  if (keyFile === null) return null;
  try {
    await readPrivateKey(keyFile, 'CHANDLER_ATTEST_KEY');
    return null;
  } catch (error) {
    if (error instanceof ConfigurationError) return failWith('attestations', error.message);
    throw error;
  }
}

/** Checks Redis if it holds the queue. */
export async function checkRedis(url: string | null): Promise<Check[]> {
  if (url === null) return [ok('Redis', 'not used: the queue lives in Postgres')];
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: REDIS_TIMEOUT_MS,
    commandTimeout: REDIS_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let first: Error | undefined;
  // Without a listener the library itself prints the error.
  redis.on('error', (error: Error) => {
    first ??= error;
  });
  try {
    await redis.connect();
    if (first !== undefined) throw first;
    const version = /^redis_version:(.*)$/m.exec(await redis.info('server'))?.[1]?.trim() ?? 'unknown';
    const found = ok('Redis', `version ${version} at ${maskPasswords(url)}`);
    const warning = explainEviction(await readEviction(redis), hostAndPort(url));
    return warning === null ? [found] : [found, warn('Redis memory', warning.found, warning.fix)];
  } catch (error) {
    return [failWith('Redis', explainRedisError(first ?? (error as Error), url).message)];
  } finally {
    redis.disconnect();
  }
}

/** Whether the webhook is encrypted and, if a test message is sent, whether it accepts that. No checks without a webhook. */
export async function checkWebhook(
  notify: Notify | null,
  { send, signal }: { readonly send: boolean; readonly signal: AbortSignal },
): Promise<Check[]> {
  if (notify === null) return [];
  const { url, events } = notify;
  const { host } = new URL(url);
  const open = isReadableOnTheWay(url)
    ? [warn('webhook', `messages to ${host} are not encrypted`, 'use an https:// address in CHANDLER_WEBHOOK_URL')]
    : [];
  if (!send) return [...open, ok('webhook', `${host} is notified of ${events.join(', ')}`)];
  const webhook = createWebhook(url);
  try {
    const delivery = await webhook.post('chandler doctor: messages of Chandler arrive here.', signal);
    if (delivery.kind === 'taken') return [...open, ok('webhook', `${host} accepted a message`)];
    return [...open, fail('webhook', delivery.message, 'correct CHANDLER_WEBHOOK_URL, or check the receiver')];
  } finally {
    await webhook.close();
  }
}

/** Sends nothing: a request of the doctor would make the monitor conclude that the service is well. No checks without a monitor. */
export function checkHeartbeat(url: string | null): Check[] {
  if (url === null) return [];
  const { host } = new URL(url);
  const fix = 'use an https:// address in CHANDLER_HEARTBEAT_URL';
  return isReadableOnTheWay(url)
    ? [warn('heartbeat', `requests to ${host} are not encrypted`, fix)]
    : [ok('heartbeat', `${host} is requested about every 5 minutes by a service that is well`)];
}
