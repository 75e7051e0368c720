/**
 * Watches every connection of this process to one server while the database is open. When a host freezes or a network drops packets,
 * no connection is closed, and a statement would wait until the system gives up, a quarter of an hour later. So the watchdog asks the
 * server every few seconds whether it is there, on a connection of its own, where no other work delays the answer. When no answer
 * comes, the watchdog closes every connection that has received nothing meanwhile. To the rest of the program these are lost
 * connections like any other.
 */
import type net from 'node:net';
import { systemClock } from '../../clock.ts';

export type Watchdog = {
  /** Watches this connection until it is closed. */
  add(socket: net.Socket): void;
  /** Notes the time; the function that it returns closes all connections that have received nothing since. */
  mark(): (reason: () => Error) => void;
};

/** How often the watchdog asks the server, and how long the server may take to answer. */
const LOOK_MS = 5_000;
const DEADLINE_MS = 10_000;
/** If this process itself was held up, the answer may be there already: it gets so long to be read. */
const BREATH_MS = 1_000;

export function createWatchdog(): Watchdog {
  const sockets = new Set<net.Socket>();
  /** Not by their `close` events: TLS removes the listeners of the socket it wraps. */
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

export type Watched = {
  /** Sends a statement that takes no time. */
  readonly ask: () => Promise<unknown>;
  readonly at: string;
  /** The timeout for a new connection: the server may be silent for as long. */
  readonly connectMs: number;
  readonly signal: AbortSignal;
};

/** Runs until the signal is aborted. */
export async function runWatchdog(watchdog: Watchdog, { ask, at, connectMs, signal }: Watched): Promise<void> {
  const deadlineMs = Math.max(DEADLINE_MS, connectMs);
  // The machine's clock, even where the rest of the program has another one: this is about a real network.
  const sleep = (ms: number, until = signal) => systemClock.sleep(ms, until).catch(() => undefined);
  const silent = () =>
    Object.assign(new Error(`Postgres at ${at} has not answered for ${deadlineMs / 1000} s`), { code: 'ETIMEDOUT' });
  await sleep(LOOK_MS);
  while (!signal.aborted) {
    const hangUp = watchdog.mark();
    const answered = new AbortController();
    const late = (async () => {
      await sleep(deadlineMs, AbortSignal.any([signal, answered.signal]));
      if (!signal.aborted && !answered.signal.aborted) await sleep(BREATH_MS);
      return false;
    })();
    const isThere = await Promise.race([ask().then(() => true, isAnswer), late]);
    answered.abort();
    if (signal.aborted) return;
    if (!isThere) hangUp(silent);
    await sleep(LOOK_MS);
  }
}

/** A refusal is an answer, too; a connection that timed out is none. */
function isAnswer(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code !== 'CONNECT_TIMEOUT' && code !== 'ETIMEDOUT';
}
