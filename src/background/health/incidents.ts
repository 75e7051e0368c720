/** Problems that last: each is logged when it begins, every minute while it lasts, and when it ends; never at every attempt. */
import type { Clock, Instant } from '../../clock.ts';
import type { Log } from '../../log.ts';

export type Incidents = {
  /** `what` is the subject of a sentence: `the database`. */
  report(what: string, error: Error): void;
  resolve(what: string): void;
  isOpen(what: string): boolean;
  /** Those that last now. */
  open(): readonly { readonly what: string; readonly message: string; readonly since: Instant }[];
};

const REPEAT_MS = 60_000;

export function createIncidents(log: Log, clock: Clock): Incidents {
  const open = new Map<string, { message: string; readonly since: Instant; loggedAt: Instant }>();
  return {
    report: (what, error) => {
      const now = clock.now();
      const known = open.get(what);
      if (known !== undefined && known.message === error.message && Math.abs(now - known.loggedAt) < REPEAT_MS) return;
      const since = known?.since ?? now;
      open.set(what, { message: error.message, since, loggedAt: now });
      log.warn({ what, since: new Date(since).toISOString() }, `${what}: ${error.message}`);
      log.debug({ err: error }, what);
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

export function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
