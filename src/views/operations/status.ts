/** The warehouse at a glance: what is wanted, stored and running, and the requests of the last day. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { leaseIsAlive } from '../../store/work/lease.ts';
import { type DatedCounts, readSeriesCounts } from './series-counts.ts';

type BackfillStatus = {
  readonly id: number;
  readonly requestedAt: Instant;
  readonly interval: Interval;
  readonly quote: Quote;
  readonly from: Instant | null;
  readonly to: Instant | null;
  readonly plannedRequests: number;
  readonly requests: number;
  /** The service runs it, so another process can take it over. */
  readonly isDetached: boolean;
  readonly owner: string;
  readonly heartbeatAt: Instant;
  /** Its lease has expired: its process was killed, or cannot reach the database. */
  readonly isSilent: boolean;
};

export type Status = DatedCounts & {
  /** Coins in the list of coins. */
  readonly coins: number;
  readonly backfills: readonly BackfillStatus[];
  readonly revisions: number;
  /** Rows in quarantine. */
  readonly quarantined: number;
};

/** `countsMany`: all series are counted now, even if there are many. */
export async function readStatus(sql: Sql, now: Instant, countsMany = false): Promise<Status> {
  const [counts, seriesCounts, backfills] = await Promise.all([
    sql<{ coins: number; revisions: number; quarantined: number }[]>`
      select (select count(*) from market.coin) as coins, (select count(*) from market.revision) as revisions,
        (select count(*) from market.quarantine) as quarantined`,
    readSeriesCounts(sql, now, countsMany),
    readRunning(sql, now),
  ]);
  const { coins, revisions, quarantined } = counts[0]!;
  return { coins, ...seriesCounts, backfills, revisions, quarantined };
}

function readRunning(sql: Sql, now: Instant): Promise<BackfillStatus[]> {
  return sql<BackfillStatus[]>`
    select b.id, b.requested_at, b.interval, b.quote, lower(b.span) as from, upper(b.span) as to, b.planned_requests,
      (select coalesce(sum(p.requests), 0)::bigint from ops.fetch_totals p where p.backfill_id = b.id) as requests,
      b.is_detached, b.owner, b.heartbeat_at, not ${leaseIsAlive(sql, now)} as is_silent
    from ops.backfill b where b.state = 'running' order by b.id`;
}
