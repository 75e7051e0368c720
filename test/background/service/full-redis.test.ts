/** A Redis whose memory is full: it can be read, and stores no new job. */
import { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../../support/redis-server.ts';
import { setScene, useServer } from './service.ts';

useServer();

const first = await startOwnRedis();
await first?.stop();

/** How often Redis has refused such a command. */
async function refused(redis: Redis, command: string): Promise<number> {
  const stats = new RegExp(`^cmdstat_${command}:.*rejected_calls=(\\d+)`, 'm').exec(await redis.info('commandstats'));
  return Number(stats?.[1] ?? 0);
}

test.skipIf(first === null)(
  'a service is not ready while its Redis is full, from its start or later, and says so in one line',
  async (context) => {
    const { start } = await setScene(context);
    const own: OwnRedis = (await startOwnRedis())!;
    const redis = new Redis(own.url);
    context.onTestFinished(async () => {
      redis.disconnect();
      await own.stop();
    });
    const setFull = (is: boolean) => redis.config('SET', 'maxmemory', is ? '1' : '0');
    const service = start([], { REDIS_URL: own.url });
    const stands = (one: typeof service, status: number) =>
      vi.waitFor(async () => expect(await one.get('/ready')).toMatchObject({ status }), { timeout: 60_000 });
    await service.line(/^ready/);
    await stands(service, 200);
    await setFull(true);
    await stands(service, 503);
    const { msg } = await service.line(/^the queue: /);
    expect(msg).toMatch(
      /^the queue: Redis at 127\.0\.0\.1:\d+ stores nothing: its memory is full \(maxmemory\).*; raise its maxmemory/,
    );
    const started = start(['--role', 'worker,http'], { REDIS_URL: own.url });
    await started.line(/^the queue: Redis at .* its memory is full/);
    await stands(started, 503);
    // Both services check again, and read the queue, before Redis refuses their write.
    const before = await refused(redis, 'set');
    await vi.waitFor(async () => expect(await refused(redis, 'set')).toBeGreaterThan(before + 6), { timeout: 60_000 });
    for (const one of [service, started]) {
      expect(await one.get('/ready')).toMatchObject({ status: 503 });
      expect(one.lines().filter(({ msg: text }) => /^the queue recovered|OOM/.test(text))).toEqual([]);
    }
    await setFull(false);
    for (const one of [service, started]) await stands(one, 200);
  },
);
