/** The state of the lake according to the runs of its schedule: for notices and for `chandler status`. */
import type { Instant } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { nameOfAddress } from '../../lake/destination/address.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { latestDone, latestRuns } from '../../store/work/schedule-run.ts';

const SCHEDULE = 'lake';

export type LakeRuns = {
  readonly place: string;
  /** Why the last run failed. Null when it did not fail, or when there was none. */
  readonly failure: string | null;
  /** When the last successful run began. Null when there was none in the last month. */
  readonly doneAt: Instant | null;
  /** Whether a run is in progress. */
  readonly isRunning: boolean;
};

/** Null when there is no lake. */
export async function readLakeRuns(sql: Sql, { lake }: Pick<Config, 'lake'>): Promise<LakeRuns | null> {
  if (lake === null) return null;
  const [latest] = await latestRuns(sql, [SCHEDULE]);
  const [done] = await latestDone(sql, [SCHEDULE]);
  return {
    place: nameOfAddress(lake.address),
    failure: latest?.state === 'failed' ? (latest.message ?? 'no reason is known') : null,
    doneAt: done?.begunAt ?? null,
    isRunning: latest?.state === 'running',
  };
}
