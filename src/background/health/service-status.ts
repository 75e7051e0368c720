/** The state of the service, and what `/health` and `/ready` answer from it. */
import type { Instant } from '../../clock.ts';
import type { Incidents } from './incidents.ts';

export const ROLES = ['scheduler', 'worker', 'http'] as const;
export type Role = (typeof ROLES)[number];

/**
 * `waiting`: for a database, a queue, a migration, or the account's plan. `ready`: everything runs, and the scheduler has looked for due
 * schedules once.
 */
export type Phase = 'waiting' | 'starting' | 'ready' | 'stopping';

export type ServiceStatus = {
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly startedAt: Instant;
  phase: Phase;
};

/** What the service cannot work without, as its incidents name it. The account is needed only until it is known. */
export const DATABASE = 'the database';
export const QUEUE = 'the queue';
export const ACCOUNT = 'the account';

/** The service became ready, and has since lost nothing that it needs. */
export function isReady({ phase }: ServiceStatus, incidents: Pick<Incidents, 'isOpen'>): boolean {
  return phase === 'ready' && !incidents.isOpen(DATABASE) && !incidents.isOpen(QUEUE);
}

export type ServiceHealth = {
  readonly status: Phase;
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly upSeconds: number;
  readonly incidents: readonly { readonly what: string; readonly message: string; readonly since: string }[];
};

export function healthOf(status: ServiceStatus, incidents: Incidents, now: Instant): ServiceHealth {
  const waitsAgain = status.phase === 'ready' && !isReady(status, incidents);
  return {
    status: waitsAgain ? 'waiting' : status.phase,
    owner: status.owner,
    roles: status.roles,
    upSeconds: Math.max(0, Math.round((now - status.startedAt) / 1000)),
    incidents: incidents.open().map((incident) => ({ ...incident, since: new Date(incident.since).toISOString() })),
  };
}
