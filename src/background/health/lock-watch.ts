/** Looks for other programs' sessions that hold a lock which Chandler needs, and reports them as an incident. The process is not ready meanwhile. */
import type { Clock } from '../../clock.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import type { Log } from '../../log.ts';
import { createClient, type Database } from '../../store/connection/connect.ts';
import { describeBlocking, readBlockingSessions } from '../../views/operations/blocking-sessions.ts';
import { type Incidents, LOCK } from './service-status.ts';

type LockWatch = {
  readonly incidents: Incidents;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
};

const LOOK_MS = 5_000;

/** Runs until the signal is aborted. Never rejects: other parts report a database that is unavailable. */
export async function watchLocks(
  { url, watchdog }: Pick<Database, 'url' | 'watchdog'>,
  { incidents, clock, log, signal }: LockWatch,
): Promise<void> {
  // A separate connection, because all others may be waiting for the lock.
  const sql = createClient({ url, max: 1, watchdog });
  let wasBlocked = false;
  while (!signal.aborted) {
    try {
      const blocking = await unlessAborted(readBlockingSessions(sql), signal);
      if (blocking.length > 0) incidents.report(LOCK, new Error(describeBlocking(blocking)));
      // Chandler repeats a statement that gave up after `lock_timeout`. For some seconds, its new wait is too short to be listed.
      else if (!wasBlocked) incidents.resolve(LOCK);
      wasBlocked = blocking.length > 0;
    } catch (error) {
      if (!signal.aborted) log.debug({ err: error }, 'could not read whether other sessions hold a lock');
    }
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
  await sql.end({ timeout: 0 });
}
