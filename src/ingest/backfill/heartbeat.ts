/** The lease of a command's run. When it has expired, other processes consider the run dead, and drop its chunks. */
import type { Clock } from '../../clock.ts';
import { renewRun, reviveBackfill } from '../../store/backfill/backfill.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { keepRenewing } from '../../store/work/lease.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import type { RunState } from './run-chunks.ts';

type CommandRun = { readonly sql: Sql; readonly clock: Clock; readonly id: number; readonly signal: AbortSignal };

/** Renews the lease of a command's run, and records the run's state, until the signal is aborted. */
export function renewRunLease(
  { sql, clock, id, signal }: CommandRun,
  readState: () => Promise<RunState>,
): Promise<void> {
  return keepRenewing(clock, signal, async () => {
    const state = await readState();
    // Another process considered this run dead and ended it. Without a revival its chunks would end without a request.
    if (!(await renewRun(sql, id, clock.now(), state)) && !signal.aborted) await reviveBackfill(sql, id, clock.now());
  });
}

/**
 * A run may be considered dead by mistake (the machine slept, or the clocks of two hosts differ). Its chunks then end without a request. So when a
 * chunk of this run ends like that, this function revives the run, and tries the chunk again.
 */
export function withRevival(ingestChunk: IngestChunk, { sql, clock, id, signal }: CommandRun): IngestChunk {
  return async (job, options) => {
    const outcome = await ingestChunk(job, options);
    const endedWithoutRequest = outcome.kind === 'stored' && outcome.requests === 0;
    if (!endedWithoutRequest || job.kind !== 'backfill' || job.backfillId !== id || signal.aborted) return outcome;
    return (await reviveBackfill(sql, id, clock.now())) ? ingestChunk(job, options) : outcome;
  };
}
