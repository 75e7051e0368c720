/** The services that run: each holds a lease, so that a command that queues work for them can say whether any service runs. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { leaseIsAlive } from './lease.ts';

export type Instance = {
  /** `host:pid`. */
  readonly owner: string;
  readonly roles: readonly string[];
  readonly startedAt: Instant;
  readonly heartbeatAt: Instant;
};

/** A service that was killed is forgotten a day later. */
const FORGOTTEN_AFTER = '1 day';

export async function keepInstance(
  sql: SqlOrTransaction,
  { owner, roles, startedAt, heartbeatAt }: Instance,
): Promise<void> {
  await sql`
    with forgotten as (
      delete from ops.instance
      where heartbeat_at < ${heartbeatAt}::timestamptz - ${FORGOTTEN_AFTER}::interval and owner <> ${owner}
    )
    insert into ops.instance (owner, roles, started_at, heartbeat_at)
    values (${owner}, ${roles as string[]}::text[], ${startedAt}, ${heartbeatAt})
    on conflict (owner) do update
    set roles = excluded.roles, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at`;
}

export async function forgetInstance(sql: SqlOrTransaction, owner: string): Promise<void> {
  await sql`delete from ops.instance where owner = ${owner}`;
}

/** The services whose lease is alive. */
export async function liveInstances(sql: SqlOrTransaction, now: Instant): Promise<Instance[]> {
  return sql<Instance[]>`
    select owner, roles, started_at, heartbeat_at
    from ops.instance where ${leaseIsAlive(sql, now)} order by owner`;
}
