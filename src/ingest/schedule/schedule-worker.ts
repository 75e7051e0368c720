/** Runs the ticks of the queue: it claims each tick in the database, renews the lease while the run lasts, and records how it ended. */
import { setMaxListeners } from 'node:events';
import type { Clock } from '../../clock.ts';
import { WHOLE_BOUND } from '../../core/backoff.ts';
import { maskPasswords } from '../../log.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { holdingLease } from '../../store/work/lease.ts';
import { claimRun, endRun, type RunEnd, renewRun, type ScheduleRun } from '../../store/work/schedule-run.ts';
import { ConfigurationError, UpstreamError } from '../outcome.ts';
import type { Tick, TickQueue } from '../queue/tick-queue.ts';
import { createOutageRetry } from '../request/outage-retry.ts';
import type { RunOutcome } from '../schedule-run.ts';
import { type Runs, SCHEDULES } from './schedules.ts';
import { attemptBackoff, MOST_ATTEMPTS, mayRunAgain, standingOf } from './tick.ts';

type ScheduleWorkerDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly queue: Pick<TickQueue, 'work'>;
  readonly runs: Runs;
  /** `host:pid`. */
  readonly owner: string;
  /** For logs and metrics. Called after the end is recorded. */
  readonly onEnd?: (run: ScheduleRun, end: RunEnd, tookMs: number) => void;
};

export type ScheduleWorker = {
  /** Tells the runs in progress to end, and waits for them; with `force` it does not wait. */
  close(force?: boolean): Promise<void>;
};

/** A held run waits at least this long. */
const SHORTEST_HOLD_MS = 10_000;

export function createScheduleWorker(deps: ScheduleWorkerDeps): ScheduleWorker {
  const { sql, clock, queue, owner } = deps;
  const stop = new AbortController();
  // Each run in progress listens while the database is unavailable, and there may be as many runs as schedules: these many listeners are no leak.
  setMaxListeners(0, stop.signal);
  /** After a forced close nothing waits for the runs in progress: their leases are not renewed. */
  const abandon = new AbortController();
  /** The answers are already stored. The end of the run must be recorded as well, or the requests would be sent again. */
  const retry = createOutageRetry({ clock, signal: stop.signal });
  // All schedules may run at the same time, because they share one quota anyway.
  const worker = queue.work({ concurrency: SCHEDULES.length, handle });

  async function handle({ schedule, tick, anew = false, first = false }: Tick): Promise<void> {
    const entry = SCHEDULES.find(({ name }) => name === schedule);
    // Another version of Chandler has a schedule that this version does not know. The tick is offered again, and a worker of that version may get it.
    if (entry === undefined || stop.signal.aborted) return;
    const claim = { schedule, tick, owner, now: clock.now() };
    const run = await claimRun(sql, claim, (latest) => {
      const standing = standingOf(latest, tick, claim.now);
      return standing === 'due' || (standing === 'paused' && anew) || (first && mayRunAgain(latest, tick));
    });
    if (run === null) return;
    const renew = () => renewRun(sql, run.id, clock.now());
    const end = await holdingLease({ clock, renew, signal: abandon.signal }, () =>
      entry.run(deps.runs, { tick, attempt: run.attempts, signal: stop.signal, retry }).then(ended),
    ).catch((error: unknown) => failed(run, error));
    await retry(() => endRun(sql, run, end, clock.now()));
    deps.onEnd?.(run, end, clock.now() - claim.now);
  }

  function ended(outcome: RunOutcome): RunEnd {
    if (outcome.kind === 'done') return { state: 'done' };
    const until = Math.max(outcome.until, clock.now() + SHORTEST_HOLD_MS);
    return { state: 'held', message: outcome.reason, until };
  }

  function failed(run: ScheduleRun, error: unknown): RunEnd {
    // The process stops, and the run did not fail: it is due again at once.
    if (stop.signal.aborted) return { state: 'held', message: 'its process was stopped', until: clock.now() };
    const message = maskPasswords(error instanceof Error ? error.message : String(error));
    const cause = error instanceof UpstreamError ? maskPasswords(error.problem) : message;
    if (error instanceof ConfigurationError || run.attempts >= MOST_ATTEMPTS)
      return { state: 'failed', message, cause };
    return { state: 'waiting', message, cause, until: clock.now() + attemptBackoff(run.attempts - 1, WHOLE_BOUND) };
  }

  return {
    close: async (force) => {
      stop.abort();
      if (force) abandon.abort();
      await worker.close(force);
    },
  };
}
