/** The lease of a command's run: when it has expired, other processes take the run for dead, and drop its chunks. */
import type { Clock } from '../../clock.ts';
import { beat, reviveBackfill } from '../../store/backfill/backfill.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { keepRenewing } from '../../store/work/lease.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import type { RunState } from './run-chunks.ts';

type CommandRun = { readonly sql: Sql; readonly clock: Clock; readonly id: number; readonly signal: AbortSignal };

/** Renews the lease of a command's run, and records how far it is, until the signal is aborted. */
export function keepBeating({ sql, clock, id, signal }: CommandRun, readState: () => Promise<RunState>): Promise<void> {
  return keepRenewing(clock, signal, async () => {
    const state = await readState();
    // Another process took this run for dead and ended it: without a revival its chunks would end without a request.
    if (!(await beat(sql, id, clock.now(), state)) && !signal.aborted) await reviveBackfill(sql, id, clock.now());
  });
}

/**
 * If a run was taken for dead (the machine slept, the clocks of two hosts differ), its chunks end without a request. So when one of our own
 * chunks ends like that, the run is revived, and the chunk is tried again.
 */
export function withRevival(ingestChunk: IngestChunk, { sql, clock, id, signal }: CommandRun): IngestChunk {
  return async (job, options) => {
    const outcome = await ingestChunk(job, options);
    const endedWithoutRequest = outcome.kind === 'stored' && outcome.requests === 0;
    if (!endedWithoutRequest || job.kind !== 'backfill' || job.backfillId !== id || signal.aborted) return outcome;
    return (await reviveBackfill(sql, id, clock.now())) ? ingestChunk(job, options) : outcome;
  };
}
