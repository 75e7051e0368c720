/** A run's sign of life: without one for a while, other processes take it for dead and drop its chunks. */
import type { Clock } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { beat, reviveBackfill } from '../../store/work/backfill.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';

const HEARTBEAT_MS = 10_000;

/** Until the signal is aborted. */
export async function keepBeating(sql: Sql, clock: Clock, id: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // A heartbeat that fails is told by the next statement that matters; it must not end the run by itself.
    // One that finds the run ended was taken for dead by another process: its chunks would be dropped unasked.
    await beat(sql, id, clock.now())
      .then((running) => running || signal.aborted || reviveBackfill(sql, id, clock.now()))
      .catch(() => undefined);
    await clock.sleep(HEARTBEAT_MS, signal).catch(() => undefined);
  }
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
