/** A run's sign of life: without one for a while, other processes take it for dead and drop its chunks. */
import type { Clock } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { beat, reviveBackfill } from '../../store/work/backfill.ts';
import { keepRenewing } from '../../store/work/lease.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';

/** Renews the lease of a command's run until the signal is aborted. */
export function keepBeating(sql: Sql, clock: Clock, id: number, signal: AbortSignal): Promise<void> {
  return keepRenewing(clock, signal, async () => {
    // Another process took this run for dead and ended it: without a revival its chunks would end without a request.
    if (!(await beat(sql, id, clock.now())) && !signal.aborted) await reviveBackfill(sql, id, clock.now());
  });
}

/**
 * The chunks of a run that was taken for dead (a machine slept, the clocks of two hosts differ) end unasked. So one of our own
 * that does has the run say first that it lives, and is looked at again.
 */
export function withRevival(
  ingestChunk: IngestChunk,
  {
    sql,
    clock,
    id,
    signal,
  }: { readonly sql: Sql; readonly clock: Clock; readonly id: number; readonly signal: AbortSignal },
): IngestChunk {
  return async (job, options) => {
    const outcome = await ingestChunk(job, options);
    const isUnasked = outcome.kind === 'stored' && outcome.requests === 0;
    if (!isUnasked || job.kind !== 'backfill' || job.backfillId !== id || signal.aborted) return outcome;
    return (await reviveBackfill(sql, id, clock.now())) ? ingestChunk(job, options) : outcome;
  };
}
