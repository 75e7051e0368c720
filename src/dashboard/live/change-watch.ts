/**
 * Tells open pages that their data has changed. One read of the version numbers serves all pages, and only while a visible page is open.
 * The pages then request their data themselves.
 */
import type { Clock } from '../../clock.ts';

/** A version number for each part of the warehouse that pages show. */
export type Versions = Readonly<Record<string, string>>;

type ChangeWatch = {
  /** A stream of server-sent events, until `signal` is aborted: `changed` with the names of what changed, `away` and `back` for the database. */
  follow(signal: AbortSignal): ReadableStream<Uint8Array>;
  /** Number of pages that follow now. */
  readonly size: () => number;
};

type WatchDeps = {
  readonly clock: Clock;
  readonly read: () => Promise<Versions>;
  readonly isUnavailable: (error: unknown) => boolean;
  readonly onError: (error: unknown) => void;
};

const LOOK_EVERY_MS = 2_000;
/** Sends a comment after so long, so that no proxy closes the connection as idle. */
const QUIET_MS = 20_000;

const text = new TextEncoder();

export function createChangeWatch({ clock, read, isUnavailable, onError }: WatchDeps): ChangeWatch {
  const pages = new Set<(event: string) => void>();
  let isLooking = false;
  let isAway = false;
  const send = (event: string) => {
    for (const page of pages) page(event);
  };

  /** Runs while there are pages. */
  const look = async () => {
    let seen: Versions | null = null;
    let sentAt = clock.now();
    while (pages.size > 0) {
      const found = await read().catch((error: unknown) => {
        if (!isUnavailable(error)) onError(error);
        return null;
      });
      if (found === null) {
        if (!isAway) send('event: away\ndata:\n\n');
        isAway = true;
      } else {
        const changed = seen === null ? [] : changedIn(seen, found);
        if (isAway) send('event: back\ndata:\n\n');
        else if (changed.length > 0) send(`event: changed\ndata: ${changed.join(' ')}\n\n`);
        if (isAway || changed.length > 0) sentAt = clock.now();
        isAway = false;
        seen = found;
      }
      if (Math.abs(clock.now() - sentAt) >= QUIET_MS) {
        send(': \n\n');
        sentAt = clock.now();
      }
      await clock.sleep(LOOK_EVERY_MS);
    }
    isLooking = false;
  };

  return {
    size: () => pages.size,
    follow(signal) {
      let page: ((event: string) => void) | null = null;
      const leave = () => {
        if (page !== null) pages.delete(page);
        page = null;
      };
      return new ReadableStream<Uint8Array>({
        start(controller) {
          page = (event) => {
            // A page that no longer reads has gone or sleeps. It connects again later.
            if ((controller.desiredSize ?? 0) < -MOST_UNREAD) {
              leave();
              controller.close();
            } else controller.enqueue(text.encode(event));
          };
          pages.add(page);
          signal.addEventListener('abort', leave, { once: true });
          // The signal of a page that has already left fires no more abort event.
          if (signal.aborted) leave();
          controller.enqueue(text.encode('retry: 3000\nevent: open\ndata:\n\n'));
          if (isLooking && isAway) controller.enqueue(text.encode('event: away\ndata:\n\n'));
          if (isLooking) return;
          isAway = false;
          isLooking = true;
          void look();
        },
        cancel: leave,
      });
    },
  };
}

/** Number of events that a page may leave unread. */
const MOST_UNREAD = 100;

function changedIn(before: Versions, after: Versions): string[] {
  return Object.keys(after).filter((name) => after[name] !== before[name]);
}
