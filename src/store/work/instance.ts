/** The services that run: each holds a lease, so that a command that queues work for them can say whether any service runs. */
import { and, lt, ne } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { instance } from '../schema/service.ts';
import { leaseIsAlive } from './lease.ts';

export type Instance = Readonly<typeof instance.$inferInsert>;

/** A service that was killed is forgotten a day later. */
const FORGOTTEN_AFTER_MS = 86_400_000;

/** Renews the lease of a service, and deletes those of services that were killed long ago. */
export async function keepInstance(sql: SqlOrTransaction, kept: Instance): Promise<void> {
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
