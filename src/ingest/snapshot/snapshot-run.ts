/** Makes a snapshot the run of a schedule. */
import type { Run } from '../schedule-run.ts';
import type { Snapshot } from './snapshots.ts';

/** A snapshot taken since the tick is recent enough. A refused or implausible one waits like one that the quota holds. */
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
