/** The runs of the schedules: one row per schedule and tick, shared by all processes. The latest row is the state of the schedule. */
import { and, eq, lt, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { scheduleRun } from '../schema/service.ts';
import { storableText } from '../values/storable-text.ts';
import { leaseEnd } from './lease.ts';

export type ScheduleRun = Readonly<typeof scheduleRun.$inferSelect>;

const LONGEST_MESSAGE = 500;
/** 31 days: long enough to show the runs of a schedule in a whole quota month. */
const KEPT_MS = 31 * 86_400_000;

/** The latest run of each schedule that ever ran. */
export async function latestRuns(sql: SqlOrTransaction, schedules: readonly string[]): Promise<ScheduleRun[]> {
  return latest(sql, schedules, sql``);
}

/** The latest failed run of each schedule. */
export async function latestFailures(sql: SqlOrTransaction, schedules: readonly string[]): Promise<ScheduleRun[]> {
  return latest(sql, schedules, sql`and state = 'failed'`);
}

/** The latest successful run of each schedule. */
export async function latestDone(sql: SqlOrTransaction, schedules: readonly string[]): Promise<ScheduleRun[]> {
  return latest(sql, schedules, sql`and state = 'done'`);
}

/** Reads schedule by schedule, so that each is one lookup in an index. */
function latest(sql: SqlOrTransaction, schedules: readonly string[], which: ReturnType<SqlOrTransaction>) {
  return sql<ScheduleRun[]>`
    select r.* from unnest(${schedules as string[]}::text[]) s(name)
    cross join lateral (
      select * from ops.schedule_run where schedule = s.name ${which} order by id desc limit 1
    ) r`;
}

/**
 * Begins the run of a tick, if `mayBegin` allows it after the latest run: in one transaction, one process at a time. It also ends a run of an
 * earlier tick that has not ended. Null when the run may not begin.
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
    await takeLock(tx, `run of ${schedule}`);
    const latest = (await latestRuns(tx, [schedule]))[0] ?? null;
    if (!mayBegin(latest)) return null;
    const isSame = latest?.tick === tick;
    if (latest !== null && !isSame) {
      await tx`
        update ops.schedule_run
        set state = case state when 'running' then 'failed' else 'superseded' end, ended_at = ${now},
          message = case state when 'running' then 'its process ended in the middle of it' else message end
        where id = ${latest.id} and state in ('running', 'waiting', 'held')`;
    }
    // If the clock was set back, this tick may have a run already.
    const runs = tables(tx);
    await runs.delete(scheduleRun).where(matches(scheduleRun, { schedule, tick }));
    const failures = (latest?.failures ?? 0) + (latest?.state === 'running' && !isSame ? 1 : 0);
    const attempts = isSame ? latest.attempts + 1 : 1;
    const lease = { owner, begunAt: now, leaseUntil: leaseEnd(now) };
    const [row] = await runs
      .insert(scheduleRun)
      .values({ schedule, tick, state: 'running', attempts, failures, ...lease })
      .returning();
    return row!;
  })) as ScheduleRun | null;
}

/** Renews the lease of a run. */
export async function renewRun(sql: SqlOrTransaction, id: number, now: Instant): Promise<void> {
  await sql`update ops.schedule_run set lease_until = ${leaseEnd(now)} where id = ${id} and state = 'running'`;
}

export type RunEnd =
  | { readonly state: 'done' }
  /** `cause` is the message without the details of this schedule, for the log. */
  | { readonly state: 'failed'; readonly message: string; readonly cause?: string }
  | { readonly state: 'waiting'; readonly message: string; readonly cause?: string; readonly until: Instant }
  /** A held run does not count as an attempt. */
  | { readonly state: 'held'; readonly message: string; readonly until: Instant };

/** Records how a run ended, unless a later tick has ended it meanwhile. Deletes the schedule's old runs. */
export async function endRun(sql: SqlOrTransaction, run: ScheduleRun, end: RunEnd, now: Instant): Promise<void> {
  const failures = { done: 0, failed: raw`failures + 1`, waiting: undefined, held: undefined };
  await updateRows(
    sql,
    scheduleRun,
    { id: run.id, state: 'running' },
    {
      state: end.state,
      endedAt: now,
      leaseUntil: null,
      waitUntil: 'until' in end ? end.until : null,
      message: 'message' in end ? storableText(end.message).slice(0, LONGEST_MESSAGE) : null,
      attempts: end.state === 'held' ? raw`attempts - 1` : undefined,
      failures: failures[end.state],
    },
  );
  await tables(sql)
    .delete(scheduleRun)
    .where(and(eq(scheduleRun.schedule, run.schedule), lt(scheduleRun.tick, run.tick - KEPT_MS)));
}
