/** How the service is: what its parts say, and what `/health` and `/ready` answer. */
import type { Instant } from '../../clock.ts';
import type { Troubles } from './incidents.ts';

export const ROLES = ['scheduler', 'worker', 'http'] as const;
export type Role = (typeof ROLES)[number];

/** `waiting`: for a database, a queue, a migration, or for upstream to say who we are. `ready`: everything runs, and the first look for what is due has been. */
export type Phase = 'waiting' | 'starting' | 'ready' | 'stopping';

export type ServiceStatus = {
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly startedAt: Instant;
  phase: Phase;
};

/** What nothing can be done without, as it is named when it is away; of the account that is so only until it is known. */
export const DATABASE = 'the database';
export const QUEUE = 'the queue';
export const ACCOUNT = 'the account';

/** It was ready, and has not lost since what it needs. */
export function isReady({ phase }: ServiceStatus, troubles: Pick<Troubles, 'has'>): boolean {
  return phase === 'ready' && !troubles.has(DATABASE) && !troubles.has(QUEUE);
}

export type ServiceHealth = {
  readonly status: Phase;
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly upSeconds: number;
  readonly troubles: readonly { readonly what: string; readonly message: string; readonly since: string }[];
};

export function healthOf(status: ServiceStatus, troubles: Troubles, now: Instant): ServiceHealth {
  const waitsAgain = status.phase === 'ready' && !isReady(status, troubles);
  return {
    status: waitsAgain ? 'waiting' : status.phase,
    owner: status.owner,
    roles: status.roles,
    upSeconds: Math.max(0, Math.round((now - status.startedAt) / 1000)),
    troubles: troubles.all().map(({ what, message, since }) => ({
      what,
      message,
      since: new Date(since).toISOString(),
    })),
  };
}
