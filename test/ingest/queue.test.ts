/** What the queue promises on both engines, beyond what whole backfills show. */
import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type ChunkJob, chunkJobId } from '../../src/ingest/chunk-job.ts';
import { type ChunkQueue, openChunkQueue } from '../../src/ingest/queue.ts';
import type { QueueEngine } from '../../src/ingest/queue-engine.ts';
import { createTestDatabase, testRedisUrl } from '../support/database.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const job = (seriesId: number): ChunkJob => ({
  kind: 'backfill',
  backfillId: 1,
  seriesId,
  coinId: 'btc-bitcoin',
  quote: 'usd',
  interval: '24h',
  from: 0,
  to: 86_400_000,
  askedSince: 0,
});

const NOTHING = { kind: 'stored', requests: 0, stored: 0, revised: 0, setAside: 0 } as const;
/** No queue snoozes longer at a time. */
const LONGEST_SNOOZE_MS = 10_000;

type Made = { readonly queue: ChunkQueue; readonly pause: () => Promise<void> };

async function onPostgres(): Promise<Made> {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const queue = await openQueue({ kind: 'postgres', url: database.url }, 'chunks');
  const pause = async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    await pool.query(
      `insert into bullmq.meta (queue, field, value) values ('chunks', 'paused', '1') on conflict (queue, field) do update set value = '1'`,
    );
    await pool.end();
  };
  return { queue, pause };
}

async function onRedis(): Promise<Made> {
  const name = `test-${randomUUID()}`;
  const queue = await openQueue({ kind: 'redis', url: testRedisUrl()! }, name);
  const pause = async () => {
    const connection = new Redis(testRedisUrl()!, { maxRetriesPerRequest: null });
    const other = new Queue(name, { connection });
    await other.pause();
    await other.close();
    await connection.quit();
  };
  return { queue, pause };
}

async function openQueue(engine: QueueEngine, name: string): Promise<ChunkQueue> {
  const queue = await openChunkQueue({
    engine,
    name,
    onError: (error) => {
      throw error;
    },
  });
  closers.push(() => queue.close());
  return queue;
}

const engines = [['Postgres', onPostgres] as const, ...(testRedisUrl() === null ? [] : [['Redis', onRedis] as const])];

describe.each(engines)('on %s', (_name, make) => {
  test('a wipe that died halfway, leaving the queue paused, holds nobody up', async () => {
    const { queue, pause } = await make();
    await pause();
    const done: number[] = [];
    let finish: () => void;
    const both = new Promise<void>((resolve) => {
      finish = resolve;
    });
    await queue.add([job(1)]);
    const worker = queue.work({
      concurrency: 1,
      handle: async ({ seriesId }) => {
        done.push(seriesId);
        return NOTHING;
      },
      snoozeMs: () => 0,
      events: {
        onOutcome: async () => {
          if (done.length === 1) {
            // Meanwhile another one dies.
            await pause();
            await queue.add([job(2)]);
            await queue.unpause();
          } else finish();
        },
        onFailure: (_job, error) => {
          throw error;
        },
      },
    });
    await both;
    expect(done).toEqual([1, 2]);
    await worker.close();
  });

  test('a snooze left by a worker that has ended does not hold up the next one', async () => {
    const { queue } = await make();
    await queue.add([job(1)]);
    const nothing = { onOutcome: () => undefined, onFailure: () => undefined };
    const snoozed = new Promise<void>((resolve) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async () => ({ kind: 'snoozed', until: 0, reason: 'spent' }),
        snoozeMs: () => LONGEST_SNOOZE_MS,
        events: { ...nothing, onOutcome: () => resolve(worker.close()) },
      });
      closers.push(() => worker.close());
    });
    const over = new AbortController();
    closers.push(async () => over.abort());
    const almostTheEnd = systemClock.sleep(LONGEST_SNOOZE_MS - 1_000, over.signal).then(
      () => 'held up' as const,
      () => null,
    );
    await snoozed;
    expect(await queue.stateOf(job(1))).toBe('waiting');
    const handled = new Promise<'handled'>((resolve) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async () => NOTHING,
        snoozeMs: () => 0,
        events: { ...nothing, onOutcome: () => resolve('handled') },
      });
      closers.push(() => worker.close());
    });
    expect(await Promise.race([handled, almostTheEnd])).toBe('handled');
  });

  test('knows the chunks that wait, are under way or are put off, and no others', async () => {
    const { queue } = await make();
    const ids = (...numbers: number[]) => new Set(numbers.map((n) => chunkJobId(job(n))));
    expect(await queue.ids()).toEqual(new Set());
    await queue.add([job(1), job(2), job(3)]);
    expect(await queue.ids()).toEqual(ids(1, 2, 3));
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const third = new Promise<void>((begun) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async ({ seriesId }) => {
          if (seriesId === 1) return NOTHING;
          if (seriesId === 2) return { kind: 'deferred', until: 0, requests: 0, reason: 'failing' };
          begun();
          await finished;
          return NOTHING;
        },
        snoozeMs: () => 60_000,
        events: { onOutcome: () => undefined, onFailure: () => undefined },
      });
      closers.push(() => worker.close());
    });
    await third;
    expect(await queue.ids()).toEqual(ids(2, 3));
    finish();
  });

  test('what is more urgent is taken first, whenever it came, and what both want with the higher priority of the two', async () => {
    const { queue } = await make();
    await queue.add([job(1), job(2), job(3)], -10);
    await queue.add([job(4), job(2)], 100);
    await queue.add([job(5), job(4)]);
    await queue.add([job(6)], -10);
    const taken: number[] = [];
    const all = new Promise<void>((done) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async ({ seriesId }) => {
          if (taken.push(seriesId) === 6) done();
          return NOTHING;
        },
        snoozeMs: () => 0,
        events: { onOutcome: () => undefined, onFailure: () => undefined },
      });
      closers.push(() => worker.close());
    });
    await all;
    expect(taken).toEqual([4, 2, 5, 1, 3, 6]);
  });

  test('what waits can be wiped, or taken back one by one', async () => {
    const { queue } = await make();
    await queue.add([job(1), job(2)]);
    expect(await queue.size()).toBe(2);
    await queue.wipe();
    expect(await queue.size()).toBe(0);
    await queue.add([job(1)]);
    expect(await queue.stateOf(job(1))).toBe('waiting');
    await queue.remove([job(1), job(2)]);
    expect(await queue.stateOf(job(1))).toBe('gone');
  });
});
