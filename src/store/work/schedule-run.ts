/** The runs of the schedules: a row per schedule and tick, whoever claims it; the latest row says where a schedule stands. */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { leaseEnd } from './lease.ts';

export type RunState = 'running' | 'waiting' | 'held' | 'done' | 'failed' | 'overtaken';

export type ScheduleRun = {
  readonly id: number;
  readonly schedule: string;
  readonly tick: Instant;
  readonly state: RunState;
  /** Times it was begun and not held. */
  readonly attempts: number;
  /** Runs that failed, one after the other, up to here. */
  readonly failures: number;
  readonly owner: string;
  readonly begunAt: Instant;
  readonly endedAt: Instant | null;
  readonly leaseUntil: Instant | null;
  readonly waitUntil: Instant | null;
  readonly message: string | null;
};

/** First half of the key of the advisory lock under which a schedule's runs are claimed; the second is its name. */
const LOCK = 4_242_011;
const LONGEST_MESSAGE = 500;
/** Enough to see what a schedule did through a month's budget. */
const KEPT_DAYS = 31;

/** The latest of each schedule that ever ran. */
export async function latestRuns(sql: SqlOrTransaction, schedules: readonly string[]): Promise<ScheduleRun[]> {
  return sql<ScheduleRun[]>`
    select r.* from unnest(${schedules as string[]}::text[]) s(name)
    cross join lateral (
      select ${columns(sql)} from ops.schedule_run where schedule = s.name order by id desc limit 1
    ) r`;
}

/** The latest failed one of each schedule. */
export async function latestFailures(sql: SqlOrTransaction, schedules: readonly string[]): Promise<ScheduleRun[]> {
  return sql<ScheduleRun[]>`
    select r.* from unnest(${schedules as string[]}::text[]) s(name)
    cross join lateral (
      select ${columns(sql)} from ops.schedule_run where schedule = s.name and state = 'failed' order by id desc limit 1
    ) r`;
}

/**
 * Begins the run of a tick, if `mayBegin` says so of the latest run: in one transaction, one process at a time. A run of an
 * earlier tick that did not end is over then. Null when it may not begin.
 */
export async function claimRun(
  sql: Sql,
  claim: {
    readonly schedule: string;
    readonly tick: Instant;
    readonly owner: string;
    readonly now: Instant;
  },
  mayBegin: (latest: ScheduleRun | null) => boolean,
): Promise<ScheduleRun | null> {
  const { schedule, tick, owner, now } = claim;
  return (await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK}, hashtext(${schedule}))`;
    const latest = (await latestRuns(tx, [schedule]))[0] ?? null;
    if (!mayBegin(latest)) return null;
    const isSame = latest?.tick === tick;
    if (latest !== null && !isSame) {
      await tx`
        update ops.schedule_run
        set state = case state when 'running' then 'failed' else 'overtaken' end, ended_at = ${now},
          message = case state when 'running' then 'its process ended in the middle of it' else message end
        where id = ${latest.id} and state in ('running', 'waiting', 'held')`;
    }
    // A tick that is lived through a second time, because the clock was set back, has a row of the first time.
    await tx`delete from ops.schedule_run where schedule = ${schedule} and tick = ${tick}`;
    const failures = (latest?.failures ?? 0) + (latest?.state === 'running' && !isSame ? 1 : 0);
    const [row] = await tx<ScheduleRun[]>`
      insert into ops.schedule_run (schedule, tick, state, attempts, failures, owner, begun_at, lease_until)
      values (${schedule}, ${tick}, 'running', ${isSame ? latest.attempts + 1 : 1}, ${failures}, ${owner},
        ${now}, ${leaseEnd(now)})
      returning ${columns(tx)}`;
    return row!;
  })) as ScheduleRun | null;
}

/** Renews the lease of a run. */
export async function renewRun(sql: SqlOrTransaction, id: number, now: Instant): Promise<void> {
  await sql`update ops.schedule_run set lease_until = ${leaseEnd(now)} where id = ${id} and state = 'running'`;
}

export type RunEnd =
  | { readonly state: 'done' }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'waiting'; readonly message: string; readonly until: Instant }
  /** No attempt is burned. */
  | { readonly state: 'held'; readonly message: string; readonly until: Instant };

/** Writes down how a run ended; one that was overtaken meanwhile stays so. Runs of long ago are forgotten. */
export async function endRun(sql: SqlOrTransaction, run: ScheduleRun, end: RunEnd, now: Instant): Promise<void> {
  const until = 'until' in end ? end.until : null;
  await sql`
    update ops.schedule_run set state = ${end.state}, ended_at = ${now}, lease_until = null,
      wait_until = ${until}, message = ${'message' in end ? end.message.slice(0, LONGEST_MESSAGE) : null},
      attempts = attempts - ${end.state === 'held' ? 1 : 0},
      failures = case ${end.state} when 'done' then 0 when 'failed' then failures + 1 else failures end
    where id = ${run.id} and state = 'running'`;
  await sql`
    delete from ops.schedule_run
    where schedule = ${run.schedule} and tick < ${run.tick}::timestamptz - make_interval(days => ${KEPT_DAYS})`;
}

function columns(sql: SqlOrTransaction) {
  return sql`
    id, schedule, tick, state, attempts, failures, owner, begun_at, ended_at, lease_until, wait_until, message`;
}
