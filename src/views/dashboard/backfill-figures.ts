/** Backfills that failed recently, and the number of open ones. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';

type FailedBackfill = {
  readonly id: number;
  readonly message: string | null;
  readonly finishedAt: Instant;
  readonly leftRequests: number | null;
  /** The service runs it, so it can be resumed here. */
  readonly isDetached: boolean;
};

/**
 * The backfills that failed at `since` or later, newest first, at most `most`. Also how many there are in all, and how many requests are left of
 * all of them; null when it is unknown for one of them.
 */
export async function readFailedBackfills(
  sql: Sql,
  { since, most }: { readonly since: Instant; readonly most: number },
): Promise<{ readonly rows: readonly FailedBackfill[]; readonly total: number; readonly leftRequests: number | null }> {
  const rows = await sql<(FailedBackfill & { total: number; leftOfAll: number | null })[]>`
    select id, message, finished_at, left_requests, is_detached, count(*) over ()::int as total,
      case when bool_and(left_requests is not null) over () then sum(left_requests) over () end::float8 as left_of_all from ops.backfill
    where state = 'failed' and finished_at >= ${since} order by finished_at desc, id desc limit ${most}`;
  return { rows, total: rows[0]?.total ?? 0, leftRequests: rows.length === 0 ? 0 : rows[0]!.leftOfAll };
}

/** How many failed at `since` or later, except those for which more requests bring nothing. */
export async function countResumable(sql: Sql, since: Instant): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n from ops.backfill
    where state = 'failed' and finished_at >= ${since} and left_requests is distinct from 0`;
  return row!.n;
}

/** With `all`, counts finished backfills too. */
export async function countBackfills(sql: Sql, { all }: { readonly all: boolean }): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n from ops.backfill where ${all} or state in ('queued', 'running', 'paused')`;
  return row!.n;
}
