/** Checks what Redis does when its memory is full: with any policy except `noeviction`, it deletes queued jobs. */
import type { Redis } from 'ioredis';

type Eviction =
  | { readonly kind: 'none' }
  | { readonly kind: 'evicts'; readonly policy: string }
  /** The setting could not be read. */
  | { readonly kind: 'unknown'; readonly why: string };

const POLICY = /^maxmemory_policy:(.*)$/m;

/** Reads the setting. Many hosted services forbid that; `INFO memory` contains it as well. */
export async function readEviction(redis: Pick<Redis, 'config' | 'info'>): Promise<Eviction> {
  const policy = await redis.config('GET', 'maxmemory-policy').then(
    (answer) => (Array.isArray(answer) && typeof answer[1] === 'string' ? answer[1] : null),
    () => null,
  );
  if (policy !== null) return judge(policy);
  try {
    const told = POLICY.exec(await redis.info('memory'))?.[1]?.trim();
    return told === undefined ? { kind: 'unknown', why: 'Redis does not say' } : judge(told);
  } catch (error) {
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) };
  }
}

function judge(policy: string): Eviction {
  return policy === 'noeviction' ? { kind: 'none' } : { kind: 'evicts', policy };
}

/** What is wrong and how to correct it, as two halves of a sentence; null when nothing is wrong. `at`: host and port. */
export function explainEviction(
  eviction: Eviction,
  at: string,
): { readonly found: string; readonly fix: string } | null {
  const fix = 'set maxmemory-policy to noeviction: redis-cli config set maxmemory-policy noeviction, and in redis.conf';
  switch (eviction.kind) {
    case 'none':
      return null;
    case 'evicts':
      return {
        found: `Redis at ${at} has the maxmemory-policy ${eviction.policy}: when its memory is full it throws queued work away, which is then missed and planned anew`,
        fix,
      };
    case 'unknown':
      return {
        found: `the maxmemory-policy of Redis at ${at} could not be read (${eviction.why}); any but noeviction throws queued work away`,
        fix: `set it to noeviction in the configuration of that Redis`,
      };
  }
}

/** BullMQ prints a warning about the policy for every connection, into a log that must be JSON. So BullMQ always reads `noeviction`. */
export function withoutNotice(redis: Redis): Redis {
  const info = redis.info.bind(redis) as (...sections: string[]) => Promise<string>;
  const duplicate = redis.duplicate.bind(redis);
  return Object.assign(redis, {
    info: async (...sections: string[]) => (await info(...sections)).replace(POLICY, 'maxmemory_policy:noeviction'),
    duplicate: (...options: Parameters<Redis['duplicate']>) => withoutNotice(duplicate(...options)),
  });
}

/** `host:port` of an address. */
export function hostAndPort(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 6379}`;
}
