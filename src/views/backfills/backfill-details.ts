/** One backfill in detail: the backfills before it, the state of its chunks, and its last requests. */
import type { Instant } from '../../clock.ts';
import { withIso } from '../../core/format.ts';
import { type OpenBackfill, readOpenBackfills, type StoredChunks } from '../../store/backfill/backfill-finish.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { leaseIsAlive } from '../../store/work/lease.ts';
import { DISORDER_MS, firstRequestSince } from '../dashboard/request-ids.ts';
import { MOST_SEARCHED, type RequestRow } from '../dashboard/requests.ts';
import { type BackfillRow, backfillAsJson, readBackfills, withoutPassedFinish } from './backfills.ts';

type FailedRequest = Pick<RequestRow, 'sentAt' | 'from' | 'to' | 'attempt' | 'status' | 'outcome' | 'message'> & {
  readonly coinId: string | null;
};

export type BackfillDetails = {
  readonly row: BackfillRow;
  /** Null when no process works on it. */
  readonly chunks: StoredChunks | null;
  /** Whether the process that runs it renews its lease. */
  readonly isAlive: boolean;
  /** Open backfills that go before it, and running ones with the same priority. */
  readonly before: readonly number[];
  readonly beside: readonly number[];
  /** Number of services that run backfills. */
  readonly services: number;
  readonly lastSentAt: Instant | null;
  /** Newest first. */
  readonly failures: readonly FailedRequest[];
};

const MOST_FAILURES = 10;

/** Null when there is no backfill of this number. */
export async function readBackfillDetails(sql: Sql, id: number, now: Instant): Promise<BackfillDetails | null> {
  const [found] = await readBackfills(sql, { all: true, id });
  if (found === undefined) return null;
  // `isAlive` shows whether a process works on it, so only a forecast that has passed is removed here.
  const row = withoutPassedFinish(found, now);
  const before = row.finishedAt === null ? null : await firstRequestSince(sql, row.finishedAt + DISORDER_MS);
  const [open, instances, [state], [last], failures] = await Promise.all([
    readOpenBackfills(sql, now),
    liveInstances(sql, now),
    sql<{ chunks: StoredChunks | null; isAlive: boolean }[]>`
      select chunks, state = 'running' and ${leaseIsAlive(sql, now)} as is_alive from ops.backfill where id = ${id}`,
    readLastSent(sql, id, before),
    readFailures(sql, id, before),
  ]);
  return {
    row,
    chunks: state?.chunks ?? null,
    isAlive: state?.isAlive ?? false,
    ...neighboursOf(row, open),
    services: instances.filter(({ roles }) => roles.includes('worker')).length,
    lastSentAt: last?.at ?? null,
    failures,
  };
}

function neighboursOf(row: BackfillRow, open: readonly OpenBackfill[]) {
  const ids = (which: (one: OpenBackfill) => boolean) =>
    open.filter((one) => one.id !== row.id && which(one)).map((one) => one.id);
  const isQueued = row.state === 'queued';
  return {
    before: ids(
      ({ priority, id, isRunning }) =>
        priority > row.priority || (isQueued && priority === row.priority && !isRunning && id < row.id),
    ),
    beside: ids(({ priority, isRunning }) => priority === row.priority && isRunning),
  };
}

function readLastSent(sql: Sql, id: number, before: number | null): Promise<{ at: Instant }[]> {
  return sql<{ at: Instant }[]>`
    select sent_at as at from (${recent(sql, before)}) f where backfill_id = ${id} limit 1`;
}

function readFailures(sql: Sql, id: number, before: number | null): Promise<FailedRequest[]> {
  return sql<FailedRequest[]>`
    select f.sent_at, s.coin_id, lower(f.span) as from, upper(f.span) as to, f.attempt, f.status, f.outcome, f.message
    from (${recent(sql, before)}) f left join market.series s on s.id = f.series_id
    where f.backfill_id = ${id} and f.outcome <> 'stored' order by f.id desc limit ${MOST_FAILURES}`;
}

/**
 * The newest requests of all backfills, sent before this one ended: `before` is the number of the first request after its end. The index of
 * backfills has no order, and one backfill may have a million requests.
 */
function recent(sql: Sql, before: number | null) {
  return sql`
    select * from ops.fetch ${before === null ? sql`` : sql`where id < ${before}`} order by id desc limit ${MOST_SEARCHED}`;
}

/** The JSON of the command line, with instants as ISO 8601. */
export function detailsAsJson(details: BackfillDetails, reasons: readonly string[]): Readonly<Record<string, unknown>> {
  const { row, failures, ...rest } = details;
  return {
    ...backfillAsJson(row),
    ...withIso(rest, 'lastSentAt'),
    reasons,
    failures: failures.map((failure) => withIso(failure, 'sentAt', 'from', 'to')),
  };
}
