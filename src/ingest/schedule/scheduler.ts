/**
 * The scheduler. When a schedule is due, it offers the tick to the queue. Any number of processes do this at the same time, and none leads: they
 * offer the same ticks under the same names, and the worker that claims a tick in the database runs it.
 *
 * The scheduler only offers the latest tick of a schedule. So one run catches up on all missed ticks, which were missed because no process ran or
 * because a run took longer than its interval.
 */
import type { Clock, Instant } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { CATALOGUE_KINDS, type CatalogueKind, readNeverRequested } from '../../store/catalogue/catalogue-item.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { latestRuns, type ScheduleRun } from '../../store/work/schedule-run.ts';
import type { TickQueue } from '../queue/tick-queue.ts';
import type { Schedule } from './schedule-plan.ts';
import { mayRunAgain, standingOf } from './tick.ts';

type SchedulerDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly queue: Pick<TickQueue, 'offer'>;
  readonly schedules: readonly Schedule[];
  /** Called when the database or the queue is unavailable; the scheduler looks again. */
  readonly onError: (error: Error) => void;
};

export type Scheduler = {
  start(): void;
  /** Resolves when the scheduler offers nothing any more. */
  stop(): Promise<void>;
  /** Offers the ticks that are due now. Resolves to the instant of the next look. `start` repeats this. */
  look(): Promise<Instant>;
};

/** The longest time between two looks. A look finds ticks that the queue lost, that a killed process left, or that a clock jumped over. */
const LOOK_MS = 10_000;
/** The wait after a look that failed. */
const RETRY_MS = 2_000;

export function createScheduler({ sql, clock, queue, schedules, onError }: SchedulerDeps): Scheduler {
  const active = schedules.flatMap(({ name, cadence }) => (cadence === null ? [] : [{ name, cadence }]));
  const names = active.map(({ name }) => name);
  let stop = new AbortController();
  let running: Promise<void> | null = null;
  /** True until the first look is over: a schedule that failed under another configuration may succeed under this one. */
  let anew = true;

  /** The kinds of the catalogue that were never requested, as of the last look. A kind that was requested once never returns here. */
  let untried: readonly CatalogueKind[] = CATALOGUE_KINDS.filter((kind) => active.some(({ name }) => name === kind));

  const look = async (): Promise<Instant> => {
    const now = clock.now();
    const latest = new Map((await latestRuns(sql, names)).map((run) => [run.schedule, run]));
    const neverRequested = await readNeverRequested(sql, untried);
    untried = neverRequested.map(({ kind }) => kind);
    const awaited = new Set<string>(neverRequested.flatMap(({ kind, isWanted }) => (isWanted ? [kind] : [])));
    let again = now + LOOK_MS;
    for (const { name, cadence } of active) {
      const run = latest.get(name) ?? null;
      const tick = cadence.latest(now);
      const standing = tick === null ? 'over' : standingOf(run, tick, now);
      const isDue = standing === 'due' || (standing === 'paused' && anew);
      const isFirst = !isDue && tick !== null && awaited.has(name) && mayRunAgain(run, tick);
      if (tick !== null && (isDue || isFirst)) await queue.offer({ schedule: name, tick, anew, first: isFirst });
      again = Math.min(again, cadence.next(now), standing === 'later' ? waitOf(run, again) : again);
    }
    anew = false;
    return again;
  };

  const loop = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      const begunAt = clock.now();
      // While Redis is unavailable, its client keeps the command, so a look may take as long as the outage. It must not delay the stop.
      const again = await unlessAborted(look(), signal).catch((error: unknown) => {
        if (!signal.aborted) onError(asError(error));
        return begunAt + RETRY_MS;
      });
      await clock.sleep(Math.min(again - clock.now(), LOOK_MS), signal).catch(() => undefined);
    }
  };

  return {
    look,
    start: () => {
      if (running !== null) return;
      stop = new AbortController();
      running = loop(stop.signal);
    },
    stop: async () => {
      stop.abort();
      await running;
      running = null;
    },
  };
}

function waitOf(run: ScheduleRun | null, otherwise: Instant): Instant {
  return run?.waitUntil ?? otherwise;
}
