/** What `chandler doctor` asks of Redis, when the queue lives there. */
import { Redis } from 'ioredis';
import { explainRedisError } from '../../ingest/redis.ts';
import { maskPasswords } from '../../log.ts';
import { type Check, failWith, ok, warn } from './check.ts';

const PATIENCE_MS = 3000;

export async function checkRedis(url: string): Promise<Check[]> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
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
    const info = await redis.info();
    const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
    const policy = field('maxmemory_policy');
    const found = ok('Redis', `version ${field('redis_version') ?? 'unknown'} at ${maskPasswords(url)}`);
    if (policy === undefined || policy === 'noeviction') return [found];
    return [
      found,
      warn('Redis memory', `policy ${policy} may throw queued work away`, 'set maxmemory-policy to noeviction'),
    ];
  } catch (error) {
    return [failWith('Redis', explainRedisError(first ?? (error as Error), url).message)];
  } finally {
    redis.disconnect();
  }
}
