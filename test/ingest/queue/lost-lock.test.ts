/** A worker that loses its job while it holds it. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ChunkJob, chunkJobId } from '../../../src/ingest/queue/chunk-job.ts';
import { isLostLock } from '../../../src/ingest/queue/lost-lock.ts';
import type { QueueEngine } from '../../../src/ingest/queue/queue-engine.ts';
import { createClient } from '../../../src/store/connection/connect.ts';
import { createTestDatabase, testRedisUrl } from '../../support/database.ts';
import { openChunkQueue } from '../../support/queues.ts';
import { until } from '../../support/until.ts';

type Losses = { readonly engine: QueueEngine } & { readonly [loss: string]: unknown };

const NAME = `test-${randomUUID()}`;
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

async function onPostgres() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const sql = createClient({ url: database.url, max: 1 });
  onTestFinished(() => sql.end());
  return {
    engine: { kind: 'postgres', url: database.url } as const,
    'is gone': () => sql`delete from bullmq.job`,
    'is not active': () => sql`update bullmq.job set state = 'completed'`,
    'is locked by another': () => sql`update bullmq.job set lock_token = 'another'`,
  };
}

async function onRedis() {
  const redis = new Redis(testRedisUrl()!, { maxRetriesPerRequest: null });
  onTestFinished(async () => void (await redis.quit()));
  const queue = `bull:${NAME}`;
  return {
    engine: { kind: 'redis', url: testRedisUrl()! } as const,
    'is gone': () => redis.del(`${queue}:${chunkJobId(CHUNK)}`),
    'is not active': () => redis.del(`${queue}:active`),
  };
}

const onBoth = [
  ...['is gone', 'is not active', 'is locked by another'].map((loss) => ['Postgres', onPostgres, loss] as const),
  ...(testRedisUrl() === null ? [] : ['is gone', 'is not active'].map((loss) => ['Redis', onRedis, loss] as const)),
];

describe.each(onBoth)('on %s', (_engine, make, loss) => {
  test(`a job that ${loss} when its worker ends it is reported as a lost lock`, async () => {
    const made: Losses = await make();
    const errors: Error[] = [];
    const queue = await openChunkQueue({ engine: made.engine, name: NAME, onError: (error) => errors.push(error) });
    onTestFinished(() => queue.close());
    await queue.add([CHUNK]);
    const worker = queue.work({
      concurrency: 1,
      handle: async () => {
        await (made[loss] as () => Promise<unknown>)();
        return { kind: 'stored', requests: 0, stored: 0, revised: 0, quarantined: 0 };
      },
      snoozeMs: () => 0,
      events: { onOutcome: () => undefined, onFailure: () => undefined },
    });
    onTestFinished(() => worker.close(true));
    await until(() => errors.length > 0);
    expect(errors.filter((error) => !isLostLock(error))).toEqual([]);
  });
});

test('no other error is reported as a lost lock', () => {
  expect(isLostLock(new Error('Missing command'))).toBe(false);
  expect(isLostLock(Object.assign(new Error('Job 1 is not in the delayed state. changeDelay'), { code: -3 }))).toBe(
    false,
  );
});

/** A worker with chunks in progress, until `finish` is called. `begun` and `outcomes` name each by its backfill and its series. */
async function heldWorker() {
  const { engine } = await onPostgres();
  const sql = createClient({ url: engine.url, max: 1 });
  onTestFinished(() => sql.end());
  const queue = await openChunkQueue({ engine, name: NAME, onError: () => undefined });
  onTestFinished(() => queue.close());
  const begun: string[] = [];
  const outcomes: string[] = [];
  let finish: () => void;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const worker = queue.work({
    concurrency: 3,
    handle: async (job) => {
      begun.push(nameOf(job));
      await finished;
      return { kind: 'stored', requests: 1, stored: 0, revised: 0, quarantined: 0 };
    },
    snoozeMs: () => 0,
    events: { onOutcome: (job) => outcomes.push(nameOf(job)), onFailure: () => undefined },
  });
  onTestFinished(() => worker.close(true));
  await queue.add([CHUNK]);
  await until(() => begun.length === 1);
  return { sql, queue, begun, outcomes, finish: finish! };
}

const SECOND: ChunkJob = { ...CHUNK, seriesId: 2 };
const nameOf = (job: ChunkJob) => (job.kind === 'backfill' ? `${job.backfillId} ${job.seriesId}` : job.kind);

test('a chunk whose lock expired, and that its own worker takes again, is handled once', async () => {
  const { sql, queue, begun, outcomes, finish } = await heldWorker();
  await sql`update bullmq.job set state = 'waiting', lock_token = null`;
  // The worker takes one job after the other: when it has this one, it has taken the first one again.
  await queue.add([SECOND]);
  await until(() => begun.includes(nameOf(SECOND)));
  const [first] = await sql<{ n: number }[]>`select max(attempts_started) as n from bullmq.job`;
  expect(first).toEqual({ n: 2 });
  finish();
  await until(async () => (await queue.size()) === 0);
  expect({ begun, outcomes }).toEqual({ begun: ['1 1', '1 2'], outcomes: ['1 1', '1 2'] });
});

test('the same chunk of another backfill, whose job came after the first one was lost, is handled after the first', async () => {
  const { sql, queue, begun, outcomes, finish } = await heldWorker();
  await sql`delete from bullmq.job`;
  await queue.add([{ ...CHUNK, backfillId: 2 }]);
  await queue.add([SECOND]);
  await until(() => begun.includes(nameOf(SECOND)));
  const [taken] = await sql<{ n: number }[]>`select sum(attempts_started)::int as n from bullmq.job`;
  expect({ taken, begun }).toEqual({ taken: { n: 2 }, begun: ['1 1', '1 2'] });
  finish();
  await until(async () => (await queue.size()) === 0);
  expect(begun).toEqual(['1 1', '1 2', '2 1']);
  expect(outcomes.toSorted()).toEqual(['1 1', '1 2', '2 1']);
});
