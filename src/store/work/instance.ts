/**
 * The running services. Each holds a lease, so that a command that queues work can report whether any service runs. A service with a scheduler
 * also records its schedules, so that every process reserves quota for exactly these.
 */
import { and, lt, ne } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { instance } from '../schema/service.ts';
import { NO_SETTINGS, OWNER, type RecordedSettings } from './audit.ts';
import { leaseIsAlive } from './lease.ts';

export type Instance = Readonly<typeof instance.$inferInsert>;

/** The row of a killed service is deleted after a day. */
const FORGOTTEN_AFTER_MS = 86_400_000;

/** Renews the lease of a service, and deletes those of services that were killed long ago. */
export async function renewInstance(sql: SqlOrTransaction, kept: Instance): Promise<void> {
  const isForgotten = lt(instance.heartbeatAt, kept.heartbeatAt - FORGOTTEN_AFTER_MS);
  await tables(sql)
    .delete(instance)
    .where(and(isForgotten, ne(instance.owner, kept.owner)));
  await tables(sql).insert(instance).values(kept).onConflictDoUpdate({ target: instance.owner, set: kept });
}

export async function forgetInstance(sql: SqlOrTransaction, owner: string): Promise<void> {
  await tables(sql).delete(instance).where(matches(instance, { owner }));
}

/** The services whose lease is alive. */
export async function liveInstances(sql: SqlOrTransaction, now: Instant): Promise<Instance[]> {
  return sql<Instance[]>`select * from ops.instance where ${leaseIsAlive(sql, now)} order by owner`;
}

type RunningSettings = { readonly owner: string; readonly settings: RecordedSettings };

/** The settings with which the live services were started, from the audit log. Services that an earlier version started are left out. */
export async function readRunningSettings(sql: SqlOrTransaction, now: Instant): Promise<readonly RunningSettings[]> {
  return sql<RunningSettings[]>`
    select i.owner, a.settings - ${NO_SETTINGS}::text[] as settings
    from (select owner from ops.instance where ${leaseIsAlive(sql, now)}) i
    cross join lateral (
      select settings from ops.audit where settings is not null and settings->>${OWNER}::text = i.owner order by id desc limit 1) a
    order by i.owner`;
}

/** Precision of the time when a scheduler last ran: the heartbeats, every few seconds, need not all write it. */
const SCHEDULED_EVERY_MS = 10 * 60_000;

/** Records that a scheduler runs for the account. */
export async function noteScheduler(sql: SqlOrTransaction, accountId: string, now: Instant): Promise<void> {
  await sql`
    update ops.account set scheduled_at = ${now}
    where id = ${accountId} and (scheduled_at is null or scheduled_at not between ${now - SCHEDULED_EVERY_MS} and ${now})`;
}

export type RunningSchedules = {
  /** For each live scheduler of the account: its schedules with their cron expressions. */
  readonly running: readonly Readonly<Record<string, string>>[];
  /** When a scheduler last ran for the account; null when none ever did. */
  readonly seenAt: Instant | null;
};

export async function readRunningSchedules(
  sql: SqlOrTransaction,
  { accountId, now }: { readonly accountId: string; readonly now: Instant },
): Promise<RunningSchedules> {
  const [row] = await sql<RunningSchedules[]>`
    select (select scheduled_at from ops.account where id = ${accountId}) as seen_at,
      coalesce((select jsonb_agg(schedules order by owner) from ops.instance
        where account_id = ${accountId} and schedules is not null and ${leaseIsAlive(sql, now)}), '[]') as running`;
  return row!;
}
