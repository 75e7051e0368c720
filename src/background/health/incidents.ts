/** Troubles that last: each is told when it begins, now and then while it goes on, and when it is over; never at every attempt. */
import type { Clock, Instant } from '../../clock.ts';
import type { Log } from '../../log.ts';

export type Troubles = {
  /** `what` is the subject of a sentence: `the database`. */
  met(what: string, error: Error): void;
  over(what: string): void;
  /** Does it go on? */
  has(what: string): boolean;
  /** What goes on now, for whoever asks how it is. */
  all(): readonly { readonly what: string; readonly message: string; readonly since: Instant }[];
};

const AGAIN_MS = 60_000;

export function createTroubles(log: Log, clock: Clock): Troubles {
  const going = new Map<string, { message: string; readonly since: Instant; toldAt: Instant }>();
  return {
    met: (what, error) => {
      const now = clock.now();
      const known = going.get(what);
      if (known !== undefined && known.message === error.message && Math.abs(now - known.toldAt) < AGAIN_MS) return;
      going.set(what, { message: error.message, since: known?.since ?? now, toldAt: now });
      log.warn({ what, since: new Date(known?.since ?? now).toISOString() }, `${what}: ${error.message}`);
      log.debug({ err: error }, what);
    },
    over: (what) => {
      const known = going.get(what);
      if (known === undefined) return;
      going.delete(what);
      log.info({ what, tookMs: clock.now() - known.since }, `${what}: well again`);
    },
    has: (what) => going.has(what),
    all: () => [...going].map(([what, { message, since }]) => ({ what, message, since })),
  };
}

export function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
