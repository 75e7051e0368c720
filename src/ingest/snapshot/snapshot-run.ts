/** A snapshot as the run of a schedule. */
import type { Run } from '../schedule-run.ts';
import type { Snapshot } from './snapshots.ts';

/** What was read since the tick need not be read again; what upstream refuses, or is doubted, waits like what the quota holds. */
export function snapshotRun(snapshot: Snapshot): Run {
  return async ({ tick, attempt, signal, retry }) => {
    const outcome = await snapshot({ since: tick, attempt, signal, retry });
    switch (outcome.kind) {
      case 'stored':
        return { kind: 'done' };
      case 'snoozed':
      case 'deferred':
        return { kind: 'held', until: outcome.until, reason: outcome.reason };
      case 'refused':
        return { kind: 'held', until: outcome.until, reason: outcome.message };
    }
  };
}
