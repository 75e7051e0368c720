/**
 * Two statements of the engine on Postgres lock many jobs each, in any order: the one that looks for stalled jobs, and the one that renews
 * the locks of jobs in progress. So they can deadlock. Postgres ends one of them, and the queue loses nothing by that.
 */
import { expect, onTestFinished, test } from 'vitest';
import type { ChunkJob } from '../../../src/ingest/queue/chunk-job.ts';
import { createClient } from '../../../src/store/connection/connect.ts';
import { createTestDatabase } from '../../support/database.ts';
import { openChunkQueue } from '../../support/queues.ts';
import { until } from '../../support/until.ts';

const chunk = (seriesId: number): ChunkJob => ({
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

const CHUNKS = [1, 2, 3, 4, 5, 6].map(chunk);
const NOTHING = { kind: 'stored', requests: 0, stored: 0, revised: 0, quarantined: 0 } as const;

test('Postgres ends a deadlock of the engine, and each chunk is handled once', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const errors: unknown[] = [];
  const queue = await openChunkQueue({
    engine: { kind: 'postgres', url: database.url },
    name: 'chunks',
    lockMs: 3_000,
    onError: (error) => errors.push((error as { code?: string }).code),
  });
  onTestFinished(() => queue.close());
  let finish: () => void;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const ended: number[] = [];
  await queue.add(CHUNKS);
  const worker = queue.work({
    concurrency: CHUNKS.length,
    handle: () => finished.then(() => NOTHING),
    snoozeMs: () => 0,
    events: {
      onOutcome: ({ seriesId }) => ended.push(seriesId),
      onFailure: (_job, error) => errors.push(error),
    },
  });
  onTestFinished(() => worker.close());
  await until(async () => (await queue.begunIds()).size === CHUNKS.length);

  // The other side of the deadlock: it holds the jobs that the engine's statement reaches last, and then wants those that it reached first.
  const other = createClient({ url: database.url, max: 1 });
  onTestFinished(() => other.end());
  await other.begin(async (tx) => {
    // Postgres ends the statement that notices the deadlock; this one would notice it later.
    await tx`set local deadlock_timeout = '1min'`;
    await tx`set local statement_timeout = '20s'`;
    // The engine's statement looks for a deadlock only once, a second after it began to wait. So the server itself takes the second step.
    await tx.unsafe(`do $$
      begin
        perform from bullmq.job where ctid = (select max(ctid) from bullmq.job) for update;
        while not exists (select from pg_locks where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))) loop
          perform pg_sleep(0.005);
        end loop;
        perform from bullmq.job for update;
      end $$`);
  });
  await until(() => errors.includes('40P01'));

  finish!();
  await until(async () => (await queue.size()) === 0);
  expect(ended.toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(errors.filter((code) => code !== '40P01' && code !== undefined)).toEqual([]);
});
