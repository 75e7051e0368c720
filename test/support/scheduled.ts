/** Runs schedules once, as the service does when they are due, without waiting for their ticks. */
import { createCatalogueRuns } from '../../src/ingest/catalogue/catalogue-run.ts';
import { withoutRetry } from '../../src/ingest/request/outage-retry.ts';
import { type Runs, SCHEDULES, type ScheduleName } from '../../src/ingest/schedule/schedules.ts';
import { createSnapshots, snapshotRun } from '../../src/ingest/snapshot/snapshots.ts';
import type { Chandler, World } from './world.ts';

/** One run of each, in this order, as of now; a run may request everything that is due. @throws when a run does not complete */
export async function runSchedules(
  { database, clock }: Pick<World, 'database' | 'clock'>,
  { session }: Pick<Chandler, 'session'>,
  names: readonly ScheduleName[],
): Promise<void> {
  const { sql } = database;
  const snapshots = createSnapshots({ sql, sendRequest: session.sendRequest, clock, accountId: session.accountId });
  const none = async () => {
    throw new Error('this schedule is not run here');
  };
  const runs: Runs = {
    sql,
    clock,
    session,
    tickers: snapshotRun(snapshots.tickers),
    global: snapshotRun(snapshots.global),
    exchanges: snapshotRun(snapshots.exchanges),
    catalogue: createCatalogueRuns({ sql, clock, session, mostOf: () => Number.MAX_SAFE_INTEGER }),
    freshness: none,
    gaps: none,
    confirmHoles: none,
    attest: none,
    lake: none,
    retention: none,
  };
  for (const name of names) {
    const entry = SCHEDULES.find((schedule) => schedule.name === name)!;
    const signal = new AbortController().signal;
    const outcome = await entry.run(runs, { tick: clock.now(), attempt: 1, signal, retry: withoutRetry });
    if (outcome.kind !== 'done') throw new Error(`the schedule ${name} was held: ${outcome.reason}`);
  }
}
