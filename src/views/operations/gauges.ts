/** The numbers of the warehouse for `/metrics`. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { isWantedByPerson, reasonOf } from './alert-inputs.ts';
import { readTierStatus, type TierStatus } from './tiers.ts';

export type Gauges = {
  readonly tiers: readonly TierStatus[];
  /**
   * The backfills of the service. Ended ones count as in notices: backfills of the past of tracked series that fail each day for the same reason
   * count once. Finished ones that the service itself requested do not count.
   */
  readonly backfills: readonly { readonly state: string; readonly n: number }[];
  readonly connections: readonly { readonly state: string; readonly n: number }[];
  readonly lastDone: readonly { readonly schedule: string; readonly at: Instant }[];
  /** An estimate of Postgres, because counting millions of rows every few seconds is too expensive. */
  readonly revisions: number;
  /** Counted, because an alert rule compares it: an estimate also changes with a vacuum, and is 0 after a crash of Postgres. */
  readonly quarantined: number;
  /** Number of refusals by upstream because of a plan: history limits, and intervals that the plan does not include. */
  readonly historyLimits: number;
};

export async function readGauges(sql: Sql, now: Instant): Promise<Gauges> {
  const [tiers, backfills, connections, lastDone, counts] = await Promise.all([
    readTierStatus(sql, now),
    sql<{ state: string; n: number }[]>`
      select s.state, count(distinct b.what) as n
      from unnest(array['queued', 'running', 'paused', 'done', 'failed', 'cancelled']) s(state)
      left join (
        select state, case
            when state = 'failed' and spec ? 'history' then concat_ws(' ', interval, quote, ${reasonOf(sql)})
            when state = 'done' and not ${isWantedByPerson(sql)} then null
            else id::text end as what
        from ops.backfill where is_detached
      ) b on b.state = s.state group by s.state`,
    sql<{ state: string; n: number }[]>`
      select coalesce(state, 'unknown') as state, count(*) as n from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend' group by 1`,
    sql<{ schedule: string; at: Instant }[]>`
      select schedule, max(ended_at) as at from ops.schedule_run where state = 'done' group by 1`,
    sql<{ revisions: number; quarantined: number; historyLimits: number }[]>`
      select (select count(*) from market.refusal where series_id is null)::int as history_limits,
        (select count(*) from market.quarantine)::float8 as quarantined,
        coalesce((select n_live_tup from pg_stat_user_tables where relid = 'market.revision'::regclass), 0)::float8 as revisions`,
  ]);
  return { tiers, backfills, connections, lastDone, ...counts[0]! };
}
