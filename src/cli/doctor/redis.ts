/** Checks Redis, when the queue lives there. */
import { Redis } from 'ioredis';
import { explainRedisError } from '../../ingest/queue/redis.ts';
import { explainEviction, readEviction, whereIs } from '../../ingest/queue/redis-memory.ts';
import { maskPasswords } from '../../log.ts';
import { type Check, failWith, ok, warn } from './check.ts';

const TIMEOUT_MS = 3000;

export async function checkRedis(url: string): Promise<Check[]> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let first: Error | undefined;
  // Without a listener the library prints the error itself.
  redis.on('error', (error: Error) => {
    first ??= error;
  });
  try {
    await redis.connect();
    if (first !== undefined) throw first;
    const version = /^redis_version:(.*)$/m.exec(await redis.info('server'))?.[1]?.trim() ?? 'unknown';
    const found = ok('Redis', `version ${version} at ${maskPasswords(url)}`);
    const warning = explainEviction(await readEviction(redis), whereIs(url));
    return warning === null ? [found] : [found, warn('Redis memory', warning.found, warning.fix)];
  } catch (error) {
    return [failWith('Redis', explainRedisError(first ?? (error as Error), url).message)];
  } finally {
    redis.disconnect();
  }
}
