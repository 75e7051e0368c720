/** The first lines of `chandler status`: what happens now, why nothing happens, what comes next, and which problem came first. */
import type { App } from '../../app.ts';
import { explainAccountWait, SERVICE_SILENT } from '../../background/operator/wait-explanation.ts';
import type { Budget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatRelative, withIso } from '../../core/format.ts';
import type { StandingRefusal } from '../../ingest/request/account.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { type BackfillRow, readBackfills } from '../../views/backfills/backfills.ts';
import { readHeldLock } from '../../views/operations/blocking-sessions.ts';
import { type Problem, readProblems } from '../../views/operations/problems.ts';
import type { Output } from '../shell/io.ts';
import { number, printable, printTable, text, whole } from './table.ts';

type Now = {
  /** Owners of the services that run. */
  readonly services: readonly string[];
  /** What holds all requests, or those of backfills. */
  readonly waits: readonly string[];
  readonly backfills: readonly BackfillRow[];
  /** Empty while the upstream refuses the key, because no service runs the schedules then. */
  readonly next: readonly NextRun[];
  readonly isKeyRefused: boolean;
  /** Whether another session holds a lock that Chandler needs. `problems` says which. */
  readonly isLocked: boolean;
  /** The oldest problem first. */
  readonly problems: readonly Problem[];
};

type NextRun = { readonly schedule: string; readonly at: Instant };

const MOST_NEXT = 3;

/** `refusal`: the refusal of the key, in the text of `doctor` and `/ready`. */
export async function readNow(
  { database: { sql } }: App,
  budget: Budget,
  { now, refusal }: { readonly now: Instant; readonly refusal: StandingRefusal | null },
): Promise<Now> {
  // First, because the other reads may wait for the lock.
  const lock = await readHeldLock(sql, now);
  const [instances, state, backfills, problems] = await Promise.all([
    liveInstances(sql, now),
    budget.quota.state(),
    readBackfills(sql, { all: false }),
    readProblems(sql, { now, lock }),
  ]);
  return {
    services: instances.map(({ owner }) => owner),
    // `status` has already printed that the key is refused.
    waits: explainAccountWait({ state, budget, refusal: null }),
    backfills,
    next: refusal === null ? nextRuns(budget, now) : [],
    isKeyRefused: refusal !== null,
    isLocked: lock !== null,
    problems: withRefusal(problems, refusal),
  };
}

function withRefusal(problems: readonly Problem[], refusal: StandingRefusal | null): readonly Problem[] {
  if (refusal === null) return problems;
  const { since, times, message } = refusal;
  return [...problems, { since, what: 'key', times, message }].sort((a, b) => a.since - b.since);
}

/** The soonest run first. */
export function nextRuns({ schedules }: Pick<Budget, 'schedules'>, now: Instant): readonly NextRun[] {
  return schedules
    .flatMap(({ name, cadence }) => (cadence === null ? [] : [{ schedule: name, at: cadence.next(now) }]))
    .sort((a, b) => a.at - b.at);
}

/** `Next: tickers in 3m, global in 12m; then backfill 4.` It ends without a line feed. */
export function describeNext(
  { next, backfills, isLocked }: Pick<Now, 'next' | 'backfills' | 'isLocked'>,
  now: Instant,
): string {
  const runs = next.slice(0, MOST_NEXT).map(({ schedule, at }) => `${schedule} ${formatRelative(at, now)}`);
  const running = backfills.filter(({ state }) => state === 'running').map(({ id }) => id);
  const first = backfills.find(({ state, waitUntil }) => state === 'queued' && (waitUntil ?? 0) <= now);
  const parts = [
    ...(runs.length === 0 ? [] : [runs.join(', ')]),
    ...(running.length === 0
      ? []
      : [`backfill ${running.slice(0, MOST_NEXT).join(', ')} continues${isLocked ? ', or waits for the lock' : ''}`]),
    ...(first === undefined ? [] : [`the next backfill to begin is ${first.id}`]),
  ];
  return `Next: ${parts.length === 0 ? 'nothing' : parts.join('; ')}.`;
}

export function printNow(out: Output, present: Now, now: Instant): void {
  const { services, waits, backfills, isKeyRefused, isLocked, problems } = present;
  out.write(`${services.length === 0 && isLocked ? SERVICE_SILENT : describeServices(services)}\n`);
  for (const wait of waits) out.write(`${printable(wait)}\n`);
  if (backfills.length > 0) out.write(`${describeBackfills(backfills)}\n`);
  if (isKeyRefused) out.write('Next: nothing, until the upstream accepts the key.\n');
  else if (services.length > 0) out.write(`${describeNext(present, now)}\n`);
  if (problems.length > 0) {
    out.write('\nProblems, the oldest first\n');
    printTable(out, problems, [
      whole('since', ({ since }) => formatRelative(since, now)),
      whole('what', ({ what }) => what),
      number('times', ({ times }) => times),
      text('message', ({ message }) => message),
    ]);
  }
  out.write('\n');
}

function describeServices(services: readonly string[]): string {
  if (services.length === 0) return 'No service is running, so no schedule runs. Start one with: chandler service';
  return `${formatCounted(services.length, 'service')} ${services.length === 1 ? 'runs' : 'run'}: ${services.join(', ')}.`;
}

function describeBackfills(backfills: readonly BackfillRow[]): string {
  const counts = (['running', 'queued', 'paused'] as const).flatMap((state) => {
    const n = backfills.filter((one) => one.state === state).length;
    return n === 0 ? [] : [`${n} ${state}`];
  });
  const retrying = backfills.reduce((sum, one) => sum + one.retrying, 0);
  const retries =
    retrying === 0 ? '' : `; ${formatCounted(retrying, 'chunk')} ${retrying === 1 ? 'waits' : 'wait'} for a retry`;
  return `Backfills: ${counts.join(', ')}${retries} (chandler backfills list, show <id>).`;
}

export function nowAsJson({ services, waits, next, problems }: Now) {
  return {
    services,
    waits,
    next: next.map((run) => withIso(run, 'at')),
    problems: problems.map((problem) => withIso(problem, 'since')),
  };
}
