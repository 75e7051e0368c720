/** The facts that `chandler doctor` reads from the database: version, clock, size, and backfills whose process died. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { leaseIsAlive } from '../../store/work/lease.ts';

type Health = {
  /** The version that the server reports: `18.4`. */
  readonly version: string;
  readonly majorVersion: number;
  /** The database stores nothing: it is a standby, or is set to read-only. */
  readonly isReadOnly: boolean;
  /** The database's clock. */
  readonly now: Instant;
  readonly bytes: number;
  /** Name of the last migration applied. */
  readonly migration: string;
  readonly connections: number;
  readonly connectionsFree: number;
  /** Runs of commands that are recorded as running, but whose lease has expired. */
  readonly silentBackfills: readonly { readonly id: number; readonly owner: string; readonly heartbeatAt: Instant }[];
  /** Rows in quarantine. */
  readonly quarantined: number;
};

/** `now`: by the clock with which the owners of backfills renew their leases. */
export async function readHealth(sql: Sql, now: Instant): Promise<Health> {
  const [server] = await sql<Omit<Health, 'silentBackfills'>[]>`
    select current_setting('server_version') as version,
      current_setting('server_version_num')::int / 10000 as major_version,
      current_setting('transaction_read_only') = 'on' as is_read_only,
      date_trunc('milliseconds', clock_timestamp()) as now,
      pg_database_size(current_database()) as bytes,
      (select name from ops.migration order by created_at desc limit 1) as migration,
      current_setting('max_connections')::int as connections,
      current_setting('max_connections')::int - (select count(*) from pg_stat_activity where backend_type = 'client backend')
        as connections_free,
      (select count(*) from market.quarantine) as quarantined`;
  const silentBackfills = await sql<Health['silentBackfills'][number][]>`
    select id, owner, heartbeat_at from ops.backfill
    where state = 'running' and not is_detached and not ${leaseIsAlive(sql, now)} order by id`;
  return { ...server!, silentBackfills };
}
