/** A Redis that evicts queued work when it is full: the start of the service and doctor say so, once and in our words. */
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ChunkJob } from '../../../src/ingest/queue/chunk-job.ts';
import { explainEviction, readEviction } from '../../../src/ingest/queue/redis-memory.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';
import { openChunkQueue } from '../../support/queues.ts';
import { type OwnRedis, startOwnRedis } from '../../support/redis-server.ts';

const CHUNK: ChunkJob = {
  kind: 'backfill',
  backfillId: 1,
  seriesId: 1,
  coinId: 'btc-bitcoin',
  quote: 'usd',
  interval: '24h',
  from: 0,
  to: 86_400_000,
  askedSince: 0,
};

const redises: OwnRedis[] = [];
afterEach(async () => {
  for (const redis of redises.splice(0)) await redis.stop();
});

async function redisWith(...settings: string[]): Promise<OwnRedis | null> {
  const redis = await startOwnRedis(undefined, settings);
  if (redis !== null) redises.push(redis);
  return redis;
}

const available = (await redisWith()) !== null;
const NO_CONFIG = ['--rename-command', 'CONFIG', ''];

async function doctor(redis: OwnRedis) {
  const { out } = await runCommand(['doctor', '--json'], {
    env: { REDIS_URL: redis.url, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' },
  });
  const checks: { name: string; state: string; found: string; fix?: string }[] = JSON.parse(out);
  return checks.filter(({ name }) => name.startsWith('Redis'));
}

describe.skipIf(!available)('a Redis', () => {
  test('that refuses writes when it is full causes no warning', async () => {
    expect(await doctor((await redisWith())!)).toMatchObject([{ name: 'Redis', state: 'ok' }]);
  });

  test.each([
    ['by its setting', []],
    ['where that may not be asked, by what it says of its memory', NO_CONFIG],
  ])('that evicts work causes a warning with the fix: known %s', async (_, settings) => {
    const redis = (await redisWith('--maxmemory-policy', 'allkeys-lru', ...settings))!;
    expect(await doctor(redis)).toMatchObject([
      { name: 'Redis', state: 'ok' },
      {
        name: 'Redis memory',
        state: 'warn',
        found: expect.stringContaining(`127.0.0.1:${redis.port} has the maxmemory-policy allkeys-lru`),
        fix: expect.stringContaining('redis-cli config set maxmemory-policy noeviction'),
      },
    ]);
  });

  test('that is full causes an error in our words, for whoever adds work', async () => {
    const redis = (await redisWith('--maxmemory', '1'))!;
    const engine = { kind: 'redis', url: redis.url } as const;
    const queue = await openChunkQueue({ engine, name: 'full', onError: () => undefined });
    try {
      await expect(queue.add([CHUNK])).rejects.toThrow(
        `Redis at 127.0.0.1:${redis.port} stores nothing: its memory is full (maxmemory); raise its maxmemory`,
      );
    } finally {
      await queue.close();
    }
  });

  test('whose user may not read what a queue needs cannot be used as a queue', async () => {
    const redis = (await redisWith(...'--user default on nopass ~* &* +@all -config -info'.split(' ')))!;
    expect(await doctor(redis)).toMatchObject([
      { name: 'Redis', state: 'fail', found: expect.stringMatching(/NOPERM/) },
    ]);
  });

  test('that evicts work causes one warning at the start of the service, and no other', async () => {
    const redis = (await redisWith('--maxmemory-policy', 'volatile-ttl', '--maxmemory', '100mb'))!;
    const database = await createTestDatabase();
    const stop = new AbortController();
    const others = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    let err = '';
    const ended = runCommand(['service'], {
      env: {
        DATABASE_URL: database.url,
        REDIS_URL: redis.url,
        CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1',
        CHANDLER_LISTEN: '127.0.0.1:0',
      },
      signal: stop.signal,
      onError: (text) => {
        err = text;
      },
    });
    try {
      await vi.waitFor(() => expect(err).toMatch(/"msg":"ready"/), { timeout: 60_000 });
      expect(err.match(/has the maxmemory-policy volatile-ttl: .*set maxmemory-policy to noeviction/g)).toHaveLength(1);
      expect(others).not.toHaveBeenCalled();
    } finally {
      stop.abort();
      await ended;
      others.mockRestore();
      await database.drop();
    }
  });
});

test('that does not report its memory causes a message about that', async () => {
  const config = () => Promise.reject(new Error("ERR unknown command 'CONFIG'"));
  const silent = { config, info: async () => '# Memory\r\nused_memory:1\r\n' } as unknown as Redis;
  expect(explainEviction(await readEviction(silent), 'h:1')?.found).toMatch(/could not be read \(Redis does not say\)/);
  const refusing = { config, info: () => Promise.reject(new Error('NOPERM no info')) } as unknown as Redis;
  expect(explainEviction(await readEviction(refusing), 'h:1')?.found).toMatch(/could not be read \(NOPERM no info\)/);
});
