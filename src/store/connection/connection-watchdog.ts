/**
 * Watches every connection of this process to one server while the database is open. When a host freezes or a network drops packets,
 * no connection is closed, and a statement would wait until the system gives up, a quarter of an hour later. So the watchdog sends
 * the server an empty statement every few seconds, on a connection of its own, where no other work delays the answer. When no answer
 * comes, the watchdog closes every connection that has received nothing meanwhile. The rest of the program sees ordinary lost
 * connections.
 */
import type net from 'node:net';
import { systemClock } from '../../clock.ts';
import { linkAbort } from '../../core/concurrency/linked-abort.ts';

export type Watchdog = {
  /** Watches this connection until it is closed. */
  add(socket: net.Socket): void;
  /** Notes how many bytes each connection has received. The returned function closes all that have received nothing since. */
  mark(): (reason: () => Error) => void;
};

/** Wait between two checks of the server. `DEADLINE_MS` is how long the server may take to answer. */
const LOOK_MS = 5_000;
const DEADLINE_MS = 10_000;
/** If this process itself was delayed, the answer may have arrived unread. So the watchdog waits this much longer for it. */
const EXTRA_WAIT_MS = 1_000;

export function createWatchdog(): Watchdog {
  const sockets = new Set<net.Socket>();
  /** `close` events cannot be used for this: TLS removes the listeners of the socket that it wraps. */
  const forget = () => {
    for (const socket of sockets) if (socket.destroyed) sockets.delete(socket);
  };
  return {
    add: (socket) => {
      forget();
      sockets.add(socket);
    },
    mark: () => {
      forget();
      const before = new Map([...sockets].map((socket) => [socket, socket.bytesRead]));
      return (reason) => {
        for (const socket of sockets) if (socket.bytesRead === (before.get(socket) ?? 0)) socket.destroy(reason());
      };
    },
  };
}

type Watched = {
  /** Sends an empty statement. */
  readonly check: () => Promise<unknown>;
  readonly at: string;
  /** Timeout for a new connection. The server may be silent for that long, and at least for `DEADLINE_MS`. */
  readonly connectMs: number;
  readonly signal: AbortSignal;
};

/** Runs until the signal is aborted. */
export async function runWatchdog(watchdog: Watchdog, { check, at, connectMs, signal }: Watched): Promise<void> {
  const deadlineMs = Math.max(DEADLINE_MS, connectMs);
  // The machine's clock, even if the rest of the program uses another one: this is about a real network.
  const sleep = (ms: number, until = signal) => systemClock.sleep(ms, until).catch(() => undefined);
  const silent = () =>
    Object.assign(new Error(`Postgres at ${at} has not answered for ${deadlineMs / 1000} s`), { code: 'ETIMEDOUT' });
  await sleep(LOOK_MS);
  while (!signal.aborted) {
    const hangUp = watchdog.mark();
    const { controller: answered, unlink } = linkAbort(signal);
    const late = (async () => {
      await sleep(deadlineMs, answered.signal);
      if (!answered.signal.aborted) await sleep(EXTRA_WAIT_MS);
      return false;
    })();
    const isThere = await Promise.race([check().then(() => true, isAnswer), late]);
    answered.abort();
    unlink();
    if (signal.aborted) return;
    if (!isThere) hangUp(silent);
    await sleep(LOOK_MS);
  }
}

/** True if the server has answered. An error of the server is an answer; a connection that timed out is not. */
function isAnswer(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code !== 'CONNECT_TIMEOUT' && code !== 'ETIMEDOUT';
}
