/** The service's sign of life: its lease, and which schedules it runs, for which every process reserves quota. */
import type { App } from '../../app.ts';
import { keepInstance, noteScheduler } from '../../store/work/instance.ts';
import type { ServiceContext } from '../service-context.ts';

export async function beat({ clock, owner, roles, status }: ServiceContext, { database }: App): Promise<void> {
  const { startedAt, scheduling = null } = status;
  const { accountId, schedules } = scheduling ?? { accountId: null, schedules: null };
  await keepInstance(database.sql, { owner, roles, startedAt, heartbeatAt: clock.now(), accountId, schedules });
  if (accountId !== null) await noteScheduler(database.sql, accountId, clock.now());
}
