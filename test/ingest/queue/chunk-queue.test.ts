/** What the queue promises on both engines, in addition to what whole backfills show. */
import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { type Outcome, SeriesGivenUp } from '../../../src/ingest/outcome.ts';
import { type ChunkJob, chunkJobId } from '../../../src/ingest/queue/chunk-job.ts';
import type { ChunkQueue, QueueOptions } from '../../../src/ingest/queue/chunk-queue.ts';
import type { ChunkWorker } from '../../../src/ingest/queue/chunk-worker.ts';
import type { QueueEngine } from '../../../src/ingest/queue/queue-engine.ts';
import { createTestDatabase, testRedisUrl } from '../../support/database.ts';
import { openChunkQueue } from '../../support/queues.ts';
import { createRelay } from '../../support/relay.ts';
import { until } from '../../support/until.ts';

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

const NOTHING = { kind: 'stored', requests: 0, stored: 0, revised: 0, quarantined: 0 } as const;
/** No snooze of a queue is longer. */
const LONGEST_SNOOZE_MS = 10_000;

type Made = {
  readonly queue: ChunkQueue;
  readonly pause: () => Promise<void>;
  /** The number by which the engine orders its jobs. */
  readonly numberOf: (job: ChunkJob) => Promise<number>;
  /** The same queue in another process, which can be killed. */
  readonly open: (own?: Own) => Promise<ChunkQueue & { kill(): Promise<void> }>;
};

type Own = Partial<Pick<QueueOptions, 'attempts' | 'backoffMs' | 'lockMs'>>;

async function onPostgres(own: Own = {}): Promise<Made> {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const queue = await openQueue({ kind: 'postgres', url: database.url }, 'chunks', own);
  const pause = async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    await pool.query(
      `insert into bullmq.meta (queue, field, value) values ('chunks', 'paused', '1') on conflict (queue, field) do update set value = '1'`,
    );
    await pool.end();
  };
  return {
    queue,
    pause,
    numberOf: async (job) => {
      const [row] = await database.sql<{ priority: number }[]>`
        select priority from bullmq.job where id = ${chunkJobId(job)}`;
      return row!.priority;
    },
    open: (theirs = own) => openBehindRelay(database.url, (url) => ({ kind: 'postgres', url }), 'chunks', theirs),
  };
}

async function onRedis(own: Own = {}): Promise<Made> {
  const name = `test-${randomUUID()}`;
  const queue = await openQueue({ kind: 'redis', url: testRedisUrl()! }, name, own);
  const pause = async () => {
    const connection = new Redis(testRedisUrl()!, { maxRetriesPerRequest: null });
    const other = new Queue(name, { connection });
    await other.pause();
    await other.close();
    await connection.quit();
  };
  const open = (theirs = own) => openBehindRelay(testRedisUrl()!, (url) => ({ kind: 'redis', url }), name, theirs);
  const numberOf = async (job: ChunkJob) => {
    const connection = new Redis(testRedisUrl()!, { maxRetriesPerRequest: null });
    const number = await connection.hget(`bull:${name}:${chunkJobId(job)}`, 'priority');
    await connection.quit();
    return Number(number);
  };
  return { queue, pause, numberOf, open };
}

async function openBehindRelay(url: string, engineAt: (url: string) => QueueEngine, name: string, own: Own) {
  const relay = await createRelay(url);
  closers.push(() => relay.close());
  const queue = await openChunkQueue({ engine: engineAt(relay.url), name, onError: () => undefined, ...own });
  closers.push(() => queue.close().catch(() => undefined));
  return { ...queue, kill: async () => relay.cut() };
}

async function openQueue(engine: QueueEngine, name: string, own: Own): Promise<ChunkQueue> {
  const queue = await openChunkQueue({
    engine,
    name,
    onError: (error) => {
      throw error;
    },
    ...own,
  });
  closers.push(() => queue.close());
  return queue;
}

const engines = [['Postgres', onPostgres] as const, ...(testRedisUrl() === null ? [] : [['Redis', onRedis] as const])];

describe.each(engines)('on %s', (_name, make) => {
  test('a wipe that died halfway and left the queue paused holds nobody up', async () => {
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
            // Meanwhile another wipe dies.
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
        handle: async () => ({ kind: 'snoozed', until: 0, reason: 'quota exhausted' }),
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
    expect(await queue.statesOf([job(1)])).toEqual(['waiting']);
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

  test('the queue knows which chunks wait, are under way or are delayed, and no others', async () => {
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

  test('the most urgent chunk is taken first, whenever it came; a chunk wanted twice has the higher priority of the two', async () => {
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

  test('a retry keeps its place: it goes before the chunks that were not requested yet, whoever added them', async () => {
    const { queue } = await make({ backoffMs: 1 });
    await queue.add([job(1), job(2), job(3), job(4)]);
    await queue.add([job(5), job(6)]);
    const taken: string[] = [];
    const all = new Promise<void>((done) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async ({ seriesId }, attempt) => {
          taken.push(`${seriesId}.${attempt}`);
          if (taken.length === 8) done();
          if (seriesId === 1 && attempt === 1) throw new Error('no answer');
          if (seriesId === 2 && taken.filter((one) => one === '2.1').length === 1)
            return { kind: 'deferred', until: 0, requests: 0, reason: 'failing' };
          // Meanwhile the backoff of both is over.
          await systemClock.sleep(20);
          return NOTHING;
        },
        snoozeMs: () => 1,
        events: { onOutcome: () => undefined, onFailure: () => undefined },
      });
      closers.push(() => worker.close());
    });
    await all;
    expect(taken.toSorted()).toEqual(['1.1', '1.2', '2.1', '2.1', '3.1', '4.1', '5.1', '6.1']);
    expect(taken.slice(-2)).toEqual(['5.1', '6.1']);
  });

  test('the chunk of a worker that died goes before those that were not requested yet', async () => {
    // Only the lock of the dead worker is short: a busy machine must renew the other lock in time.
    const { queue, numberOf, open } = await make({ lockMs: 3_000 });
    await queue.add([job(1), job(2), job(3)]);
    const events = { onOutcome: () => undefined, onFailure: () => undefined };
    const dead = await open({ lockMs: 300 });
    await new Promise<void>((begun) => {
      const worker = dead.work({
        concurrency: 1,
        handle: () => {
          begun();
          return new Promise(() => undefined);
        },
        snoozeMs: () => 0,
        events,
      });
      closers.push(() => worker.close(true));
    });
    await dead.kill();
    const taken: number[] = [];
    let isFree = false;
    const all = new Promise<void>((done) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async ({ seriesId }) => {
          taken.push(seriesId);
          if (seriesId === 2) {
            // Until the engine finds that the first one is stalled.
            await until(async () => (await queue.statesOf([job(1)]))[0] === 'waiting');
            // It has the number of a retry, too.
            await until(async () => (await numberOf(job(1))) % 2 === 1);
            isFree = true;
          }
          if (taken.length === 3) done();
          return NOTHING;
        },
        snoozeMs: () => 0,
        events,
      });
      closers.push(() => worker.close());
    });
    await all;
    expect(isFree).toBe(true);
    expect(taken).toEqual([2, 1, 3]);
  });

  test('the queue tells where chunks are: in progress, waiting, or delayed for a retry, until when and why', async () => {
    const { queue } = await make({ backoffMs: 60_000 });
    await queue.add([job(1), job(2), job(3), job(4), job(5)]);
    const since = systemClock.now();
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const begun = new Promise<void>((third) => {
      const worker = queue.work({
        concurrency: 1,
        handle: async ({ seriesId }) => {
          if (seriesId === 1) return { kind: 'deferred', until: since + 90_000, requests: 0, reason: 'failing' };
          if (seriesId === 2) throw new Error('status 500');
          third();
          await finished;
          return NOTHING;
        },
        snoozeMs: () => 90_000,
        events: { onOutcome: () => undefined, onFailure: () => undefined },
      });
      closers.push(() => worker.close());
    });
    await begun;
    await until(async () => (await queue.placesOf([job(2)])).waits.length === 1);
    const places = await queue.placesOf([job(1), job(2), job(3), job(4)]);
    expect(places).toMatchObject({ inProgress: 1, queued: 1, retrying: 2 });
    expect(places.waits).toEqual([
      { id: chunkJobId(job(2)), attempts: 1, until: expect.any(Number), reason: 'status 500' },
      { id: chunkJobId(job(1)), attempts: 0, until: since + 90_000, reason: 'failing' },
    ]);
    expect(places.waits[0]!.until - since).toBeGreaterThanOrEqual(30_000);
    expect(places.waits[0]!.until - systemClock.now()).toBeLessThanOrEqual(60_000);
    finish();
  });

  test('waiting chunks can be wiped, or taken back one by one', async () => {
    const { queue } = await make();
    await queue.add([job(1), job(2)]);
    expect(await queue.size()).toBe(2);
    await queue.wipe();
    expect(await queue.size()).toBe(0);
    await queue.add([job(1)]);
    expect(await queue.statesOf([job(1)])).toEqual(['waiting']);
    await queue.remove([job(1), job(2)]);
    expect(await queue.statesOf([job(1)])).toEqual(['gone']);
  });

  describe('of several chunks', () => {
    const all = (...numbers: number[]) => numbers.map(job);
    const ids = (...numbers: number[]) => new Set(numbers.map((n) => chunkJobId(job(n))));
    type Told = { readonly series: number; readonly attempt: number };

    /** One worker works until `count` chunks have ended; `outcomeOf` decides how each ends. */
    async function workOff(
      queue: ChunkQueue,
      count: number,
      outcomeOf: (told: Told) => Outcome | Error | Promise<Outcome> = () => NOTHING,
    ) {
      const told: Told[] = [];
      const failures: [number, boolean][] = [];
      let ended = 0;
      await new Promise<void>((done) => {
        const oneLess = () => {
          if (++ended === count) done();
        };
        const worker = queue.work({
          concurrency: 1,
          handle: async ({ seriesId: series }, attempt) => {
            told.push({ series, attempt });
            const outcome = await outcomeOf({ series, attempt });
            if (outcome instanceof Error) throw outcome;
            return outcome;
          },
          snoozeMs: () => 1,
          events: {
            onOutcome: (_job, { kind }) => {
              if (kind !== 'snoozed' && kind !== 'deferred') oneLess();
            },
            onFailure: ({ seriesId }, _error, final) => {
              failures.push([seriesId, final]);
              if (final) oneLess();
            },
          },
        });
        closers.push(() => worker.close());
      });
      await vi.waitFor(async () => expect(await queue.size()).toBe(0), { timeout: 60_000 });
      return { told: told.map(({ series, attempt }) => [series, attempt]), failures };
    }

    test('each is known, and they are handled in their order', async () => {
      const { queue } = await make();
      await queue.add(all(1, 2, 3, 4, 5));
      expect(await queue.ids()).toEqual(ids(1, 2, 3, 4, 5));
      expect(await queue.size()).toBe(5);
      expect(await queue.statesOf(all(2, 5, 6))).toEqual(['waiting', 'waiting', 'gone']);
      const { told } = await workOff(queue, 5);
      expect(told).toEqual([1, 2, 3, 4, 5].map((series) => [series, 1]));
      expect(await queue.statesOf(all(2, 5))).toEqual(['gone', 'gone']);
    });

    test('none is added again, not even in the same moment', async () => {
      const { queue } = await make();
      await queue.add(all(1, 2));
      await Promise.all([queue.add(all(2, 3, 5)), queue.add(all(1, 3, 4))]);
      expect(await queue.size()).toBe(5);
      const { told } = await workOff(queue, 5);
      expect(told.map(([series]) => series).sort()).toEqual([1, 2, 3, 4, 5]);
    });

    test('nobody gets the chunk in progress a second time, or takes it away', async () => {
      const { queue } = await make();
      await queue.add(all(1, 2, 3));
      let states: unknown;
      const { told } = await workOff(queue, 2, async ({ series }) => {
        if (series !== 2) return NOTHING;
        await queue.add(all(2));
        await queue.remove(all(2, 3));
        states = await queue.statesOf(all(1, 2, 3, 4));
        return NOTHING;
      });
      expect(states).toEqual(['gone', 'active', 'gone', 'gone']);
      expect(told.map(([series]) => series)).toEqual([1, 2]);
    });

    test('a failing chunk gets all its attempts, and the others do not wait for it', async () => {
      const { queue } = await make({ attempts: 3, backoffMs: 1 });
      await queue.add(all(1, 2, 3));
      const { told, failures } = await workOff(queue, 3, ({ series }) => (series === 1 ? new Error('no') : NOTHING));
      expect(told[0]).toEqual([1, 1]);
      expect(told.filter(([series]) => series === 1)).toEqual([
        [1, 1],
        [1, 2],
        [1, 3],
      ]);
      expect(told.filter(([series]) => series !== 1)).toEqual([
        [2, 1],
        [3, 1],
      ]);
      expect(failures).toEqual([
        [1, false],
        [1, false],
        [1, true],
      ]);
    });

    test('a chunk that failed for good is not tried again', async () => {
      const { queue } = await make();
      await queue.add(all(1, 2));
      const { told, failures } = await workOff(queue, 2, ({ series }) =>
        series === 1 ? new SeriesGivenUp('hopeless') : NOTHING,
      );
      expect(told).toEqual([
        [1, 1],
        [2, 1],
      ]);
      expect(failures).toEqual([[1, true]]);
    });

    test.each([
      ['put off', { kind: 'deferred', until: 0, requests: 0, reason: 'failing' }],
      ['snoozed', { kind: 'snoozed', until: 0, reason: 'queue' }],
    ] as const)('a chunk that is %s uses no attempt, and all are done', async (_how, outcome) => {
      const { queue } = await make({ attempts: 1 });
      await queue.add(all(1, 2, 3));
      let waits = 0;
      const { told, failures } = await workOff(queue, 3, ({ series }) =>
        series === 2 && waits++ < 2 ? outcome : NOTHING,
      );
      expect(told.filter(([series]) => series === 2)).toEqual([
        [2, 1],
        [2, 1],
        [2, 1],
      ]);
      expect(told.filter(([series]) => series !== 2)).toEqual([
        [1, 1],
        [3, 1],
      ]);
      expect(failures).toEqual([]);
    });

    test('a worker that is closed finishes the chunk in progress, and leaves the others', async () => {
      const { queue } = await make();
      await queue.add(all(1, 2, 3));
      const handled: number[] = [];
      let closed: Promise<void> | undefined;
      await new Promise<void>((begun) => {
        const worker = queue.work({
          concurrency: 1,
          handle: async ({ seriesId }) => {
            handled.push(seriesId);
            closed = worker.close();
            begun();
            return NOTHING;
          },
          snoozeMs: () => 0,
          events: { onOutcome: () => undefined, onFailure: () => undefined },
        });
      });
      await closed;
      expect(handled).toEqual([1]);
      expect(await queue.ids()).toEqual(ids(2, 3));
      expect(await queue.statesOf(all(1, 2, 3))).toEqual(['gone', 'waiting', 'waiting']);
    });
  });
});

test('a worker that is still open when its connections close ends with them, without a busy loop', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  let errors = 0;
  let worker: ChunkWorker | undefined;
  const queue = await openChunkQueue({
    engine: { kind: 'postgres', url: database.url },
    onError: () => {
      // A busy loop would never let a timer fire, and this test would not end.
      if (++errors === 100) void worker?.close(true);
    },
  });
  const events = { onOutcome: () => undefined, onFailure: () => undefined };
  await new Promise<void>((begun) => {
    worker = queue.work({
      concurrency: 1,
      handle: async () => {
        begun();
        return NOTHING;
      },
      snoozeMs: () => 0,
      events,
    });
    void queue.add([job(1)]);
  });
  await queue.close();
  await new Promise(setImmediate);
  expect(errors).toBeLessThan(100);
});

test('a worker that is made while the database is away works when it is back, without a busy loop', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const relay = await createRelay(database.url);
  closers.push(() => relay.close());
  let errors = 0;
  let failed: () => void;
  const failure = new Promise<void>((resolve) => {
    failed = resolve;
  });
  let worker: ChunkWorker | undefined;
  const queue = await openChunkQueue({
    engine: { kind: 'postgres', url: relay.url },
    onError: () => {
      failed();
      // A busy loop would never let a timer fire, and this test would not end.
      if (++errors === 1_000) void worker?.close(true);
    },
  });
  closers.push(() => queue.close());
  let done: (id: number) => void;
  const worked = new Promise<number>((resolve) => {
    done = resolve;
  });
  relay.cut();
  worker = queue.work({
    concurrency: 1,
    handle: async ({ seriesId }) => {
      done(seriesId);
      return NOTHING;
    },
    snoozeMs: () => 0,
    events: { onOutcome: () => undefined, onFailure: () => undefined },
  });
  await failure;
  await new Promise(setImmediate);
  relay.mend();
  await until(() =>
    queue.add([job(1)]).then(
      () => true,
      () => false,
    ),
  );
  expect(await worked).toBe(1);
  expect(errors).toBeLessThan(1_000);
  await worker.close();
});
