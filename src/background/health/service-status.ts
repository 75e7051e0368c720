/** The state of the service and its incidents, and what `/health` and `/ready` return from both. */
import type { Clock, Instant } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { StoreError } from '../../store/connection/store-error.ts';

export const ROLES = ['scheduler', 'worker', 'http'] as const;
export type Role = (typeof ROLES)[number];

/**
 * `waiting`: for a database, a queue, a migration, or the account's plan. `ready`: everything runs, and the scheduler has looked for due
 * schedules once.
 */
type Phase = 'waiting' | 'starting' | 'ready' | 'stopping';

export type ServiceStatus = {
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly startedAt: Instant;
  phase: Phase;
  /** The schedules that its scheduler runs now, with their cron expressions. Absent when it runs none. */
  scheduling?: { readonly accountId: string; readonly schedules: Readonly<Record<string, string>> } | null;
};

/** What the service cannot work without, as its incidents name it. It needs the account only until the plan is known. */
export const DATABASE = 'the database';
/** A lock that another session holds for longer than any statement of Chandler does. */
export const LOCK = 'a lock in the database';
export const QUEUE = 'the queue';
export const ACCOUNT = 'the account';
/** The incident when the service cannot write its heartbeat for another reason than an outage: the database refuses its login, or the user may not write. */
export const HEARTBEAT = 'the heartbeat';

/** Whether the service became ready and still has everything that it needs. */
export function isReady({ phase }: ServiceStatus, incidents: Pick<Incidents, 'isOpen'>): boolean {
  return phase === 'ready' && ![DATABASE, HEARTBEAT, LOCK, QUEUE].some(incidents.isOpen);
}

type ServiceHealth = {
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

/** Problems that last. Each is logged when it begins, every minute while it lasts, and when it ends, but not at every attempt. */
export type Incidents = {
  /** `what` is the subject of a sentence: `the database`. */
  report(what: string, error: Error): void;
  resolve(what: string): void;
  isOpen(what: string): boolean;
  /** The problems that last now. */
  open(): readonly { readonly what: string; readonly message: string; readonly since: Instant }[];
};

const REPEAT_MS = 60_000;

type Open = {
  message: string;
  readonly since: Instant;
  /** When each message was logged last. During an outage, different messages alternate and repeat. */
  readonly loggedAt: Map<string, Instant>;
  /** Reports since the last line. */
  unlogged: number;
};

export function createIncidents(log: Log, clock: Clock): Incidents {
  const open = new Map<string, Open>();
  return {
    report: (what, error) => {
      const now = clock.now();
      const message = error instanceof StoreError ? error.messageOfService : error.message;
      const incident = open.get(what) ?? { message, since: now, loggedAt: new Map(), unlogged: 0 };
      open.set(what, incident);
      incident.message = message;
      incident.unlogged++;
      const loggedAt = incident.loggedAt.get(message);
      if (loggedAt !== undefined && Math.abs(now - loggedAt) < REPEAT_MS) return;
      incident.loggedAt.set(message, now);
      const since = new Date(incident.since).toISOString();
      log.warn({ what, since, count: incident.unlogged }, `${what}: ${message}`);
      log.debug({ err: error }, what);
      incident.unlogged = 0;
    },
    resolve: (what) => {
      const known = open.get(what);
      if (known === undefined) return;
      open.delete(what);
      log.info({ what, tookMs: clock.now() - known.since }, `${what} recovered`);
    },
    isOpen: (what) => open.has(what),
    open: () => [...open].map(([what, { message, since }]) => ({ what, message, since })),
  };
}
