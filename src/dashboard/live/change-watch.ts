/**
 * Tells open pages that what they show has changed. One look at the version numbers serves all pages, and only while a page is open that
 * somebody can see; pages ask for what they show themselves.
 */
import type { Clock } from '../../clock.ts';

/** What changed: the parts of the warehouse that pages are about. */
export type Versions = Readonly<Record<string, string>>;

export type ChangeWatch = {
  /** A stream of server-sent events, until `signal` is aborted: `changed` with the names of what changed, `away` and `back` of the database. */
  follow(signal: AbortSignal): ReadableStream<Uint8Array>;
  /** Pages that follow now. */
  readonly size: () => number;
};

type WatchDeps = {
  readonly clock: Clock;
  readonly read: () => Promise<Versions>;
  readonly isUnavailable: (error: unknown) => boolean;
  readonly onError: (error: unknown) => void;
};

const LOOK_EVERY_MS = 2_000;
/** So that nobody between takes the connection for dead. */
const QUIET_MS = 20_000;

const text = new TextEncoder();

export function createChangeWatch({ clock, read, isUnavailable, onError }: WatchDeps): ChangeWatch {
  const pages = new Set<(event: string) => void>();
  let isLooking = false;
  let isAway = false;
  const tell = (event: string) => {
    for (const page of pages) page(event);
  };

  /** Runs while there are pages. */
  const look = async () => {
    let seen: Versions | null = null;
    let toldAt = clock.now();
    while (pages.size > 0) {
      const found = await read().catch((error: unknown) => {
        if (!isUnavailable(error)) onError(error);
        return null;
      });
      if (found === null) {
        if (!isAway) tell('event: away\ndata:\n\n');
        isAway = true;
      } else {
        const changed = seen === null ? [] : changedIn(seen, found);
        if (isAway) tell('event: back\ndata:\n\n');
        else if (changed.length > 0) tell(`event: changed\ndata: ${changed.join(' ')}\n\n`);
        if (isAway || changed.length > 0) toldAt = clock.now();
        isAway = false;
        seen = found;
      }
      if (Math.abs(clock.now() - toldAt) >= QUIET_MS) {
        tell(': \n\n');
        toldAt = clock.now();
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
            // A page that does not read any more has gone, or sleeps: it comes back by itself.
            if ((controller.desiredSize ?? 0) < -MOST_UNREAD) {
              leave();
              controller.close();
            } else controller.enqueue(text.encode(event));
          };
          pages.add(page);
          signal.addEventListener('abort', leave, { once: true });
          // Who has left already gets no such event any more.
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

/** Events that a page may leave unread. */
const MOST_UNREAD = 100;

function changedIn(before: Versions, after: Versions): string[] {
  return Object.keys(after).filter((name) => after[name] !== before[name]);
}
