/** The state of the lake, as text and as JSON. */
import type { LakeRuns } from '../../background/lake/lake-state.ts';
import type { Instant } from '../../clock.ts';
import { formatRelative, toIso } from '../../core/format.ts';
import type { Output } from '../shell/io.ts';

export function printLake(out: Output, lake: LakeRuns | null, now: Instant): void {
  if (lake === null) return;
  const { place, failure, doneAt, isRunning } = lake;
  const state = doneAt === null ? 'not written yet' : `as of ${formatRelative(doneAt, now)}`;
  const run = isRunning ? '; it is being written' : failure === null ? '' : `; the last run failed: ${failure}`;
  out.write(`\nLake ${place}: ${state}${run}.\n`);
}

export function lakeAsJson(lake: LakeRuns | null) {
  return lake === null ? null : { ...lake, doneAt: toIso(lake.doneAt) };
}
