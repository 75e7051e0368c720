/** The history limits that requests met recently. */
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type MetHistoryLimit = {
  readonly interval: Interval;
  /** How far back the plan shows history; null when it does not include the interval. */
  readonly depthMs: number | null;
  /** The message of the upstream. */
  readonly message: string;
  readonly refusedAt: Instant;
};

/** The limits under `plan`, met after `since`. */
export async function readHistoryLimits(sql: Sql, plan: string, since: Instant): Promise<readonly MetHistoryLimit[]> {
  return sql<MetHistoryLimit[]>`
    select interval, (extract(epoch from depth) * 1000)::float8 as depth_ms, message, refused_at from market.refusal
    where account_plan = ${plan} and series_id is null and refused_at > ${since} order by interval`;
}
