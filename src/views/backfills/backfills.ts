/** Backfills of the service and of commands: the progress of each, and the reason why it waits. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { formatCount, formatCounted, formatSeries, withIso } from '../../core/format.ts';
import type { Interval } from '../../core/interval.ts';
import type { BackfillState } from '../../store/backfill/backfill.ts';
import { MOST_DONE } from '../../store/backfill/backfill-finish.ts';
import { ANOTHER_BACKFILL } from '../../store/backfill/slot-owner.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { isLeaseAlive, leaseEnd } from '../../store/work/lease.ts';

export type BackfillRow = {
  readonly id: number;
  readonly state: BackfillState;
  /** True: the service runs it. False: a command does. */
  readonly isDetached: boolean;
  readonly priority: number;
  readonly interval: Interval;
  readonly quote: Quote;
  /** Null for a backfill of a command that an earlier version recorded. */
  readonly coins: number | null;
  readonly from: Instant | null;
  readonly to: Instant | null;
  readonly requestedAt: Instant;
  readonly startedAt: Instant | null;
  readonly finishedAt: Instant | null;
  readonly heartbeatAt: Instant | null;
  readonly owner: string | null;
  /** `user@host` of a command, or the audit of gaps; null when it was not recorded. */
  readonly requestedBy: string | null;
  readonly plannedRequests: number;
  readonly spent: number;
  readonly stored: number;
  readonly leftRequests: number | null;
  /** The finished part, from 0 to 1, which never falls; null when unknown. */
  readonly progress: number | null;
  readonly waitUntil: Instant | null;
  /** The forecast of its end, including holds of the whole account. Null: finished or unknown. */
  readonly finishAt: Instant | null;
  /** The range of `finishAt`. */
  readonly finishFrom: Instant | null;
  readonly finishTo: Instant | null;
  /** Why the forecast last left its range, and when. */
  readonly finishChange: string | null;
  readonly finishChangedAt: Instant | null;
  /** Number of chunks that wait for a retry; when the first of them is retried, and when the last known one is. */
  readonly retrying: number;
  readonly retryFrom: Instant | null;
  readonly retryTo: Instant | null;
  readonly message: string | null;
};

/** A process renews its forecast every half minute. If the forecast end has passed for longer than this, no process renews it any more. */
const FORGOTTEN_MS = 60_000;

type BackfillsToRead = {
  readonly all: boolean;
  readonly id?: number | null;
  readonly limit?: number | null;
  /** Leaves out forecasts that no process renews at this time: the process is gone, or no service runs. Absent: all forecasts are included. */
  readonly now?: Instant;
};

/** The open backfills, most urgent first. With `all`, the finished ones follow, newest first. */
export async function readBackfills(sql: Sql, query: BackfillsToRead): Promise<BackfillRow[]> {
  const { now } = query;
  const rows = await readRows(sql, query);
  if (now === undefined || rows.every(({ finishAt }) => finishAt === null)) return rows;
  const hasService = (await liveInstances(sql, now)).some(({ roles }) => roles.some((role) => role !== 'http'));
  return rows.map((row) => (isKeptUp(row, hasService, now) ? row : { ...row, ...NO_FINISH }));
}

const NO_FINISH = { finishAt: null, finishFrom: null, finishTo: null };

/** Removes a forecast whose end has passed, because no process renews it. */
export function withoutPassedFinish(row: BackfillRow, now: Instant): BackfillRow {
  return (row.finishTo ?? row.finishAt ?? now) < now - FORGOTTEN_MS ? { ...row, ...NO_FINISH } : row;
}

function isKeptUp(row: BackfillRow, hasService: boolean, now: Instant): boolean {
  const { state, heartbeatAt, finishAt } = withoutPassedFinish(row, now);
  if (finishAt === null) return false;
  return state === 'running' ? isLeaseAlive(heartbeatAt === null ? null : leaseEnd(heartbeatAt), now) : hasService;
}

function readRows(sql: Sql, { all, id = null, limit = null }: BackfillsToRead): Promise<BackfillRow[]> {
  return sql<BackfillRow[]>`
    select id, state, is_detached, priority, interval, quote, coins, planned_requests, spent, stored, left_requests,
      case when finished_at is null and progress > ${MOST_DONE} then ${MOST_DONE} else progress end as progress, owner, requested_by, message, "from", "to", requested_at, started_at, finished_at, heartbeat_at,
      wait_until, finish_at, finish_from, finish_to, finish_change, finish_changed_at, retrying, retry_from, retry_to
    from ops.backfill_progress
    where (${id}::int is null or id = ${id}::int) and (${all} or state in ('queued', 'running', 'paused'))
    order by state in ('queued', 'running', 'paused') desc,
      case when state in ('queued', 'running', 'paused') then -priority end, case when finished_at is null then id end, id desc
    limit ${limit}`;
}

/** The number of remaining requests, in words for a place after a colon or in a cell; null: the backfill has finished, or the number is unknown. */
export function describeLeft({ finishedAt, leftRequests, state, message }: BackfillRow): string | null {
  if (finishedAt !== null || leftRequests === null) return null;
  if (leftRequests > 0) return formatCount(leftRequests);
  if (state === 'running') return 'none known, it looks for more';
  if (state === 'paused') return 'none known; resume it to look again';
  return message === ANOTHER_BACKFILL ? 'others fetch it' : 'none known, it looks again';
}

/** The series and the requester of backfills, by the names under which they spend quota (`backfill 12`). */
export async function readSubjects(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<Pick<BackfillRow, 'id' | 'interval' | 'quote' | 'coins' | 'requestedBy'>[]>`
    select id, interval, quote, cardinality(coin_ids) as coins, requested_by from ops.backfill where id = any(${ids as number[]}::int[])`;
  return new Map(
    rows.map(({ id, coins, requestedBy, ...series }) => [
      `backfill ${id}`,
      [formatSeries(series), coins && formatCounted(coins, 'coin'), requestedBy].filter(Boolean).join(', '),
    ]),
  );
}

const INSTANTS = [
  'from',
  'to',
  'requestedAt',
  'startedAt',
  'finishedAt',
  'heartbeatAt',
  'waitUntil',
  'finishAt',
  'finishFrom',
  'finishTo',
  'finishChangedAt',
  'retryFrom',
  'retryTo',
] as const;

/** The JSON of the command line and of the service, with instants as ISO 8601. */
export function backfillAsJson(row: BackfillRow): Readonly<Record<string, unknown>> {
  return withIso(row, ...INSTANTS);
}
