/** The service's heartbeat: its lease, and the schedules it runs. Every process reserves quota for these schedules. */
import type { App } from '../../app.ts';
import { accountIdOf } from '../../ingest/request/account.ts';
import { noteScheduler, renewInstance } from '../../store/work/instance.ts';
import type { ServiceContext } from '../service-context.ts';

export async function sendHeartbeat(
  { clock, config, owner, roles, status }: ServiceContext,
  { database }: Pick<App, 'database'>,
): Promise<void> {
  const { startedAt, scheduling = null } = status;
  const sendsRequests = roles.includes('scheduler') || roles.includes('worker');
  const accountId = sendsRequests ? accountIdOf(config.apiKey, config.baseUrl) : null;
  const schedules = scheduling?.schedules ?? null;
  await renewInstance(database.sql, { owner, roles, startedAt, heartbeatAt: clock.now(), accountId, schedules });
  if (scheduling !== null) await noteScheduler(database.sql, scheduling.accountId, clock.now());
}
